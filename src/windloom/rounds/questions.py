"""Answers a one-time question from what is kept: every complete window that the cells cover."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from windloom.answers.answers import Answers
from windloom.errors import WindloomError
from windloom.model.time import TICK_MIN, format_instant, sufficient_duration
from windloom.plan.plan import Member, PartialSet, Plan, PlannedJoin, PlannedRelation
from windloom.state.cells import Cells, merge_all
from windloom.state.history import Past, kept_from
from windloom.state.plan_change import carry_set, joined_since
from windloom.state.state import CellCoverage, State
from windloom.state.windows.landmark import landmarks_of
from windloom.state.windows.registry import life_of

#: Gives the cells of the current version of a relation, by number of the set.
Versions = Callable[[PlannedRelation], dict[int, Cells]]


def ask(
    state: State,
    plan: Plan,
    query_plan: Plan,
    past: Past | None = None,
    versions: Mapping[int, Cells] | None = None,
    closed_before: int | None = None,
) -> tuple[Answers, int | None]:
    """Return the answers of the only query of `query_plan`, from the cells of `plan`, as far as its windows are closed.

    If these are not enough, `past` makes cells from the tuples of past rounds. With `closed_before`, windows that were
    closed at that tick are left out. The returned tick is the start of the first exact window, or None if every window
    is exact. Refuses questions for which nothing is kept. `versions` are the cells of the relations that the query
    reads, by number of the set.
    """
    (asked,) = query_plan.queries
    inputs = asked.query.inputs
    closed = state.closed_over(inputs)
    cells_by_set = dict(versions or {})
    exact: dict[str, int | None] = {
        planned.name: None
        for partial_set in query_plan.sets
        if partial_set.is_relation
        for planned in partial_set.queries
    }
    for partial_set in (partial_set for partial_set in query_plan.sets if not partial_set.is_relation):
        for planned in partial_set.queries:  # one, or the sides of a join of a stream with itself
            cells, exact[planned.name] = _kept(state, plan, partial_set, planned, closed, past, asked.name)
            if cells is not None:
                cells_by_set[partial_set.number] = cells
    if isinstance(asked, PlannedJoin):
        own_since = joined_since(query_plan, asked, exact)
    else:
        own_since = {name: tick for name, tick in exact.items() if tick is not None}
    since = own_since.get(asked.name)
    window = asked.query.window
    after = TICK_MIN if since is None else life_of(window).after_since(window, since)
    landmarks = landmarks_of(query_plan, own_since, state.first, state.seen, {inputs: closed})
    after = after if closed_before is None else max(after, closed_before)
    interval = life_of(window).interval(after, closed)
    return Answers(query_plan, cells_by_set, {asked.name: interval}, landmarks, since=own_since), since


def relation_cells(state: State, plan: Plan, query_plan: Plan, current: Versions) -> dict[int, Cells]:
    """Return the cells of every relation that a question reads, by number of the set, all of one version.

    They are the cells that the last round saw or, if something is missing there, those that `current` gives.
    """
    cells_by_set: dict[int, Cells] = {}
    for planned in query_plan.relations:
        version_cells: dict[int, Cells] = {}
        for number in planned.sets:
            partial_set = query_plan.sets[number]
            cells, _ = carry_set(state, plan.by_identity.get(partial_set.identity), partial_set)
            if cells is not None:
                version_cells[number] = cells
        if len(version_cells) < len(planned.sets):
            version_cells = current(planned)
        cells_by_set |= version_cells
    return cells_by_set


def united(parts: Iterable[State], plan: Plan, query_plan: Plan) -> State:
    """Return one state of all parts, with the cells of the sets that a question needs."""
    known = plan.by_identity
    needed = {known[partial_set.identity].number for partial_set in query_plan.sets if partial_set.identity in known}
    parts_by_set: dict[int, list[Cells]] = {}
    state = State()
    for state in parts:  # all parts have the same history
        for number in needed & set(state.cells):
            if number not in parts_by_set or not plan.sets[number].is_relation:  # every part has all of a relation
                parts_by_set.setdefault(number, []).append(state.cells[number])
    return replace(state, cells={number: merge_all(cells) for number, cells in parts_by_set.items()})


def _kept(
    state: State, plan: Plan, partial_set: PartialSet, planned: Member, closed: int, past: Past | None, name: str
) -> tuple[Cells | None, int | None]:
    """Return the cells that a query, or a side of one, is answered from, and the start of its first exact window."""
    window = planned.query.window
    life = life_of(window)
    if (obstacle := life.question_obstacle(window)) is not None:
        raise WindloomError(f"query '{name}' cannot be answered from what is kept", *obstacle)
    before = plan.by_identity.get(partial_set.identity)
    cells, history = carry_set(state, before, partial_set)
    since = life.first_exact(partial_set, planned, history, state, state.positions)
    last_start = life.last_start(window, closed)
    is_missing = since is not None and since > last_start
    if is_missing and past is not None and life.weaves_again and (woven := past(partial_set)) is not None:
        cells, history = woven
        since = life.first_exact(partial_set, planned, history, state, state.positions)
    if since is not None and since > last_start:
        raise _refusal(partial_set, planned, before, history, closed, last_start, name)
    return cells, since


def _refusal(
    partial_set: PartialSet,
    planned: Member,
    before: PartialSet | None,
    history: CellCoverage,
    closed: int,
    last_start: int,
    name: str,
) -> WindloomError:
    message = f"query '{name}' cannot be answered from what is kept"
    if before is None:
        return WindloomError(
            message,
            f"no running query has this stream, condition, grouping and kind of window: FROM {partial_set.text}",
            "add it as a query: it answers from the next round on",
        )
    unknown = [
        str(partial_set.components[index].component) for index, tick in history.known_from.items() if tick > last_start
    ]
    wanted = {str(component) for component in planned.query.components}
    if wanted.intersection(unknown):
        missing = ", ".join(sorted(wanted.intersection(unknown)))
        return WindloomError(
            message,
            f"{missing} is not kept for its windows: no running query asks for it, or has not for long enough",
            "ask for what running queries aggregate, or add it as a query",
        )
    held_from = kept_from(partial_set, planned, history)
    if held_from > last_start:
        latest = "" if planned.query.window.is_sliced else "the latest at "
        kept_since = f"since {format_instant(held_from)}" if held_from <= closed else "nothing that long ago"
        return WindloomError(
            message,
            f"its last complete window begins at {latest}{format_instant(last_start)}, and kept is {kept_since}",
            f"keep at least {sufficient_duration(closed - last_start)} of history when the stream is started",
        )
    return WindloomError(
        message,
        f"its windows {planned.query.window} begin or end inside slices, which cannot be divided",
        "ask for windows whose edges are edges of running queries, or add it as a query",
    )
