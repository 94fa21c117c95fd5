"""Comparing the step's answers with the oracle's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from windloom.answers.blocks import Block
from windloom.model import Query
from windloom.testing import answer
from windloom_tools.oracle.moments import OF_ONE, OF_TWO, size_of

Row = dict[str, Any]


def rows_of(blocks: Iterable[Block], query: Query) -> list[Row]:
    """A query's rows, times as ticks."""
    found: list[Row] = []
    for block in blocks:
        for i, name in enumerate(block.queries):
            if name == query.name:
                piece = block.table.slice(block.bounds[i], block.bounds[i + 1] - block.bounds[i])
                for edge, column in ((0, "window_start"), (1, "window_end")):
                    piece = piece.set_column(edge, column, piece[column].cast(pa.int64()))
                found += piece.to_pylist()
    return found


def assert_equal_answers(query: Query, rows: Sequence[Row], actual: list[Row]) -> None:
    """Same windows and groups, exact values equal, floats within 1e-12 of Σ|x| of their window."""
    assert_equal_rows(query, rows, answer(query, rows), actual)


def assert_equal_rows(query: Query, rows: Sequence[Row], wanted: list[Row], actual: list[Row]) -> None:
    """The same for some of the query's windows; `rows` are the tuples they were computed from."""
    expected = {_key(query, row): row for row in wanted}
    found = {_key(query, row): row for row in actual}
    assert len(found) == len(actual), "a row was reported twice"
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        members = [row_ for row_ in rows if _in_window(query, row_, key)]
        for output in query.outputs:
            assert output.aggregate is not None
            left, right = row[output.name], found[key][output.name]
            assert _close(left, right, _scale(query, output.aggregate, members)), (key, output.name, left, right)


def _in_window(query: Query, row: Row, key: tuple[Any, ...]) -> bool:
    group = tuple(_plain(row[str(grouping.expression.column)]) for grouping in query.group_by)
    return group == key[2:] and key[0] <= row["tick"] < key[1]


def _key(query: Query, row: Row) -> tuple[Any, ...]:
    return (row["window_start"], row["window_end"], *(_plain(row[grouping.name]) for grouping in query.group_by))


def _plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _scale(query: Query, index: int, members: list[Row]) -> float:
    aggregate = query.aggregates[index]
    if aggregate.argument is None or aggregate.function in ("min_by", "max_by", "first", "last"):
        return 0.0
    if aggregate.where is not None:
        members = [row for row in members if row[str(aggregate.where.column)] is True]
    values = [row[str(aggregate.argument.column)] for row in members]
    if aggregate.function in (*OF_ONE, *OF_TWO):
        seconds = values if aggregate.by is None else [row[str(aggregate.by.column)] for row in members]
        pairs = [pair for pair in zip(values, seconds, strict=True) if None not in pair]
        return size_of(aggregate.function, [(float(first), float(second)) for first, second in pairs])
    numbers = [abs(float(v)) for v in values if v is not None and not isinstance(v, str)]
    total = math.fsum(
        v * v if aggregate.function.startswith(("var", "std")) else v for v in numbers if math.isfinite(v)
    )
    # A standard deviation is off by at most the root of what its variance is off.
    return total


def _close(left: Any, right: Any, scale: float) -> bool:
    if left is None or right is None:
        return left is right
    if isinstance(left, float):
        if math.isnan(left) or math.isinf(left):
            return (math.isnan(left) and math.isnan(right)) or left == right
        if left == right or abs(left - right) <= 1e-12 * scale:
            return True
        return abs(left * left - right * right) <= 1e-12 * scale and left >= 0
    return str(left) == str(right) if isinstance(left, list | dict) else bool(left == right)
