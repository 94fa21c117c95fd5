"""Row queries in one round: the windows that they report, and the tuples and rows that are kept after it.

Aggregates over rows are summed over ends: rows are summarised by the first and the last end at which they stand. The
cells of a row query have groups of (last end, grouping columns) and begin where their rows enter. A round adds cells of
the rows that enter in it, answers every end from the cells that stand there, and drops those that have left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windloom.aggregates.columns import ComponentColumns
from windloom.aggregates.registry import lift, lower
from windloom.answers.blocks import Block, block_of, group_column, out_of_range
from windloom.answers.trees import cell_values
from windloom.model.arrays import Ints
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.types import arrow_type, as_array, as_integers
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.rows import PlannedRows
from windloom.state.cells import (
    Cells,
    CellsBuilder,
    describe_group,
    group_of_cells,
    keep_groups,
    merge_all,
    number_groups,
)
from windloom.state.frontiers import Inputs
from windloom.state.plan_change import covered_after, rows_since
from windloom.state.state import State
from windloom.state.tuple_store import (
    NO_ROUND,
    ReportedWindows,
    RowSpan,
    TupleStore,
    TupleStores,
    kept_with,
    row_span,
    without_unneeded,
)
from windloom.state.windows.registry import life_of
from windloom.weave.round_input import RoundInput

#: About this many rows are answered at a time.
BLOCK_ROWS = 1 << 20


def summarised(planned: PlannedRows, plan: Plan, table: pa.Table) -> Cells:
    """Return cells from Spark's partials: `__first`, `__last`, grouping columns, then each component's fields."""
    kinds = [kind for _, kind in plan.shapes[planned.shape].groups]
    columns = [as_array(column).cast(arrow_type(kind)) for column, kind in zip(table.columns[2:], kinds, strict=False)]
    keys = [as_array(table.column(1)).cast(pa.int64()), *columns]
    fields = iter(table.columns[2 + len(kinds) :])
    return CellsBuilder.of_rows(keys, as_integers(table.column(0))).build(
        lift(component, [next(fields) for _ in component.fields]) for component in planned.components
    )


def lasts_of(cells: Cells) -> Ints:
    """Return the last end of every group."""
    return as_integers(cells.keys[0])


def standing_cells(cells: Cells, span: RowSpan, slide: int) -> Cells:
    """Return one cell for every end of a span and group that has rows there: it begins at that end."""
    last = lasts_of(cells)[group_of_cells(cells)]
    begin = cells.starts if span.first is None else np.maximum(cells.starts, span.first)
    until = last if span.last is None else np.minimum(last, span.last)
    counts = np.maximum(0, (until - begin) // slide + 1)
    places = np.repeat(np.arange(len(cells), dtype=np.int64), counts)
    first_of = np.cumsum(counts) - counts
    ends = begin[places] + (np.arange(len(places), dtype=np.int64) - first_of[places]) * slide
    number_of, distinct = number_groups(cells.keys[1:], cells.groups)
    numbers = number_of[group_of_cells(cells)][places]
    return CellsBuilder.of_groups(numbers, distinct, ends, places).build(cells.lifted)


def summary_blocks(plan: Plan, planned: PlannedRows, cells: Cells, span: RowSpan) -> Iterator[Block]:
    """Yield the answers of a span, a stretch of ends at a time."""
    window = planned.query.window
    for part in _stretches(cells, span, window.slide_ticks):
        standing = standing_cells(cells, part, window.slide_ticks)
        if len(standing):
            yield _lowered(plan, planned, standing)


def _stretches(cells: Cells, span: RowSpan, slide: int) -> Iterator[RowSpan]:
    """Yield spans that together make up the whole one, of about `BLOCK_ROWS` cells each."""
    if not len(cells):
        return
    first = int(cells.starts.min()) if span.first is None else max(span.first, int(cells.starts.min()))
    last = int(lasts_of(cells).max()) if span.last is None else min(span.last, int(lasts_of(cells).max()))
    if last < first:
        return
    ends = (last - first) // slide + 1
    standing = float(np.sum((lasts_of(cells)[group_of_cells(cells)] - cells.starts) // slide + 1))
    step = max(1, int(ends * BLOCK_ROWS / max(1.0, standing)))
    for begin in range(first, last + 1, step * slide):
        yield RowSpan(begin, min(last, begin + (step - 1) * slide))


def _lowered(plan: Plan, planned: PlannedRows, cells: Cells) -> Block:
    """Return cells that begin at the end of their window as rows of answers."""
    shape, query = plan.shapes[planned.shape], planned.query
    starts, instant = cells.starts - query.window.range_ticks, arrow_type(shape.time)

    def refuse(row: int, value: str) -> None:
        group = describe_group(cells.keys, int(np.searchsorted(cells.group_bounds, row, side="right")) - 1)
        raise out_of_range(query, (int(starts[row]), int(cells.starts[row])), group, value)

    arrays = [pa.array(starts).view(instant), pa.array(cells.starts).view(instant)]
    arrays += [group_column(keys, cells.group_bounds) for keys in cells.keys]
    components = [planned_component.component for planned_component in planned.components]
    for index, (_, kind) in zip(planned.columns, shape.columns, strict=True):
        aggregate, values = query.aggregates[index], []
        places = [components.index(component) for component in aggregate.components]
        for lifted in (cells.lifted[place] for place in places):
            assert isinstance(lifted, ComponentColumns), "lists are not summarised"
            values.append(cell_values(lifted))
        argument = planned.components[places[0]].type_for(aggregate)
        arrays.append(lower(aggregate, argument, values, refuse).cast(arrow_type(kind)))
    return block_of(planned, shape, arrays)


@dataclass(frozen=True, slots=True)
class RowsTurn:
    """The row queries that report windows, with what their aggregates are made from, and what the round leaves.

    `reported`, `kept` and `summaries` are those of the state after the round.
    """

    answered: tuple[tuple[ReportedWindows, Cells | None], ...]
    reported: Mapping[str, int]
    kept: Mapping[str, TupleStore]
    summaries: Mapping[str, Cells]


def rows_turn(
    state: State,
    round_input: RoundInput,
    plan: Plan,
    moved: State,
    until: Mapping[Inputs, int],
    intervals: Mapping[str, tuple[int, int]],
) -> RowsTurn:
    """Return which row queries report windows, and what the round leaves of tuples and rows.

    `until` says, by inputs of queries, up to where windows are closed after the round.
    """
    asked = asked_rows(plan, intervals, state)
    # Aggregates over rows are answered from these.
    summaries = {}
    for planned in plan.rows:
        both = (state.summaries, round_input.summaries)
        parts = [by_query[planned.name] for by_query in both if planned.name in by_query]
        if parts:
            summaries[planned.name] = merge_all(parts)
    standing = {}  # the rows that stand at an end which is not closed yet
    for planned in plan.rows:
        cells, closed = summaries.get(planned.name), until[planned.query.inputs]
        if cells is not None and closed < TICK_MAX and (stays := lasts_of(cells) > closed).any():
            standing[planned.name] = keep_groups(cells, stays)
    return RowsTurn(
        tuple((asked_rows, summaries.get(asked_rows.planned.name)) for asked_rows in asked),
        {**state.reported, **{asked_rows.planned.name: round_input.round for asked_rows in asked}},
        without_unneeded(kept_with(state.kept, round_input.kept, plan), plan, until, moved.seen, moved.frontiers),
        standing,
    )


def asked_rows(plan: Plan, intervals: Mapping[str, tuple[int, int]], state: State) -> list[ReportedWindows]:
    """Return the row queries of which a round reports windows; `intervals` gives the ends `(after, until]` of each."""
    asked = []
    for planned in plan.rows:
        after, until = intervals[planned.name]
        # Where windows are left out, because they are not complete, the one before was not reported.
        is_next = after <= state.closed_over(planned.query.inputs)
        seen = state.reported.get(planned.name, NO_ROUND) if is_next else NO_ROUND
        span = row_span(planned.query.window, after, until, seen)
        if span is not None:
            asked.append(ReportedWindows(planned, span))
    return asked


def without_lost(state: State, round_input: RoundInput, plan: Plan) -> State:
    """Return the state after tuples have been lost: row queries do not report the windows that would need them."""
    if not any(brought_tuples.lost for brought_tuples in round_input.kept.values()):
        return state
    stores = kept_with(state.kept, round_input.kept, plan)
    since, summaries, reported = dict(state.since), dict(state.summaries), dict(state.reported)
    for planned in plan.rows:
        streams = set(planned.rows.streams)
        if any(brought_tuples.lost and name in streams for name, brought_tuples in round_input.kept.items()):
            for name, tick in rows_since(planned, stores).items():
                since[name] = max(tick, since.get(name, tick))
            if planned.is_summarised:
                # All rows are made again from what is there, as if the query were new.
                summaries.pop(planned.name, None)
                reported.pop(planned.name, None)
    return replace(state, since=since, summaries=summaries, reported=reported)


def columns_of(partial_set: PartialSet) -> set[str]:
    """Return the columns of its stream that a set is made from."""
    expressions = [each for planned in partial_set.components for each in planned.component.expressions]
    expressions += [*partial_set.group_by, *([partial_set.predicate.expression] if partial_set.predicate else [])]
    return {column for expression in expressions for column in expression.columns}


def set_since(partial_set: PartialSet, kept: TupleStores) -> int | None:
    """Return the tick from which kept tuples hold all that a set needs; None if they do not hold it."""
    if partial_set.stream not in kept or partial_set.counted_by is not None:
        return None
    predicate = partial_set.predicate
    return kept[partial_set.stream].since(columns_of(partial_set), None if predicate is None else predicate.sql)


def sets_since(sets: Iterable[PartialSet], kept: TupleStores) -> Mapping[str, int] | None:
    """Return the tick, by stream, from which kept tuples hold all that the sets need; None if one lacks something."""
    ticks_by_stream: dict[str, int] = {}
    for partial_set in sets:
        since = set_since(partial_set, kept)
        if since is None or not life_of(partial_set.window).weaves_again:
            return None
        ticks_by_stream[partial_set.stream] = max(since, ticks_by_stream.get(partial_set.stream, since))
    return ticks_by_stream


def rows_question(
    planned: PlannedRows, kept: TupleStores, closed: int
) -> tuple[ReportedWindows | None, int | None] | None:
    """Return every complete window of a row query that kept tuples cover, and the start of the first of them.

    Returns None if tuples that it reads are not kept, and no windows to ask for if none is complete.
    """
    after = covered_after(planned, kept)
    if after is None:
        return None
    span = row_span(planned.query.window, after, closed, NO_ROUND)
    first = None if after == TICK_MIN else after - planned.query.window.range_ticks + 1
    return (None if span is None else ReportedWindows(planned, span)), first
