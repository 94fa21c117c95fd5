"""Pending windows: closed, but not answered yet; and the cells needed to answer them.

A round may leave the answers of some queries to later rounds. The cells of a state do not depend on that: they are
those that open windows need, and every tuple is merged into them when it comes. What postponed windows need besides
is kept apart, set by set, in one of two ways:

| while                                    | a postponed window is answered from                                       |
|------------------------------------------|---------------------------------------------------------------------------|
| no tuple has come behind where it closed | the cells of the state, and those that the state has dropped since        |
| one has come, or cells are folded        | cells as they were when it closed, and what rounds have brought since, as |
|                                          | far as it counts in the window; until the set owes nothing                |

A tuple counts in the windows that are open when it comes. So one that comes late is kept out of every window that had
ended by the tick at which the query was closed, whether that window is answered already or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from windloom.model.clauses import Emits
from windloom.plan.plan import PartialSet, Plan, Planned, PlannedJoin, PlannedQuery
from windloom.state.cells import Cells, keep_cells, merge_all
from windloom.state.state import CellCoverage, CellsAfterClose, PendingWindows, State
from windloom.state.windows.lifecycle import RoundBounds
from windloom.state.windows.registry import life_of

#: `(after, until]` for the ends of windows, by name of the query.
Intervals = dict[str, tuple[int, int]]


def can_wait(planned: Planned) -> bool:
    """Return whether the answers of a query may be left to later rounds.

    Row queries, windows of rows and joins with relations whose versions count are answered in the round that closes
    their windows: from the tuples, or with the version, that are there then. Queries with EMIT EARLY are too, since
    provisional rows stand until the final ones come.
    """
    query = planned.query
    if query.rows is not None or query.emission.kind is Emits.EARLY or not life_of(query.window).can_wait:
        return False
    return query.join is None or not any(side.is_relation for side in query.join.sides)


def readers_of(plan: Plan, number: int) -> Iterator[PlannedQuery | PlannedJoin]:
    """Yield the queries that are answered from a set: its own, and joins with a side in it."""
    for tree in plan.sets[number].trees:
        yield from tree.answered
    for join in plan.joins:
        if any(place.set == number for place in join.sides):
            yield join


def sets_by_query(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Return the sets that each query is answered from, by its name."""
    trees = [(partial_set.number, tree) for partial_set in plan.sets for tree in partial_set.trees]
    numbers_by_query = {planned.name: (number,) for number, tree in trees for planned in tree.answered}
    numbers_of_joins = {join.name: tuple(dict.fromkeys(place.set for place in join.sides)) for join in plan.joins}
    return {**numbers_by_query, **numbers_of_joins}


def members_behind(plan: Plan, answered: Mapping[str, int]) -> dict[str, int]:
    """Return how far members of sets that are behind are answered; for a side, the join furthest behind counts."""
    ticks_by_member = dict(answered)
    for join in plan.joins:
        for place in join.sides if join.name in answered else ():
            tick = answered[join.name]
            ticks_by_member[place.name] = min(tick, ticks_by_member.get(place.name, tick))
    return ticks_by_member


@dataclass(frozen=True, slots=True)
class CellVersions:
    """The cells of a set as windows of different ages see them: `later` rounds count for some, the rest for all.

    `own` are the cells from which the state keeps what it needs; None if there are none, or if the lineage is apart.
    """

    own: Cells | None = None
    others: tuple[Cells, ...] = ()
    later: tuple[CellsAfterClose, ...] = ()
    is_apart: bool = False

    @property
    def cells(self) -> tuple[Cells, ...]:
        return (*present(self.own), *self.others)

    def view(self, rounds: int) -> Cells | None:
        """Return the cells together with those of the first `rounds` later rounds; None if there are none."""
        return _merged([*self.cells, *(later_round.cells for later_round in self.later[:rounds])])

    def rounds_before(self, name: str, end: int) -> int:
        """Return how many later rounds count in windows of a query that end at this tick, or after the last bound."""
        count = 0
        for later_round in self.later:
            if later_round.is_late and later_round.closed.get(name, end - 1) >= end:
                break
            count += 1
        return count


