"""What a sink is: a place that takes the answers of a round, once or again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import pyarrow as pa

from windloom.durable.shards.pieces import Piece, PieceFolder
from windloom.rounds import Block
from windloom.spark.answers.executors import WideAnswers
from windloom.spark.api import SparkSession


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table of answers: its columns with their Spark types; its queries, each with its grouping columns."""

    columns: Mapping[str, str]
    queries: Mapping[str, tuple[str, ...]]


class RoundAnswers(Protocol):
    """The answers of a round, made while they are read.

    `tables` describes every table that the plan may fill.
    """

    @property
    def tables(self) -> Mapping[str, TableInfo]: ...

    def rows(self, *, with_pieces: bool = True) -> Iterable[tuple[str, pa.Table]]:
        """Finished rows, by name of their table; rows of a table may come in several parts.

        Without those that are in pieces, for a sink that takes these as they are.
        """
        ...

    @property
    def pieces(self) -> Sequence[Piece]:
        """Rows that were written where the step ran, to where the sink keeps them."""
        ...

    def blocks(self) -> Iterator[Block]:
        """The same as the step made them, without HAVING and expressions over aggregates; instead of `rows`."""
        ...

    @property
    def wide(self) -> WideAnswers | None:
        """All answers of a batch run whose step ran on executors: then there are neither rows nor blocks."""
        ...


class Sink(Protocol):
    """`write` is given whole rounds, in order; after a crash the last one comes again, with the same rows.

    A sink with a folder of `pieces` can be the only one of a stream on executors: then shards write rows to it.
    """

    @property
    def pieces(self) -> PieceFolder | None: ...

    def write(self, round: int, answers: RoundAnswers) -> None: ...

    def rows(self, table: str) -> pa.Table | None:
        """What the sink holds of a table; None where it keeps nothing that could be read back."""
        ...

    def close(self) -> None:
        """The stream has ended."""
        ...


@dataclass(frozen=True, slots=True)
class SinkPlace:
    """Where a sink may keep what it holds: at `path`, if the user gave one, and under the checkpoint."""

    spark: SparkSession
    path: str | None
    checkpoint_path: str
    checkpoint_id: str


class NamedSink(Sink, Protocol):
    """A sink that is asked for by name. `takes_path`: it writes to the path that the user gives, and needs one."""

    takes_path: ClassVar[bool]

    @classmethod
    def open(cls, place: SinkPlace) -> Self: ...
