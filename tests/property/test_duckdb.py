"""The two oracles against each other: DuckDB's SQL of a query, and the answer by definition."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given, settings

from support.catalogs import COLUMNS, ROWS, STREAM, catalogs
from support.duck import assert_equals_duckdb
from windloom.model import Query
from windloom.rounds.lower import arrow_type
from windloom.testing import answer

SCHEMA = pa.schema([(name, arrow_type(kind)) for name, kind in COLUMNS.items()])


@settings(max_examples=60, deadline=None)
@given(queries=catalogs(), rows=ROWS)
def test_duckdb_answers_what_the_oracle_answers(queries: list[Query], rows: list[dict[str, Any]]) -> None:
    # DuckDB refuses moments of what is not finite.
    finite = [{**row, "x": row["x"] if row["x"] is None or math.isfinite(row["x"]) else None} for row in rows]
    with duckdb.connect() as base:
        base.register("s", pa.Table.from_pylist(finite, SCHEMA))
        for query in queries:
            assert_equals_duckdb(base, "s", query, STREAM, answers_of(query, finite))


def answers_of(query: Query, rows: list[dict[str, Any]]) -> pa.Table:
    names = ["window_start", "window_end", *(one.name for one in query.group_by), *(one.name for one in query.outputs)]
    found = answer(query, rows)
    return pa.table([pa.array([row[name] for row in found]) for name in names], names)
