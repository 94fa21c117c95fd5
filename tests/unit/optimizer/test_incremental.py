"""Plans that follow queries as they come and go: within ε of what is expected, and changed as little as can be."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from windloom.errors import WindloomError
from windloom.model import TimeWindow, Window
from windloom.optimizer.cost.papers import PaperCost
from windloom.optimizer.sharing.incremental_plan import IncrementalPlan, PlanChange, keep_numbers
from windloom.optimizer.sharing.problem import SharingProblem
from windloom.optimizer.sharing.weave_share import WeaveShare
from windloom.optimizer.workloads import zipf_workload
from windloom.slicing.slicings import SLICINGS

SECOND = 1_000_000
PAIRS = SLICINGS["pairs"]
MODEL = PaperCost(("recalculate",), 20.0)


def plan_with(epsilon: float, **options: bool) -> IncrementalPlan:
    return IncrementalPlan(PAIRS, MODEL, epsilon, **options)


def random_steps(seed: int, steps: int = 30) -> list[Window | None]:
    """Windows to add, None for a removal."""
    rng = random.Random(seed)
    windows = iter(zipf_workload(steps, seed=seed, unit=SECOND // 1000))
    return [None if i > 4 and rng.random() < 0.3 else next(windows) for i in range(steps)]


def take(plan: IncrementalPlan, step: Window | None, rng: random.Random) -> PlanChange:
    return plan.add(step) if step is not None else plan.remove(rng.choice(list(plan.windows)))


def problem_of(plan: IncrementalPlan) -> SharingProblem:
    return SharingProblem(tuple(plan.windows.values()), PAIRS, MODEL)


def as_windows(plan: IncrementalPlan) -> list[list[Window]]:
    return sorted(sorted(plan.windows[query] for query in tree) for tree in plan.trees.values())


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_the_cost_stays_within_the_tolerance_of_what_is_expected(epsilon: float, seed: int) -> None:
    plan, rng = plan_with(epsilon), random.Random(seed)
    for step in random_steps(seed):
        change = take(plan, step, rng)
        assert change.cost <= change.expected * (1 + epsilon) * (1 + 1e-9)
        assert change.cost == plan.cost


def test_without_tolerance_it_is_the_full_plan_at_every_step() -> None:
    plan, rng = plan_with(0.0), random.Random(2)
    for step in random_steps(2):
        assert take(plan, step, rng).replanned
        problem = problem_of(plan)
        full = WeaveShare().choose(problem)
        assert as_windows(plan) == sorted(sorted(problem.windows[i] for i in tree) for tree in full)


def test_with_endless_tolerance_it_is_never_planned_anew() -> None:
    plan, rng = plan_with(math.inf), random.Random(1)
    assert not any(take(plan, step, rng).replanned for step in random_steps(1))
    assert plan.full_plans == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_cost_it_keeps_is_the_cost_that_counting_anew_gives(seed: int) -> None:
    plan, rng = plan_with(math.inf), random.Random(seed)
    for step in random_steps(seed, 40):
        take(plan, step, rng)
    problem = problem_of(plan)
    place = {query: i for i, query in enumerate(plan.windows)}
    trees = tuple(tuple(place[query] for query in tree) for tree in plan.trees.values())
    assert plan.cost == pytest.approx(problem.cost(trees), rel=2e-3)


def test_a_change_tells_every_query_that_changed_trees_and_no_other() -> None:
    plan, rng = plan_with(0.05), random.Random(4)
    for step in random_steps(4):
        before = {query: number for number, tree in plan.trees.items() for query in tree}
        change = take(plan, step, rng)
        after = {query: number for number, tree in plan.trees.items() for query in tree}
        assert set(change.moved) == {q for q in before | after if before.get(q) != after.get(q)}
        for query, (source, target) in change.moved.items():
            assert (source, target) == (before.get(query), after.get(query))


@pytest.mark.parametrize("seed", range(20))
def test_new_trees_go_by_the_numbers_that_move_fewest_queries(seed: int) -> None:
    rng = random.Random(seed)
    queries = range(9)
    old = {i: [q for q in queries if q % 4 == i] for i in range(4)}
    trees: dict[int, list[int]] = {}
    for query in queries:
        trees.setdefault(rng.randrange(4), []).append(query)
    new = list(trees.values())
    home = {query: number for number, tree in old.items() for query in tree}

    def moved(numbers: tuple[int, ...]) -> int:
        return sum(home[query] != number for number, tree in zip(numbers, new, strict=True) for query in tree)

    fewest = min(moved(order) for order in itertools.permutations(range(4), len(new)))
    given = keep_numbers(old, new, fresh=4)
    assert len(set(given)) == len(given)
    assert moved(tuple(given)) == fewest


def test_a_full_plan_made_beside_the_rounds_is_adopted_with_what_happened_since() -> None:
    plan = plan_with(0.0, in_background=True)
    windows = zipf_workload(20, seed=6, unit=SECOND // 1000)
    for window in windows[:15]:
        assert not plan.add(window).replanned
    assert plan.wants_full_plan
    full = plan.full_plan()
    plan.remove(3)
    late = plan.add(windows[15])
    (added,) = (query for query, (source, _) in late.moved.items() if source is None)
    change = plan.adopt(full)
    assert change.replanned
    assert not plan.wants_full_plan
    assert sorted(query for tree in plan.trees.values() for query in tree) == sorted(plan.windows)
    assert added in plan.windows
    assert 3 not in plan.windows
    assert plan.add(windows[16]).moved.keys() >= {16}


def test_going_on_from_a_plan_keeps_its_trees() -> None:
    windows = zipf_workload(25, seed=8, unit=SECOND // 1000)
    problem = SharingProblem(windows, PAIRS, MODEL)
    trees = WeaveShare().choose(problem)
    plan = IncrementalPlan.of(problem, trees, 0.1)
    assert sorted(plan.trees.values()) == sorted(trees)
    assert plan.cost == pytest.approx(problem.cost(trees), rel=1e-3)
    assert plan.expected == plan.cost


def test_the_last_query_takes_its_tree_along() -> None:
    plan = plan_with(0.1)
    plan.add(TimeWindow(10 * SECOND, 5 * SECOND))
    change = plan.remove(0)
    assert (plan.trees, change.cost) == ({}, 0.0)
    assert plan.add(TimeWindow(10 * SECOND, 5 * SECOND)).moved.keys() == {1}


@pytest.mark.parametrize("epsilon", [-0.1, float("nan")])
def test_a_tolerance_below_zero_is_refused(epsilon: float) -> None:
    with pytest.raises(WindloomError, match="tolerance"):
        plan_with(epsilon)


def test_a_query_that_is_not_there_cannot_be_removed() -> None:
    with pytest.raises(WindloomError, match="no query 7"):
        plan_with(0.1).remove(7)
