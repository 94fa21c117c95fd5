"""Comparing answers to a join with the oracle's: exact values equal, floats within what their terms allow."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from windloom.model import Aggregate, Query
from windloom_tools.oracle.joins import Landmarks, answer_join, joined_rows
from windloom_tools.oracle.scalar_functions import Row
from windloom_tools.oracle.scalars import scalar

Key = tuple[Any, ...]
Streams = Mapping[str, Sequence[Row]]

#: Relative to the magnitudes of all terms of a sum.
TOLERANCE = 1e-12


def assert_equal_join(
    query: Query, streams: Streams, actual: Sequence[Row], landmarks: Landmarks | None = None
) -> None:
    assert_equal_join_rows(query, streams, answer_join(query, streams, landmarks=landmarks), actual, landmarks)


def assert_equal_join_rows(
    query: Query, streams: Streams, wanted: Sequence[Row], actual: Sequence[Row], landmarks: Landmarks | None = None
) -> None:
    """The same for some of the query's windows; `streams` are the tuples they were computed from."""
    starts = [{key_of(query, row): row["window_start"] for row in rows} for rows in (wanted, actual)]
    assert_equal_ends(query, streams, wanted, actual, landmarks)
    assert starts[0] == starts[1], f"{query.text}\nwindows begin elsewhere"


def assert_equal_ends(
    query: Query,
    streams: Streams,
    wanted: Sequence[Row],
    actual: Sequence[Row],
    landmarks: Landmarks | None = None,
    without: Sequence[str] = (),
) -> None:
    """The same for rows that do not tell where their windows begin; some functions are not compared."""
    expected, found = ({key_of(query, row): row for row in rows} for rows in (wanted, actual))
    assert len(found) == len(actual), f"a row was reported twice: {query.text}"
    assert found.keys() == expected.keys(), f"{query.text}\nnot the same: {list(found.keys() ^ expected.keys())[:3]}"
    sizes = scales(query, streams, landmarks)
    for key, row in expected.items():
        for output in query.outputs:
            if output.aggregate is not None and query.aggregates[output.aggregate].function in without:
                continue
            size = math.inf if output.aggregate is None else sizes[key][output.aggregate]
            left, right = row[output.name], found[key][output.name]
            assert is_close(left, right, size), f"{query.text}\n{key} {output.name}: {right!r}, the oracle has {left!r}"


def key_of(query: Query, row: Row) -> Key:
    return row["window_end"], *(plain(row[grouping.name]) for grouping in query.group_by)


def plain(value: Any) -> Any:
    """A value as part of a key: NaN equals itself."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def scales(query: Query, streams: Streams, landmarks: Landmarks | None = None) -> Mapping[Key, list[float]]:
    """By window end and group: for every aggregate the sum of the magnitudes of its terms, or of their squares."""
    assert query.join is not None
    found: dict[Key, list[float]] = defaultdict(lambda: [0.0] * len(query.aggregates))
    sized = [(i, asked) for i, asked in enumerate(query.aggregates) if is_rounded(asked)]
    for row in joined_rows(query.join, streams, landmarks=landmarks):
        group = tuple(plain(scalar(grouping.expression.sql)(row)) for grouping in query.group_by)
        for i, aggregate in sized:
            size = magnitude(aggregate, row)
            found[row.window[1], *group][i] += size * size if aggregate.function.startswith(("var", "std")) else size
    return found


def is_rounded(aggregate: Aggregate) -> bool:
    return aggregate.argument is not None and aggregate.function.startswith(("sum", "avg", "var", "std", "quantile"))


def magnitude(aggregate: Aggregate, row: Row) -> float:
    """The sum of the magnitudes of a polynomial's terms: every minus a plus, every value as if positive."""
    assert aggregate.argument is not None
    value = scalar(aggregate.argument.sql.replace("-", "+"))(_Magnitudes(row))
    return 0.0 if value is None or not math.isfinite(value) else float(value)


class _Magnitudes(dict[str, Any]):
    def __init__(self, row: Row) -> None:
        super().__init__()
        self._row = row

    def __missing__(self, name: str) -> Any:
        value = self._row[name]
        return abs(value) if isinstance(value, int | float | Decimal) else value


def is_close(left: Any, right: Any, size: float) -> bool:
    if left is None or right is None:
        return left is right
    if not isinstance(left, float):
        return str(left) == str(right) if isinstance(left, list | dict) else bool(left == right)
    if not math.isfinite(left) or not math.isfinite(right):
        return left == right or (math.isnan(left) and math.isnan(right))
    if left == right or abs(left - right) <= TOLERANCE * size:
        return True
    # A standard deviation is off by at most the root of what its variance is off.
    return left >= 0 and abs(left * left - right * right) <= TOLERANCE * size
