"""The two oracles against each other: DuckDB's SQL of a query, and the answer by definition."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings

from support.catalogs import COLUMNS, ROWS, STREAM, catalogs, make_query
from support.drawing import examples
from support.duck import assert_equals_duckdb
from windloom.model import Aggregate, Expression, Query, TimeWindow
from windloom.model.types import arrow_type
from windloom.testing import answer

SCHEMA = pa.schema([(name, arrow_type(kind)) for name, kind in COLUMNS.items()])


@settings(max_examples=examples(60), deadline=None)
@given(queries=catalogs(), rows=ROWS)
def test_duckdb_answers_what_the_oracle_answers(queries: list[Query], rows: list[dict[str, Any]]) -> None:
    # DuckDB refuses moments of what is not finite.
    finite = [{**row, "x": row["x"] if row["x"] is None or math.isfinite(row["x"]) else None} for row in rows]
    with duckdb.connect() as base:
        base.register("s", pa.Table.from_pylist(finite, SCHEMA))
        for query in queries:
            assert_equals_duckdb(base, "s", query, STREAM, answers_of(query, finite))


def test_a_wrong_value_a_missing_row_and_a_row_reported_twice_are_noticed() -> None:
    rows = [{**dict.fromkeys(COLUMNS), "tick": tick, "k": "ab"[tick % 2], "n": tick} for tick in range(12)]
    query = make_query("q", TimeWindow(6, 4), [Aggregate("sum", Expression.of_column("n"))], ("k",))
    right = answers_of(query, rows)
    with duckdb.connect() as base:
        base.register("s", pa.Table.from_pylist(rows, SCHEMA))
        assert assert_equals_duckdb(base, "s", query, STREAM, right) == right.num_rows == 8
        wrong = right.set_column(3, "o0", pa.array([value.as_py() + 1 for value in right["o0"]]))
        for answers, said in (
            (wrong, "o0: "),
            (right.slice(1), "not the same"),
            (pa.concat_tables([right, right.slice(0, 1)]), "twice"),
        ):
            with pytest.raises(AssertionError, match=said):
                assert_equals_duckdb(base, "s", query, STREAM, answers)


def answers_of(query: Query, rows: list[dict[str, Any]]) -> pa.Table:
    names = [
        "window_start",
        "window_end",
        *(grouping.name for grouping in query.group_by),
        *(output.name for output in query.outputs),
    ]
    found = answer(query, rows)
    return pa.table([pa.array([row[name] for row in found]) for name in names], names)
