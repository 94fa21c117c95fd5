"""Queries as DuckDB's SQL and its answers beside ours: an oracle that shares only the parsed query with the engine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from windloom.model import Aggregate, Expression, Query, Stream, TypeKind
from windloom.model.time import INTEGER_UNITS
from windloom_tools.oracle.moments import OF_ONE, OF_TWO

#: Answers of floating-point numbers agree to this, relative to themselves or to the largest value that went into them.
TOLERANCE = 1e-9
_MOMENTS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
_PICKS = {"min_by": "min", "first": "min", "max_by": "max", "last": "max"}
_ROUNDED = ("sum", "avg", "try_sum", "try_avg", "quantile", *_MOMENTS)
#: Sketches, lists of values, and moments for which DuckDB has other corrections, or refuses infinities.
WITHOUT_EQUAL = (
    *OF_ONE,
    *OF_TWO,
    "approx_count_distinct",
    "approx_quantile",
    "approx_top",
    "frequent",
    "top",
    "mode",
    "approx_percentile",
)


def duckdb_sql(query: Query, stream: Stream, table: str) -> str:
    """The query over windows of time, a row per tuple and window; behind its outputs the scale of each aggregate."""
    window, tick = query.window, _tick(stream)
    slide = window.slide_ticks
    last = f"{tick} - (({tick} - {window.offset_ticks}) % {slide} + {slide}) % {slide}"
    starts = f"SELECT *, {last} - __k * {slide} AS __start, {tick} AS __tick FROM {table}"
    starts += f", range(0, {window.range_ticks // slide + 1}) __x(__k)"
    held = f"__tick < __start + {window.range_ticks}"
    where = held if query.where is None else f"{held} AND CAST({_duck(query.where)} AS BOOLEAN)"
    columns = ["__start", *(f"{_duck(grouping.expression)} AS __g{i}" for i, grouping in enumerate(query.group_by))]
    columns += [f"{aggregate_sql(aggregate)} AS __a{i}" for i, aggregate in enumerate(query.aggregates)]
    columns += [f"{scale_sql(aggregate)} AS __s{i}" for i, aggregate in enumerate(query.aggregates)]
    by = ", ".join(str(i + 1) for i in range(1 + len(query.group_by)))
    grouped = f"SELECT {', '.join(columns)} FROM ({starts}) WHERE {where} GROUP BY {by}"
    outputs = [f"__g{i}" for i in range(len(query.group_by))]
    outputs += [
        f"__a{output.aggregate}" if output.expression is None else _duck(output.expression) for output in query.outputs
    ]
    outputs += [f"__s{i}" for i in range(len(query.aggregates))]
    having = "" if query.having is None else f" WHERE {_duck(query.having)}"
    named = ", ".join(f"{output} AS c{i}" for i, output in enumerate(outputs))
    return f"SELECT __start, __start + {window.range_ticks} AS __end, {named} FROM ({grouped}){having}"


def assert_equals_duckdb(
    base: duckdb.DuckDBPyConnection, table: str, query: Query, stream: Stream, answers: pa.Table
) -> int:
    """Same windows and groups, same values; how many rows there are."""
    wanted = base.sql(duckdb_sql(query, stream, table)).to_arrow_table()
    keys, outputs = 2 + len(query.group_by), len(query.outputs)
    expected, found = dict(rows_of(wanted, keys)), dict(rows_of(answers, keys))
    assert len(found) == answers.num_rows, f"a row was reported twice: {query.text}"
    assert found.keys() == expected.keys(), f"{query.text}\nnot the same: {some_of(found.keys() ^ expected.keys())}"
    for key, row in expected.items():
        scales = [0.0 if size is None else float(size) for size in row[outputs:]]
        for output, theirs, ours in zip(query.outputs, row[:outputs], found[key], strict=True):
            aggregate = None if output.aggregate is None else query.aggregates[output.aggregate]
            if aggregate is not None and aggregate.function in WITHOUT_EQUAL:
                continue
            scale = max(scales, default=0.0) if output.aggregate is None else scales[output.aggregate]
            assert is_close(theirs, ours, scale), f"{query.text}\n{key} {output.name}: {ours!r}, DuckDB has {theirs!r}"
    return len(expected)


def widened(table: pa.Table) -> pa.Table:
    """The table with doubles for floats: DuckDB compares a FLOAT with a decimal as two floats, Spark as two doubles."""
    kinds = [pa.float64() if pa.types.is_float32(column.type) else column.type for column in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))


def _duck(expression: Expression) -> str:
    return str(sqlglot.transpile(expression.sql, read="spark", write="duckdb")[0])


def _tick(stream: Stream) -> str:
    column = f'"{stream.time}"'
    if stream.columns[stream.time].kind is TypeKind.INTEGER:
        return f"({column} * {INTEGER_UNITS[stream.time_unit or 'us']})"
    return f"epoch_us({column})"


def aggregate_sql(aggregate: Aggregate, tick: str = "__tick") -> str:
    """`tick` is the column of event time that FIRST and LAST compare."""
    where = "" if aggregate.where is None else f" FILTER (WHERE CAST({_duck(aggregate.where)} AS BOOLEAN))"
    if aggregate.argument is None:
        return f"count(*){where}"
    argument = _duck(aggregate.argument)
    if aggregate.function in _PICKS:
        by = tick if aggregate.by is None else _duck(aggregate.by)
        condition = f"({by}) IS NOT NULL"
        if aggregate.where is not None:
            condition += f" AND CAST({_duck(aggregate.where)} AS BOOLEAN)"
        # Of tuples that tie, the least or greatest value is picked, and NULL is the least of all: not so in DuckDB.
        values = aggregate.picked or (aggregate.argument,)
        pairs = (f"'known{i}': ({_duck(each)}) IS NOT NULL, 'x{i}': {_duck(each)}" for i, each in enumerate(values))
        ordered, field = f"{{'y': {by}, {', '.join(pairs)}}}", f"x{values.index(aggregate.argument)}"
        return f"struct_extract({_PICKS[aggregate.function]}({ordered}) FILTER (WHERE {condition}), '{field}')"
    match aggregate.function:
        case "count_distinct":
            return f"count(DISTINCT {argument}){where}"
        case "quantile":
            return f"quantile_cont(CAST({argument} AS DOUBLE), {aggregate.parameters[0]}){where}"
        case function if function in WITHOUT_EQUAL:
            return "NULL"
        case function if function in _MOMENTS:
            return f"{function}(CAST({argument} AS DOUBLE)){where}"
        case function:
            return f"{function.removeprefix('try_')}({argument}){where}"


def scale_sql(aggregate: Aggregate) -> str:
    """What an error of the aggregate is relative to."""
    if aggregate.argument is None or aggregate.function not in _ROUNDED:
        return "0.0"
    largest = f"max(abs(CAST({_duck(aggregate.argument)} AS DOUBLE)))"
    return f"power({largest}, 2)" if aggregate.function.startswith("var") else largest


def rows_of(table: pa.Table, keys: int) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    columns = [_instants(column).to_pylist() for column in table.columns]
    for row in zip(*columns, strict=True):
        yield tuple(_plain(value) for value in row[:keys]), list(row[keys:])


def _instants(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as microseconds: the engines name their zones differently."""
    if not pa.types.is_timestamp(column.type):
        return column
    return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())


def _plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def is_close(theirs: Any, ours: Any, scale: float) -> bool:
    if theirs is None or ours is None:
        return theirs is ours
    if not isinstance(ours, float | Decimal):
        return bool(theirs == ours)
    # The mean of decimals is a decimal, rounded to its last digit; DuckDB's is a floating-point number.
    step = 10.0 ** int(ours.as_tuple().exponent) if isinstance(ours, Decimal) and isinstance(theirs, float) else 0.0
    left, right = float(theirs), float(ours)
    if not (math.isfinite(left) and math.isfinite(right)):
        return left == right or (math.isnan(left) and math.isnan(right))
    return abs(left - right) <= TOLERANCE * max(abs(left), abs(right), scale) + step


def some_of(keys: set[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(keys, key=repr)[:3]
