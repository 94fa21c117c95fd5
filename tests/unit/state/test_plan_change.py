"""Carrying a state over to another plan: what stays, what goes, and from which window on a new query is exact."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.catalogs import make_query
from support.compare import rows_of
from support.native import taken_of_plan
from support.rounds import plan_of
from windloom.model import Aggregate, Expression, LandmarkWindow, Query, TimeWindow, Window
from windloom.plan.plan import PartialSet, Plan
from windloom.rounds.step import step
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.state.cells import Cells
from windloom.state.history import MOST_EDGES, first_exact
from windloom.state.plan_change import migrate
from windloom.state.state import CellCoverage, PastSlicing, State
from windloom.weave.round_input import RoundInput

COUNT = Aggregate("count")
SUM = Aggregate("sum", Expression.of_column("i"))


def query(name: str, window: Window, aggregate: Aggregate = COUNT, **more: Any) -> Query:
    return make_query(name, window, [aggregate], **more)


def plan(*queries: Query) -> Plan:
    return plan_of({query_.name: query_ for query_ in queries})


def ran(at: Plan, ticks: range, watermark: int, state: State | None = None, history_ticks: int = 0) -> State:
    """The state after a round with one tuple a tick."""
    rows = [{"tick": tick, "k": "a", "i": 1, "b": True} for tick in ticks]
    seen = {"s": ticks[-1]} if len(ticks) else {}
    partials = taken_of_plan(at, rows)
    return step(state or State(), RoundInput(partials, {"s": watermark}, seen=seen), at, history_ticks=history_ticks)[0]


OLD = plan(query("a", TimeWindow(20, 10)))


@pytest.mark.parametrize(
    ("new", "since"),
    [
        (query("b", TimeWindow(40, 20)), None),  # on the slices that are kept
        (query("b", TimeWindow(20, 20, 10)), None),
        (query("b", TimeWindow(10, 5)), 60),  # 55 is no edge of slices of ten ticks, and tuples are up to 59
        (query("b", TimeWindow(10, 10, 5)), 65),
        (query("b", TimeWindow(15, 10)), 50),  # [50, 65) ends behind all tuples
        (query("b", TimeWindow(95, 10)), -30),  # [-40, 55) ends inside a slice that is kept whole
        (query("b", TimeWindow(20, 10), SUM), 60),  # its component is not kept
        (query("b", TimeWindow(20, 10), where="b"), 60),  # nor is its set
        (query("b", TimeWindow(20, 10), grouping=("k",)), 60),
        (query("b", TimeWindow(20, 7), where="b"), 63),
    ],
)
def test_a_new_query_is_exact_from_the_first_window_that_can_be_told_apart(new: Query, since: int | None) -> None:
    state = ran(OLD, range(60), 45, history_ticks=1000)
    assert state.history == {}
    carried = migrate(state, OLD, plan(*(planned.query for planned in OLD.queries), new))
    assert carried.since.get("b") == since
    assert carried.fresh == {"b"}


def test_what_was_dropped_is_not_answered() -> None:
    state = ran(OLD, range(60), 45)
    assert state.history[0].kept_from == 26
    carried = migrate(state, OLD, plan(*(planned.query for planned in OLD.queries), query("b", TimeWindow(10, 10))))
    assert carried.since == {"b": 30}


def test_before_any_tuple_everything_is_exact() -> None:
    state = ran(OLD, range(0), -100)
    carried = migrate(state, OLD, plan(query("b", TimeWindow(3, 1), SUM, where="b")))
    assert carried.since == {}
    assert carried.history == {}


def test_a_set_that_comes_back_knows_nothing_of_the_time_between() -> None:
    filtered = query("b", TimeWindow(10, 10), where="b")
    both = plan(*(planned.query for planned in OLD.queries), filtered)
    state = ran(both, range(30), 20)
    state = migrate(state, both, OLD)
    assert state.history == {0: state.history_of(0)}
    state = ran(OLD, range(30, 45), 40, state)
    assert migrate(state, OLD, both).since == {"b": 50}


def test_a_removed_query_frees_its_cells_components_and_edges() -> None:
    fine = query("b", TimeWindow(4, 2), SUM)
    both = plan(*(planned.query for planned in OLD.queries), fine, query("c", TimeWindow(50, 10), where="b"))
    state = ran(both, range(60), 30)
    carried = migrate(state, both, OLD)
    (cells,) = carried.cells.values()
    assert len(cells.lifted) == 1
    assert cells.starts.tolist() == [10, 20, 30, 40, 50]
    assert carried.nbytes < state.nbytes / 3
    # What was merged cannot be told apart again, but behind the last tuple.
    assert migrate(carried, OLD, both).since["b"] == 60


def test_a_query_that_stays_goes_on_as_if_nothing_had_happened() -> None:
    state = ran(OLD, range(30), 25)
    grown = plan(
        *(planned.query for planned in OLD.queries), query("b", TimeWindow(5, 5), SUM), query("c", TimeWindow(9, 3))
    )
    carried = migrate(state, OLD, grown)
    rows = [{"tick": tick, "k": "a", "i": 1} for tick in range(30, 50)]
    for before, at in ((state, OLD), (carried, grown)):
        _, answers, _ = step(before, RoundInput(taken_of_plan(at, rows, before), {"s": 50}), at)
        found = rows_of(answers.blocks(), next(iter(OLD.queries)).query)
        assert [(row["window_start"], row["o0"]) for row in found] == [(10, 20), (20, 20), (30, 20)]


def test_another_query_of_the_same_name_is_new_and_another_text_of_the_same_query_is_not() -> None:
    state = ran(OLD, range(60), 45)
    (same,) = (planned.query for planned in OLD.queries)
    assert migrate(state, OLD, plan(query("a", TimeWindow(10, 10)))).fresh == {"a"}
    assert migrate(state, OLD, plan(replace(same, text="SELECT  1"))).fresh == frozenset()


def test_two_changes_between_rounds_leave_a_new_query_new() -> None:
    state = ran(OLD, range(60), 45)
    with_b = plan(*(planned.query for planned in OLD.queries), query("b", TimeWindow(10, 5)))
    with_c = plan(*(planned.query for planned in with_b.queries), query("c", TimeWindow(30, 10)))
    carried = migrate(migrate(state, OLD, with_b), with_b, with_c)
    assert carried.fresh == {"b", "c"}
    assert carried.since["b"] == 60


def test_a_fresh_query_answers_from_history_in_its_first_round_and_once() -> None:
    state = ran(OLD, range(60), 45, history_ticks=1000)
    new = query("b", TimeWindow(30, 10))
    both = plan(*(planned.query for planned in OLD.queries), new)
    state, answers, _ = step(migrate(state, OLD, both), RoundInput(frontiers={"s": 45}), both)
    assert [row["window_start"] for row in rows_of(answers.blocks(), new)] == [-20, -10, 0, 10]
    state, answers, _ = step(state, RoundInput(frontiers={"s": 60}), both)
    assert [row["window_start"] for row in rows_of(answers.blocks(), new)] == [20, 30]


def test_a_landmark_that_runs_keeps_what_it_has_folded_when_tuples_of_the_past_reach_less_far() -> None:
    old = plan(query("a", LandmarkWindow(10)))
    state = ran(old, range(20, 70), 69, ran(old, range(20), 19))
    new = plan(query("a", LandmarkWindow(10)), query("b", TimeWindow(50, 10)))

    def past(_: PartialSet) -> tuple[Cells | None, CellCoverage] | None:
        return None, CellCoverage(30)  # as far back as tuples are kept

    carried = migrate(state, old, new, past)
    given = RoundInput(taken_of_plan(new, []), {"s": 80}, seen={"s": 69})
    _, answers, _ = step(carried, given, new)
    found = rows_of(list(answers.blocks()), new.query("a").query)
    assert [row["o0"] for row in found] == [70, 70]


def test_since_is_forgotten_when_it_holds_nothing_back_any_more() -> None:
    state = ran(OLD, range(60), 45)
    new = query("b", TimeWindow(20, 10), where="b")
    both = plan(*(planned.query for planned in OLD.queries), new)
    state = migrate(state, OLD, both)
    assert state.since == {"b": 60}
    state = step(state, RoundInput(frontiers={"s": 78}), both)[0]
    assert state.since == {"b": 60}
    assert step(state, RoundInput(frontiers={"s": 79}), both)[0].since == {}


def test_only_so_many_slicings_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[migrate.__module__], "MOST_CUTS", 8)
    state, at = ran(OLD, range(10), 0, history_ticks=10**9), OLD
    primes = [
        candidate
        for candidate in range(11, 100)
        if all(candidate % factor for factor in range(2, int(candidate**0.5) + 1))
    ]
    for number, prime in enumerate(primes, 1):
        # Of no two of these slicings is one coarser than the other: then the finer one would be forgotten by itself.
        new = plan(query("a", TimeWindow(20, 10)), query("b", TimeWindow(prime, prime)))
        state = migrate(state, at, new)
        state, at = ran(new, range(10 * number, 10 * number + 10), 10 * number, state, 10**9), new
    (history,) = state.history.values()
    assert len(history.cuts) <= 8
    assert 0 < history.kept_from <= history.cuts[0].until


@pytest.mark.parametrize("seed", range(30))
def test_the_first_exact_window_is_the_one_found_by_looking_at_each(seed: int) -> None:
    rng = np.random.default_rng(seed)
    window = TimeWindow(int(rng.integers(1, 20)), int(rng.integers(1, 12)), int(rng.integers(0, 12)))
    (partial_set,) = plan(query("q", window)).sets
    (planned,) = partial_set.queries
    until, cuts = 0, []
    for _ in range(3):
        until += int(rng.integers(0, 40))
        classes = [EdgeClass(int(rng.integers(1, 7)), int(rng.integers(0, 7))) for _ in range(rng.integers(1, 4))]
        cuts.append(PastSlicing(EdgeSet.of(classes), until))
    history, seen = CellCoverage(int(rng.integers(-30, 60)), {}, tuple(cuts)), until + int(rng.integers(0, 9))

    def is_exact(start: int) -> bool:
        edges = (start, start + window.range_ticks)
        told = all(
            edge > cut.until or any((edge - each.residue) % each.period == 0 for each in cut.edges.classes)
            for cut in cuts
            for edge in edges
        )
        return start > seen or (start >= history.kept_from and told)

    wrong = [start for start in range(-200, 300) if (start - window.offset_ticks) % window.slide_ticks == 0]
    wrong = [start for start in wrong if not is_exact(start)]
    assert first_exact(partial_set, planned, history, seen) == wrong[-1] + window.slide_ticks


def test_edges_that_only_many_classes_hold_together_are_not_looked_for_for_ever() -> None:
    (partial_set,) = plan(query("q", TimeWindow(1, 1))).sets
    (planned,) = partial_set.queries
    until, seen = 10**12, 10**13
    every = EdgeSet.of([EdgeClass(2), EdgeClass(6, 1), EdgeClass(6, 3), EdgeClass(6, 5)])
    assert first_exact(partial_set, planned, CellCoverage(cuts=(PastSlicing(every, until),)), seen) is None
    # All ticks but one in 2^22; that there is no other before it, or that there is none, would take too long to say.
    nearly = EdgeSet.of([EdgeClass(2**k, 2 ** (k - 1)) for k in range(1, 23)])
    found = first_exact(partial_set, planned, CellCoverage(cuts=(PastSlicing(nearly, 2**22 * 10 - 1),)), seen)
    assert found is not None
    assert 2**22 * 10 - 2 * MOST_EDGES < found < 2**22 * 10 - 1
