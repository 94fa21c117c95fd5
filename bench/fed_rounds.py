"""Rounds that bring one table of rows to a sink: what is measured is the sink alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from windloom.answers.blocks import Block
from windloom.model import Query
from windloom.sinks.sink import TableInfo

MINUTE = 60_000_000
EDGE = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class FedRound:
    """The answers of round `number`, a minute each, to one row query that is called "pairs"."""

    query: Query
    number: int
    table: pa.Table

    @property
    def tables(self) -> Mapping[str, TableInfo]:
        return {"pairs": TableInfo({}, {"pairs": ()}, frozenset({"pairs"}), frozenset(), {"pairs": self.query})}

    def rows(self) -> Iterable[tuple[str, pa.Table]]:
        return [("pairs", self.table)]

    def until(self, query: str) -> int:
        return self.number * MINUTE

    def schema(self, query: str) -> pa.Schema:
        return self.table.drop_columns("query").schema

    def blocks(self) -> Iterator[Block]:
        return iter(())
