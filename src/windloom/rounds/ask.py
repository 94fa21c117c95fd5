"""A one-time question, answered from what is kept: every complete window of it that the cells cover."""

from __future__ import annotations

import numpy as np

from windloom.errors import WindloomError
from windloom.model.time import TICK_MIN, format_duration
from windloom.plan.physical import PartialSet, Plan, PlannedQuery
from windloom.rounds.answers import Answers
from windloom.rounds.backfill import Past
from windloom.rounds.carry import carry_set
from windloom.rounds.exact import first_exact, kept_from
from windloom.rounds.landmarks import landmarks_of
from windloom.rounds.state import History, State


def ask(state: State, plan: Plan, query_plan: Plan, past: Past | None = None) -> tuple[Answers, int | None]:
    """Answers of the one query of `query_plan`, from the cells of `plan`, as far as its windows are closed.

    Where these do not tell, `past` is asked: the tuples of past rounds. The tick is the start of the first exact
    window, None if every one is. Refuses questions of which nothing is kept.
    """
    (one,) = query_plan.sets
    (planned,) = one.queries
    if one.counted_by is not None:
        raise WindloomError(
            f"query '{planned.name}' cannot be answered from what is kept",
            f"its windows {planned.query.window} are of rows, whose positions are not kept for questions",
            "add it as a query: it counts from the next round on",
        )
    before = plan.by_identity.get(one.identity)
    cells, history = carry_set(state, before, one)
    window = planned.query.window
    closed = state.closed_of(one)
    since = first_exact(one, planned, history, state.seen.get(one.stream))
    last = (closed - window.offset_ticks - window.range_ticks) // window.slide_ticks
    last_start = last * window.slide_ticks + window.offset_ticks
    if since is not None and since > last_start and past is not None and (found := past(one)) is not None:
        cells, history = found
        since = first_exact(one, planned, history, state.seen.get(one.stream))
    if since is not None and since > last_start:
        raise _refusal(one, planned, before, history, closed, last_start)
    after = TICK_MIN if since is None else since + window.range_ticks - 1
    own_since = {} if since is None else {planned.name: since}
    landmarks = landmarks_of(query_plan, own_since, state.first, state.seen, {one.number: closed})
    held = {} if cells is None else {one.number: cells}
    return Answers(query_plan, held, {one.number: after}, {one.number: closed}, landmarks=landmarks), since


def _refusal(
    one: PartialSet, planned: PlannedQuery, before: PartialSet | None, history: History, closed: int, last_start: int
) -> WindloomError:
    message = f"query '{planned.name}' cannot be answered from what is kept"
    if before is None:
        return WindloomError(
            message,
            f"no running query has this stream, condition and grouping: FROM {one.identity}",
            "add it as a query: it answers from the next round on",
        )
    unknown = [str(one.components[index].component) for index, tick in history.known_from.items() if tick > last_start]
    wanted = {str(component) for component in planned.query.components}
    if wanted.intersection(unknown):
        missing = ", ".join(sorted(wanted.intersection(unknown)))
        return WindloomError(
            message,
            f"{missing} is not kept for its windows: no running query asks for it, or has not for long enough",
            "ask for what running queries aggregate, or add it as a query",
        )
    held_from = kept_from(one, planned, history)
    if held_from > last_start:
        held = f"since {_instant(held_from)}" if held_from <= closed else "nothing that long ago"
        return WindloomError(
            message,
            f"its last complete window begins at {_instant(last_start)}, and kept is {held}",
            f"keep at least {format_duration(closed - last_start)} of history when the stream is started",
        )
    return WindloomError(
        message,
        f"its windows {planned.query.window} begin or end inside slices, which cannot be divided",
        "ask for windows whose edges are edges of running queries, or add it as a query",
    )


def _instant(tick: int) -> str:
    return str(np.datetime64(tick, "us"))
