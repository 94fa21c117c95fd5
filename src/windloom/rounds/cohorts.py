"""Cohorts: queries of a tree that are answered together, and the arrays that all their blocks share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.cells.locate import WindowArrays
from windloom.kernels.cells.seek import NO_LANDMARK
from windloom.model.aggregate import Aggregate
from windloom.model.time import TICK_MIN
from windloom.plan.physical import Member, PartialSet, Plan, PlannedQuery
from windloom.rounds.windows.life import Landmark


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of one answer column: queries `first : last` of a shape run fill it from the same components."""

    first: int
    last: int
    aggregate: Aggregate
    components: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShapeRun:
    """Queries `first : last` of a cohort, which have one shape and the same grouping columns."""

    first: int
    last: int
    queries: tuple[PlannedQuery, ...]
    query_names: tuple[str, ...]
    names: tuple[str, ...]  # of the table's columns
    columns: tuple[tuple[Piece, ...], ...]  # one for each answer column


@dataclass(frozen=True, slots=True)
class Cohort:
    """Consecutive queries of a tree; `wanted` holds, by component, those that need it.

    By query, windows end in `(after, until]`. `since` is the first start of windows, for kinds of windows whose ends do
    not determine it.
    """

    windows: WindowArrays
    after: NDArray[np.int64]
    until: NDArray[np.int64]
    since: NDArray[np.int64]
    wanted: Mapping[int, NDArray[np.int64]]
    shapes: tuple[ShapeRun, ...] = ()


def make_windows(
    partial_set: PartialSet,
    queries: Sequence[Member],
    intervals: Sequence[tuple[int, int]],
    landmarks: Mapping[str, Landmark],
    since: Mapping[str, int],
) -> Cohort:
    """Return the cohort of some queries, yet without shapes; `intervals` are `(after, until]` for the ends of each."""
    windows = [planned.query.window for planned in queries]
    arrays = WindowArrays(
        np.array([window.range_ticks for window in windows], np.int64),
        np.array([window.slide_ticks for window in windows], np.int64),
        np.array([window.offset_ticks for window in windows], np.int64),
        np.array(
            [landmarks[query.name].start if query.name in landmarks else NO_LANDMARK for query in queries], np.int64
        ),
        np.array([window.restart_ticks or 0 for window in windows], np.int64),
    )
    after = [after for after, _ in intervals]
    until = [
        min(until, landmarks[planned.name].until) if planned.name in landmarks else until
        for planned, (_, until) in zip(queries, intervals, strict=True)
    ]
    needs = [set(planned.query.components) for planned in queries]
    wanted = {}
    for index, component in enumerate(partial_set.components):
        indexes = [i for i, need in enumerate(needs) if component.component in need]
        if indexes:
            wanted[index] = np.array(indexes, np.int64)
    first_starts = np.array([since.get(planned.name, TICK_MIN) for planned in queries], np.int64)
    return Cohort(arrays, np.array(after, np.int64), np.array(until, np.int64), first_starts, wanted)


def shape_runs(plan: Plan, partial_set: PartialSet, queries: tuple[PlannedQuery, ...]) -> tuple[ShapeRun, ...]:
    """Return the stretches of queries that have one shape and the same grouping columns."""
    runs = []
    for first, last in _same_shape(queries):
        mine = queries[first:last]
        shape = plan.shapes[mine[0].shape]
        names = ("window_start", "window_end", *(name for name, _ in shape.groups + shape.columns))
        columns = tuple(tuple(_pieces(partial_set, mine, column)) for column in range(len(shape.columns)))
        runs.append(ShapeRun(first, last, mine, tuple(planned.name for planned in mine), names, columns))
    return tuple(runs)


def _pieces(partial_set: PartialSet, queries: tuple[PlannedQuery, ...], column: int) -> Iterator[Piece]:
    """Yield the pieces of a column: queries may fill it from different arguments (`sum(a) AS x`, `sum(b) AS x`)."""
    position = {planned_component.component: i for i, planned_component in enumerate(partial_set.components)}
    aggregates = [planned.query.aggregates[planned.columns[column]] for planned in queries]
    first = 0
    for i in range(1, len(queries) + 1):
        if i == len(queries) or aggregates[i] != aggregates[first]:
            yield Piece(
                first, i, aggregates[first], tuple(position[component] for component in aggregates[first].components)
            )
            first = i


def _same_shape(queries: tuple[PlannedQuery, ...]) -> Iterator[tuple[int, int]]:
    first = 0
    for i in range(1, len(queries) + 1):
        if i == len(queries) or (queries[i].shape, queries[i].group_positions) != (
            queries[first].shape,
            queries[first].group_positions,
        ):
            yield first, i
            first = i
