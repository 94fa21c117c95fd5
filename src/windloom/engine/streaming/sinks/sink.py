"""What a sink is: a place that takes the answers of a round, once or again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table of answers: its columns with their Spark types; its queries, each with its grouping columns."""

    columns: Mapping[str, str]
    queries: Mapping[str, tuple[str, ...]]


class Sink(Protocol):
    """`write` is given whole rounds, in order; after a crash the last one comes again, with the same rows.

    Rows of a table may come in several pieces. `tables` describes every table the plan may fill.
    """

    def write(self, round: int, pieces: Iterable[tuple[str, pa.Table]], tables: Mapping[str, TableInfo]) -> None: ...

    def rows(self, table: str) -> pa.Table | None:
        """What the sink holds of a table; None where it keeps nothing that could be read back."""
        ...

    def close(self) -> None: ...