def lineage_of(
    partial_set: PartialSet,
    owed: PendingWindows,
    kept: Cells | None,
    fresh: Cells | None,
    current: Cells | None,
    state: State,
    plan: Plan,
) -> CellVersions:
    """Return what a round's answers are computed from, in a set that owes windows from earlier rounds.

    `kept` are the cells of the state before the round, `fresh` those of its own tuples, `current` both together.
    """
    behind = {
        planned.name: state.closed_over(planned.query.inputs)
        for planned in readers_of(plan, partial_set.number)
        if planned.name in state.answered
    }
    later = (CellsAfterClose(fresh, behind),) if fresh is not None and len(fresh) and behind else ()
    is_late = any(each.is_late for each in later) and life_of(partial_set.window).sees_late
    if owed.rounds is not None:
        return CellVersions(None, present(owed.cells), (*owed.rounds, *later), is_apart=True)
    if is_late:
        return CellVersions(None, present(owed.cells, kept), later, is_apart=True)
    return CellVersions(current, present(owed.cells))


def left_owing(
    partial_set: PartialSet, lineage: CellVersions, names: Mapping[str, int], now: RoundBounds, owing: RoundBounds
) -> PendingWindows:
    """Return what is kept for the windows that a set owes after a round.

    `names` are the queries that owe windows, and how far each is answered. `now` is the turn for the cells of the
    state, `owing` the turn for queries that are behind.
    """
    life = life_of(partial_set.window)
    if not lineage.is_apart and not life.folds(partial_set):
        # The state has what is kept as history or for open windows; what it has dropped never comes back.
        waiting = replace(owing, history_ticks=0)
        dropped = [keep_cells(each, life.needed(partial_set, each, waiting)) for each in lineage.others]
        if (own := lineage.own) is not None:
            is_dropped = life.needed(partial_set, own, waiting) & ~life.needed(partial_set, own, now)
            dropped.append(keep_cells(own, is_dropped))
        return PendingWindows(_merged([each for each in dropped if len(each)]))
    # Each later round counts only for queries that still have to report windows in which it does not count.
    later = [
        replace(
            later_round,
            closed={name: tick for name, tick in later_round.closed.items() if name in names and tick > names[name]},
        )
        for later_round in lineage.later
    ]
    # Tuples that came in time are in no window that had ended: they may as well have been there before.
    cells = _merged([*lineage.cells, *(each.cells for each in later if not each.is_late)])
    late_rounds = [each for each in later if each.is_late]
    return PendingWindows(
        None if cells is None else life.close(partial_set, cells, CellCoverage(), owing).cells, tuple(late_rounds)
    )


def present(*parts: Cells | None) -> tuple[Cells, ...]:
    """Return the cells that are not None."""
    return tuple(part for part in parts if part is not None)


def _merged(parts: Sequence[Cells]) -> Cells | None:
    return merge_all(parts) if parts else None


@dataclass(frozen=True, slots=True)
class AnswerPass:
    """Windows that see the same cells: by number of the set, how many later rounds count; by query, which windows."""

    rounds: tuple[tuple[int, int], ...]
    intervals: Intervals


def passes_of(plan: Plan, lineages: Mapping[int, CellVersions], intervals: Intervals) -> list[AnswerPass]:
    """Return all that a round answers, in the order of windows; the last pass sees everything that has come.

    Without late tuples there is one pass, however many rounds the windows come from.
    """
    every = tuple((number, len(lineage.later)) for number, lineage in sorted(lineages.items()))
    passes: dict[tuple[tuple[int, int], ...], Intervals] = {}
    last: Intervals = {}
    places = sets_by_query(plan) if lineages else {}
    for name, (after, until) in intervals.items():
        numbers = [number for number in places.get(name, ()) if number in lineages] if after < until else []
        # The ticks at which late tuples change the cells that windows of the query see.
        late = (each for number in numbers for each in lineages[number].later if name in each.closed and each.is_late)
        bounds = {each.closed[name] for each in late}
        for tick in sorted(bounds):
            if after < tick < until:
                key = tuple((number, lineages[number].rounds_before(name, tick)) for number in numbers)
                passes.setdefault(key, {})[name] = (after, tick)
                after = tick
        key = tuple((number, lineages[number].rounds_before(name, until)) for number in numbers)
        is_last = all(count == len(lineages[number].later) for number, count in key)
        (last if is_last else passes.setdefault(key, {}))[name] = (after, until)
    earlier = [AnswerPass(key, each) for key, each in sorted(passes.items(), key=lambda item: item[0])]
    return [*earlier, AnswerPass(every, last)]


def sets_asked(plan: Plan, intervals: Mapping[str, tuple[int, int]]) -> set[int]:
    """Return the sets that queries with something to report are answered from."""
    places = sets_by_query(plan)
    return {number for name, (after, until) in intervals.items() if after < until for number in places.get(name, ())}
