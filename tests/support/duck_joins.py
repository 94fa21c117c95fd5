"""Joins as DuckDB's SQL, from the description of a test: each source a table of its tuples, once for each end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from support.compare_joins import scales
from support.duck import aggregate_sql, is_close, rows_of, some_of
from support.join_catalogs import COLUMNS
from support.join_texts import Asked, Read
from windloom.model import Query
from windloom.model.types import arrow_type

_SCHEMA = pa.schema([(name, arrow_type(kind)) for name, kind in COLUMNS.items()])


def duckdb_join_sql(asked: Asked, query: Query, ticks: Mapping[str, Sequence[int]]) -> str:
    """`ticks` are those of each stream, which decide where landmark windows end."""
    source = asked.from_sql(lambda read: _source(asked, read, ticks))
    source = sqlglot.transpile(f"SELECT 1 {source}", read="spark", write="duckdb")[0].removeprefix("SELECT 1 ")
    columns = [f"{asked.first.alias}.__e AS __end"]
    columns += [f"{alias}.{column} AS __g{i}" for i, (alias, column) in enumerate(asked.groups)]
    columns += [f"{aggregate_sql(aggregate)} AS __a{i}" for i, aggregate in enumerate(query.aggregates)]
    by = ", ".join(str(i + 1) for i in range(1 + len(asked.groups)))
    having = "" if asked.having is None else f" HAVING count(*) {asked.having[0]} {asked.having[1]}"
    return f"SELECT {', '.join(columns)} {source} GROUP BY {by}{having}"


def _source(asked: Asked, read: Read, ticks: Mapping[str, Sequence[int]]) -> str:
    slide, own = asked.slide, asked.end_residue
    after = f"tick - (((tick - {own}) % {slide}) + {slide}) % {slide} + {slide}"  # the first end behind the tuple
    last = max((tick for source in asked.reads for tick in ticks[source.stream]), default=0)
    last_end = last - (last - own) % slide + slide
    until = f"{last_end}" if read.length is None else f"tick + {read.length}"
    if asked.is_landmark:
        until = f"least({until}, {last_end})"
    return f"(SELECT *, unnest(range({after}, {until} + 1, {slide})) AS __e FROM {read.stream})"


def assert_join_equals_duckdb(
    asked: Asked, query: Query, rows: Mapping[str, Sequence[Mapping[str, Any]]], answers: Sequence[Mapping[str, Any]]
) -> int:
    """Same ends and groups, same values; how many rows there are."""
    with duckdb.connect() as base:
        for name, own in rows.items():
            base.register(name, pa.Table.from_pylist([dict(row) for row in own], _SCHEMA))
        ticks = {name: [row["tick"] for row in own] for name, own in rows.items()}
        wanted = base.sql(duckdb_join_sql(asked, query, ticks)).to_arrow_table()
    keys = 1 + len(asked.groups)
    expected = dict(rows_of(wanted, keys))
    names = ["window_end", *(f"g{i}" for i in range(len(asked.groups)))]
    names += [output.name for output in query.outputs]
    found = dict(rows_of(pa.table({name: pa.array([row[name] for row in answers]) for name in names}), keys))
    assert len(found) == len(answers), f"a row was reported twice: {query.text}"
    assert found.keys() == expected.keys(), f"{query.text}\nnot the same: {some_of(found.keys() ^ expected.keys())}"
    sizes = scales(query, rows)
    for key, row in expected.items():
        for output, theirs, ours in zip(query.outputs, row, found[key], strict=False):
            assert output.aggregate is not None
            size = sizes[key][output.aggregate]
            assert is_close(theirs, ours, size), f"{query.text}\n{key} {output.name}: {ours!r}, DuckDB has {theirs!r}"
    return len(expected)
