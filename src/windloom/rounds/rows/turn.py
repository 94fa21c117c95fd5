"""Row queries in one round: the windows that they report, and the tuples and rows that are kept after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from windloom.plan.physical import Plan
from windloom.rounds.carry import rows_since
from windloom.rounds.cells import Cells, merge_all
from windloom.rounds.frontiers import Inputs
from windloom.rounds.round_input import RoundInput
from windloom.rounds.rows.kept import KeptTuples, kept_with, needs_after
from windloom.rounds.rows.spans import NO_ROUND, AskedRows, row_span
from windloom.rounds.rows.summaries import left_after
from windloom.rounds.state import State


@dataclass(frozen=True, slots=True)
class RowsTurn:
    """The row queries that report windows, with what their aggregates are made from, and what the round leaves.

    `reported`, `kept` and `summaries` are those of the state after the round.
    """

    answered: tuple[tuple[AskedRows, Cells | None], ...]
    reported: Mapping[str, int]
    kept: Mapping[str, KeptTuples]
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
    standing = {}
    for planned in plan.rows:
        cells = summaries.get(planned.name)
        left = None if cells is None else left_after(cells, until[planned.query.inputs])
        if left is not None:
            standing[planned.name] = left
    return RowsTurn(
        tuple((asked_rows, summaries.get(asked_rows.planned.name)) for asked_rows in asked),
        {**state.reported, **{asked_rows.planned.name: round_input.round for asked_rows in asked}},
        needs_after(plan, until, moved.seen, moved.frontiers).left_of(kept_with(state.kept, round_input.kept, plan)),
        standing,
    )


def asked_rows(plan: Plan, intervals: Mapping[str, tuple[int, int]], state: State) -> list[AskedRows]:
    """Return the row queries of which a round reports windows; `intervals` gives the ends `(after, until]` of every
    query.
    """
    asked = []
    for planned in plan.rows:
        after, until = intervals[planned.name]
        # Where windows are left out, because they are not complete, the one before was not reported.
        is_next = after <= state.closed_over(planned.query.inputs)
        seen = state.reported.get(planned.name, NO_ROUND) if is_next else NO_ROUND
        span = row_span(planned.query.window, after, until, seen)
        if span is not None:
            asked.append(AskedRows(planned, span))
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
