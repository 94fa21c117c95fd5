"""Answers for sinks, finished already: rows of queries `a` (grouped by `k`) and `b` in one table `t`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from windloom.answers.blocks import Block
from windloom.language.select import parse_query
from windloom.model import DataType, Stream
from windloom.sinks.sink import SinkPlace, TableInfo

COLUMNS = {"query": "string", "window_start": "bigint", "window_end": "bigint", "k": "string", "n": "bigint"}
_STREAM = Stream("s", {"tick": DataType.parse("bigint"), "k": DataType.parse("string")}, "tick", time_unit="us")
_ASKED = {
    name: parse_query(name, f"SELECT count(*) AS n FROM s [TUMBLE 10 us]{grouped}", {"s": _STREAM})
    for name, grouped in (("a", " GROUP BY k"), ("b", ""))
}
TABLES = {"t": TableInfo(COLUMNS, {"a": ("k",), "b": ()}, asked=_ASKED)}


#: Rows of a query `e` with EMIT EARLY and of a query `f` that has columns of the same names and types.
EARLY_COLUMNS = {**COLUMNS, "report": "string", "as_of": "bigint"}
_EARLY = {
    "e": parse_query(
        "e", "SELECT k, count(*) AS n FROM s [TUMBLE 10 us] GROUP BY k EMIT EARLY EVERY 3 us", {"s": _STREAM}
    ),
    "f": parse_query("f", "SELECT k, count(*) AS n FROM s [TUMBLE 10 us] GROUP BY k", {"s": _STREAM}),
}
EARLY_TABLES = {"t": TableInfo(EARLY_COLUMNS, dict.fromkeys(_EARLY, ("k",)), asked=_EARLY)}
CHANGED_TABLES = {
    "t": TableInfo(
        {**COLUMNS, "change": "string"},
        {"c": ("k",)},
        asked={
            "c": parse_query(
                "c", "SELECT k, count(*) AS n FROM s [TUMBLE 10 us] GROUP BY k EMIT CHANGES", {"s": _STREAM}
            )
        },
    )
}


@dataclass(frozen=True)
class Given:
    """Answers that are finished already."""

    finished: list[tuple[str, pa.Table]]
    tables: Mapping[str, TableInfo]

    def rows(self) -> list[tuple[str, pa.Table]]:
        return self.finished

    def blocks(self) -> Iterator[Block]:
        return iter(())

    def until(self, query: str) -> int:
        return max(end for _, table in self.finished for end in table["window_end"].to_pylist())

    def schema(self, query: str) -> pa.Schema:
        return self.finished[0][1].drop_columns("query").schema


def piece(*rows: tuple[str, int, str | None, int]) -> tuple[str, pa.Table]:
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
    query, end, k, n = columns
    start = [tick - 10 for tick in end]
    keys = pa.array(k, pa.string())
    return "t", pa.table({"query": query, "window_start": start, "window_end": end, "k": keys, "n": n})


def early_piece(*rows: tuple[str, int, str | None, int | None, str, int | None]) -> tuple[str, pa.Table]:
    """Rows (query, end, k, n, report, as_of)."""
    query, end, k, n, report, as_of = ([*column] for column in zip(*rows, strict=True))
    table = piece(*zip(query, end, k, [0] * len(n), strict=True))[1].set_column(4, "n", pa.array(n, pa.int64()))
    return "t", table.append_column("report", pa.array(report)).append_column("as_of", pa.array(as_of, pa.int64()))


def place(folder: Path) -> SinkPlace:
    return SinkPlace(None, str(folder / "checkpoint"), "c1")  # type: ignore[arg-type]
