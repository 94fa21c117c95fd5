"""The calibrated cost: what it must say whatever the constants are."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from golden.plans import FEW, many_queries, plan_of, text_of
from windloom.errors import WindloomError
from windloom.kernels.families import FAMILIES, Family
from windloom.kernels.techniques.registry import allowed
from windloom.model import TimeWindow, Window
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.cost.papers import Load, cost_name
from windloom.optimizer.cost.seconds import CalibratedCost, technique_cost
from windloom.optimizer.cost.work import TERMS, Demand, Work
from windloom.optimizer.plan_cost import estimate_plan, estimate_set
from windloom.optimizer.stages import PlanOptions
from windloom.optimizer.trees import contenders
from windloom.statistics.set_statistics import ASSUMED, Origin, Origins, Statistics, regularity_of


def windows(how_many: int, seed: int = 1) -> list[Window]:
    rng = random.Random(seed)
    slides = [rng.randint(1, 30) * 1_000_000 for _ in range(how_many)]
    return [TimeWindow(slide * rng.randint(1, 20), slide) for slide in slides]


def test_cells_are_never_more_than_tuples_nor_than_slices_and_groups() -> None:
    known = Statistics(500.0, groups=50.0)
    rates = np.array([0.01, 1.0, 10.0, 1000.0])
    cells = known.cells_per_second(rates)
    assert (cells <= 500.0).all()
    assert (cells <= rates * 50).all()
    assert (np.diff(cells) > 0).all()


def test_answers_add_up_however_queries_form_trees() -> None:
    known = Statistics(20.0, groups=40.0)
    found = windows(12)
    whole = Demand.of([found], known)
    parts = Demand.of([found[:5], found[5:]], known)
    assert parts.rows.sum() == pytest.approx(whole.rows[0])
    load = Load.of([found[:5], found[5:]])
    estimated = Demand.of_load(load, known, 0.7)
    assert estimated.rows.sum() == pytest.approx(Demand.of_load(Load.of([found]), known, 0.7).rows[0])


def test_what_trees_cost_and_what_the_whole_plan_costs_agree() -> None:
    plan = plan_of(many_queries(40).replace("avg(", "sum(").replace("max(", "sum(").replace("count(*)", "sum(price)"))
    partial_set, constants = plan.sets[0], load_constants()
    tree = partial_set.trees[0]
    model = CalibratedCost(
        constants,
        partial_set.statistics,
        (),
        partial_set.edges.edges_per_second,
        3,
        1.0,
        1.0,
    )
    load = Load.of([[planned.query.window for planned in tree.queries]])
    searched = model.tree_cost(load, np.array([tree.edges_per_second]))[0]
    found = estimate_set(partial_set, constants).trees[0]
    assert searched == pytest.approx(found.own + found.answers, rel=0.02)


def test_what_is_paid_once_does_not_depend_on_the_trees() -> None:
    constants = load_constants()
    costs = [estimate_plan(plan_of(FEW, strategy=name), constants).sets[0] for name in ("no_share", "shared")]
    assert costs[0].shared == costs[1].shared
    assert costs[0].trees[0].own > costs[1].trees[0].own, "a tree with fewer edges than its set merges cells"


def test_every_term_grows_with_the_work() -> None:
    known = Statistics(1000.0, groups=10.0)
    small, large = windows(8), windows(8) + windows(20, seed=2)
    rate = np.array([1.0])
    for name, terms in TERMS.items():
        less = terms(Work.of(Demand.of([small], known), rate, known))
        more = terms(Work.of(Demand.of([large], known), rate, known))
        assert sum(float(costs[0]) for costs in more.values()) >= sum(float(costs[0]) for costs in less.values()), name


@pytest.mark.parametrize("family", list(FAMILIES.values()))
def test_the_contenders_hold_the_fastest_for_any_tree(family: Family) -> None:
    constants, known = load_constants(), Statistics(1e6)
    names = contenders(constants, family)
    known_as = family.costs_like or family.name
    possible = {cost_name(technique, family) for technique in allowed(family)} - {"recalculate"}
    everyone = [name for name in TERMS if known_as in constants.techniques[name] and name in possible]
    for count in (1, 3, 20, 300):
        work = Work.of(Demand.of([windows(count)], known), np.array([1.0]), known)
        cost = {name: float(technique_cost(constants, name, family, work)[0]) for name in everyone}
        assert min(cost[name] for name in names) <= 1.05 * min(cost.values())


def test_tuples_at_even_distances_leave_no_slice_empty() -> None:
    by_chance, evenly = Statistics(10.0), Statistics(10.0, regularity=1.0)
    edges = np.array([1.0, 10.0, 40.0])
    assert by_chance.filled(edges) == pytest.approx([1.0, 1 - np.exp(-1), 1 - np.exp(-0.25)], rel=1e-4)
    assert evenly.filled(edges) == pytest.approx([1.0, 1.0, 0.25])
    assert regularity_of(1_000, 990, 2_000) > 0.9
    assert regularity_of(1_000_000, 100, 100) == regularity_of(10, 0, 0) == 0.0, "full either way"


def test_an_observed_rate_reaches_the_plan_and_its_explanation() -> None:
    plan = plan_of(FEW)
    origins = Origins(rate=Origin("observed", 12, -0.08))
    known = replace(plan.sets[0].statistics, events_per_second=77.0, origins=origins)
    changed = replace(plan, sets=(replace(plan.sets[0], statistics=known),))
    assert "rate of trades: 77 events/s (observed in 12 rounds, falling by 8 % per round)" in text_of(changed)
    assert plan.rate_of(plan.streams[0]) == (1000.0, ASSUMED)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(WindloomError, match="technique 'slick_deque' cannot evaluate add_float"):
        plan_of(FEW, technique="slick_deque")
    with pytest.raises(WindloomError, match="unknown strategy 'automatic'"):
        PlanOptions("automatic")
