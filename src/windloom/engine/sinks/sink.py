"""What a sink is: a place that takes the answers of a round, once or again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from windloom.durable.shards.pieces import Piece, PieceFolder
from windloom.errors import WindloomError
from windloom.model.emission import Emits
from windloom.model.query import Query
from windloom.rounds import Block
from windloom.spark.answers.executors import WideAnswers
from windloom.spark.api import SparkSession


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table of answers: its columns with their Spark types; its queries, each with its grouping columns.

    `rows` are those of them that report rows, of which equal ones may be there several times. All rows of a window come
    in one round, but for `pairs`: these are interval joins, whose rows have no window. `asked` are all
    queries as they were asked, for a sink that must know how their rows come and go.
    """

    columns: Mapping[str, str]
    queries: Mapping[str, tuple[str, ...]]
    rows: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    asked: Mapping[str, Query] = field(default_factory=dict)

    def emitting(self, kind: Emits) -> list[str]:
        """The queries that report in this way: with EMIT CHANGES a row may be a deletion, with EMIT EARLY withdrawn."""
        return [name for name, query in self.asked.items() if query.emission.kind is kind]


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

    def until(self, query: str) -> int:
        """The tick up to which all windows of a query have been reported; none begins after the last tuple."""
        ...

    def schema(self, query: str) -> pa.Schema:
        """The columns of a query's rows, without `query`."""
        ...

    @property
    def wide(self) -> WideAnswers | None:
        """All answers of a batch run whose step ran on executors: then there are neither rows nor blocks."""
        ...


class NotReadBackError(WindloomError):
    """A sink hands rows on, and cannot be asked for them."""


class Sink(Protocol):
    """`write` is given whole rounds, in order; after a crash the last one comes again, with the same rows.

    The same happens in one life if `write` raises SinkDownError: what the sink writes to is away for now, the round
    waits, and is given to the sink again. A class that inherits from this one gets the parts that not every sink needs.
    """

    @property
    def pieces(self) -> PieceFolder | None:
        """Where shards of a stream on executors write rows by themselves, if this is the only sink of the stream."""
        return None

    def write(self, round: int, answers: RoundAnswers) -> Mapping[str, float] | None:
        """Takes a round. What it returns are figures of the round, by name, for `handle.progress`."""
        ...

    def rows(self, table: str) -> pa.Table | None:
        """What the sink holds of a table, None for nothing yet; NotReadBackError if it is not read from here."""
        raise NotReadBackError(
            "the answers are not read back from here",
            "the sinks of the stream hand rows on to others",
            'read them there, or add a sink that keeps them: sink=[…, "live"]',
        )

    def close(self) -> None:
        """The stream has ended."""
        return


def read_back(sinks: Sequence[Sink], table: str) -> pa.Table | None:
    """What the first sink that keeps rows holds of a table."""
    refusals: list[NotReadBackError] = []
    for sink in sinks:
        try:
            rows = sink.rows(table)
        except NotReadBackError as error:
            refusals.append(error)
            continue
        if rows is not None:
            return rows
    if len(refusals) == len(sinks):
        raise refusals[0]
    return None


@dataclass(frozen=True, slots=True)
class SinkPlace:
    """The checkpoint whose rounds a sink takes; the sink may keep its own files below it."""

    spark: SparkSession
    checkpoint_path: str
    checkpoint_id: str


class NamedSink(Sink, Protocol):
    """A sink that is asked for by name.

    `open(place, *, …)` makes one. Its keyword arguments are the options of the sink; those from the command line are
    text. `target` names the one that says where the sink writes (`path`, `url`); None for a sink that needs no place.
    """

    target: ClassVar[str | None]
    open: ClassVar[Callable[..., Any]]
