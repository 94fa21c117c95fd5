"""Carries a state from one plan to the next, between two rounds: shared cells stay, unneeded ones are dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from windloom.model.clauses import Urgency
from windloom.model.query import Query
from windloom.model.time import TICK_MIN
from windloom.plan.plan import PartialSet, Plan, PlannedJoin
from windloom.plan.rows import PlannedRows
from windloom.state.cells import Cells, roll_up
from windloom.state.held import HeldSegments, HeldSets, is_divided, is_even
from windloom.state.history import Past
from windloom.state.pending import readers_of
from windloom.state.positions import Positions
from windloom.state.state import CellCoverage, CellsAfterClose, PastSlicing, PendingWindows, State
from windloom.state.tuple_store import TupleStores, carried_stores
from windloom.state.windows.registry import life_of
from windloom.statistics.set_statistics import SetIdentity

#: At most this many past slicings are remembered for a set; tuples of older ones count as no longer kept.
MOST_CUTS = 256


def migrate(state: State, old: Plan, new: Plan, past: Past | None = None) -> State:
    """Return the state in terms of the plan `new`, between two rounds.

    `past` gives the cells of a new set, made from tuples of past rounds.

    Sets are the same if their identities are; queries are the same if name and meaning are. New queries are `fresh`;
    where they are not exact from the beginning, `since` gives their first exact window. Windows that a query
    owes are carried with it: a query that leaves must be answered beforehand. A set that owes windows is not made again
    from `past`: see `remade`.
    """
    known = old.by_identity
    running = {planned.name: planned.query for planned in old.queries}
    positions = state.positions.carried(new, state.seen)
    cells: dict[int, Cells] = {}
    segments: dict[int, HeldSegments] = {}
    history: dict[int, CellCoverage] = {}
    since: dict[str, int] = {}
    fresh: set[str] = set()
    exact: dict[str, int | None] = {}  # by name of the side: its first exact window
    for partial_set in new.sets:
        before = known.get(partial_set.identity)
        divided = None if before is None else _segments_of(state, before, partial_set, new)
        set_cells, coverage = carry_set(state if divided is None else replace(state, cells={}), before, partial_set)
        life = life_of(partial_set.window)
        is_owing = before is not None and before.number in state.owed
        is_wanted = before is None or (not is_owing and _is_short(partial_set, running, coverage, state, positions))
        if past is not None and life.weaves_again and is_wanted:
            remade_set = past(partial_set)
            # Cells that are made again must hold all that running queries need of the present cells, which may reach
            # further back, for the queries that they were made for; landmarks fold what lies behind.
            if remade_set is not None and (
                before is None or remade_set[1].kept_from <= (TICK_MIN if life.folds(before) else coverage.kept_from)
            ):
                set_cells, coverage, divided = *remade_set, None
        if divided is not None:
            segments[partial_set.number] = divided
        elif set_cells is not None:
            cells[partial_set.number] = set_cells
        if coverage != CellCoverage():
            history[partial_set.number] = coverage
        for planned in partial_set.queries:
            name = planned.name
            if before is not None and name in running and is_same(running[name], planned.query):
                tick = state.since.get(name)
                fresh |= {name} & state.fresh
            else:
                tick = life_of(planned.query.window).first_exact(partial_set, planned, coverage, state, positions)
                if planned.query.is_side:
                    exact[name] = tick
                    continue
                fresh.add(name)
            if tick is not None:
                since[name] = tick
    for join in new.joins:
        names = (join.name, *(place.name for place in join.sides))
        if join.name in running and is_same(running[join.name], join.query):
            since |= {name: state.since[name] for name in names if name in state.since}
            fresh |= {join.name} & state.fresh
        else:
            since |= joined_since(new, join, exact)
            fresh.add(join.name)
    stored = carried_stores(state.kept, new, state.seen)
    reported: dict[str, int] = {}
    summaries: dict[str, Cells] = {}
    for rows in new.rows:
        if rows.name in running and is_same(running[rows.name], rows.query):
            since |= {rows.name: state.since[rows.name]} if rows.name in state.since else {}
            reported |= {rows.name: state.reported[rows.name]} if rows.name in state.reported else {}
            summaries |= {rows.name: state.summaries[rows.name]} if rows.name in state.summaries else {}
            fresh |= {rows.name} & state.fresh
        else:
            since |= rows_since(rows, stored)
            fresh.add(rows.name)
    answered = {name: tick for name, tick in state.answered.items() if name not in leaving(old, new)}
    return replace(
        state,
        cells=HeldSets(cells, segments) if isinstance(state.cells, HeldSets) else cells,
        since=since,
        fresh=frozenset(fresh),
        history=history,
        positions=positions,
        answered=answered,
        owed=_owed(state, known, new, answered),
        reported=reported,
        kept=stored,
        summaries=summaries,
    )


def leaving(old: Plan, new: Plan) -> set[str]:
    """Return the queries of a plan that the next one does not have, or has with another meaning."""
    staying = {planned.name: planned.query for planned in new.queries}
    return {
        planned.name
        for planned in old.queries
        if planned.name not in staying or not is_same(planned.query, staying[planned.name])
    }


def _owed(
    state: State, known: Mapping[SetIdentity, PartialSet], new: Plan, answered: Mapping[str, int]
) -> dict[int, PendingWindows]:
    """Return the pending windows of sets, with the components and edges of the new plan."""
    owed_by_set = {}
    for partial_set in new.sets if state.owed else ():
        before = known.get(partial_set.identity)
        owed = None if before is None else state.owed.get(before.number)
        names = {planned.name for planned in readers_of(new, partial_set.number)}
        if owed is None or before is None or names.isdisjoint(answered):
            continue
        rounds = owed.rounds
        if rounds is not None:
            rounds = tuple(
                CellsAfterClose(
                    roll_up(later.cells, before, partial_set),
                    {name: tick for name, tick in later.closed.items() if name in answered},
                )
                for later in rounds
            )
        owed_by_set[partial_set.number] = PendingWindows(_cells_of(owed.cells, before, partial_set), rounds)
    return owed_by_set


def _cells_of(cells: Cells | None, before: PartialSet, partial_set: PartialSet) -> Cells | None:
    """Return the cells of a set in terms of its successor; if more of a version is needed, it is taken again."""
    lacks = partial_set.is_relation and not set(partial_set.components) <= set(before.components)
    return None if cells is None or lacks else roll_up(cells, before, partial_set)


def _segments_of(state: State, before: PartialSet, partial_set: PartialSet, new: Plan) -> HeldSegments | None:
    """Return the segments of a set in terms of its successor; None if it has none, or its successor keeps none."""
    held = state.cells.of(before.number) if isinstance(state.cells, HeldSets) else None
    if held is None or not is_divided(new, partial_set) or not is_even(held, partial_set):
        return None
    is_alike = before.components == partial_set.components and before.group_by == partial_set.group_by
    if is_alike and partial_set.edges.union(before.edges) == partial_set.edges:
        return held
    return held.changed(lambda cells: roll_up(cells, before, partial_set))


def remade(state: State, old: Plan, new: Plan, past: Past) -> Iterator[int]:
    """Yield the sets of a plan, by number, that owe windows and that `past` would make again for new queries.

    These windows must be answered beforehand: otherwise the state would hold the cells that are kept for them twice.
    """
    known = old.by_identity
    running = {planned.name: planned.query for planned in old.queries}
    positions = state.positions.carried(new, state.seen)
    for partial_set in new.sets:
        before = known.get(partial_set.identity)
        if before is None or before.number not in state.owed or not life_of(partial_set.window).weaves_again:
            continue
        _, coverage = carry_set(state, before, partial_set)
        if _is_short(partial_set, running, coverage, state, positions) and past(partial_set) is not None:
            yield before.number


def _is_short(
    partial_set: PartialSet, running: Mapping[str, Query], kept: CellCoverage, state: State, positions: Positions
) -> bool:
    """Return whether a query that is new to a set would miss windows with what the set holds."""
    for planned in partial_set.queries:
        if planned.name not in running or not is_same(running[planned.name], planned.query):
            life = life_of(planned.query.window)
            if life.first_exact(partial_set, planned, kept, state, positions) is not None:
                return True
    return False


def rows_since(rows: PlannedRows, kept: TupleStores) -> dict[str, int]:
    """Return the window from which a new row query is exact, where its strands find all tuples, if there is one."""
    after = covered_after(rows, kept)
    assert after is not None, "a plan keeps what its row queries read"
    return {} if after == TICK_MIN else {rows.name: after - rows.query.window.range_ticks + 1}


def covered_after(rows: PlannedRows, kept: TupleStores) -> int | None:
    """Return the end after which kept tuples cover all windows of a row query; None if it reads other tuples."""
    after = TICK_MIN
    for strand in rows.rows.strands:
        tuples, condition = kept.get(strand.stream), strand.condition
        since = None if tuples is None else tuples.since(strand.columns, None if condition is None else condition.sql)
        if since is None:
            return None
        if since != TICK_MIN:
            after = max(after, life_of(strand.window).after_since(strand.window, since))
    return after


def joined_since(plan: Plan, join: PlannedJoin, exact: Mapping[str, int | None]) -> dict[str, int]:
    """Return the window from which a new join is exact, where all its sides are; empty if that is the first one.

    `exact` has the first exact windows of its sides, by name. A landmark is moved to where its side is exact.
    """
    since: dict[str, int] = {}
    after = []
    for place in join.sides:
        window, tick = plan.side(place)[2].query.window, exact[place.name]
        if tick is not None and window.extent_ticks is None:
            since[place.name] = tick
        elif tick is not None:
            after.append(life_of(window).after_since(window, tick))
    if after:
        since[join.name] = max(after) - join.query.window.range_ticks + 1  # windows pair by their ends
    return since


def carry_set(state: State, before: PartialSet | None, partial_set: PartialSet) -> tuple[Cells | None, CellCoverage]:
    """Return the cells of `before` with the components and edges of `partial_set`, and the past that they cover."""
    seen = state.seen.get(partial_set.base)
    complete_from = life_of(partial_set.window).complete_from(partial_set.window, seen)
    if complete_from is None:
        seen = None
    if before is None:
        # Tuples up to `seen` were not kept; if there were none, nothing was missed.
        return None, CellCoverage() if complete_from is None else CellCoverage(complete_from)
    places = {component: index for index, component in enumerate(before.components)}
    cells = _cells_of(state.cells.get(before.number), before, partial_set)
    history = state.history_of(before.number)
    if seen is None:  # no tuples, so nothing can be inexact
        return cells, history
    known = {}
    for index, component in enumerate(partial_set.components):
        tick = history.known_from.get(places[component]) if component in places else seen + 1
        if tick is not None:
            known[index] = tick
    cuts = history.cuts
    if before.edges != partial_set.edges:
        # An older slicing that has every edge of the one that ends now adds nothing to it, so it is forgotten.
        cuts = (*(cut for cut in cuts if cut.edges.union(before.edges) != cut.edges), PastSlicing(before.edges, seen))
    past = CellCoverage(history.kept_from, known, cuts)
    return cells, past if len(cuts) <= MOST_CUTS else past.forget(cuts[-MOST_CUTS - 1].until + 1)


def is_same(left: Query, right: Query) -> bool:
    """Return whether two queries mean the same, however they are spelled and however urgent they are."""
    return replace(left, text="", urgency=Urgency()) == replace(right, text="", urgency=Urgency())
