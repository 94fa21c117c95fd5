"""Planning does work once that several of its parts need, and costs are the same as if it were done again."""

from __future__ import annotations

import numpy as np
import pytest

from golden.plans import MIXED, plan_of
from windloom.kernels.families import FAMILIES
from windloom.model.windows import TimeWindow
from windloom.optimizer import facts
from windloom.optimizer.cost.constants import load_constants, shipped_constants
from windloom.optimizer.cost.seconds import measured_name, technique_cost
from windloom.optimizer.cost.work import TERMS, Demand, Work
from windloom.optimizer.sharing.problem import SharingProblem
from windloom.statistics.set_statistics import Statistics


def test_the_constants_in_force_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr(facts, "load_constants", lambda: looked.append(load_constants()) or looked[-1])
    plan_of(MIXED)
    assert len(looked) == 1


def test_no_other_plan_is_looked_for_where_all_windows_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharingProblem, "cost", lambda *_: pytest.fail("plans are compared"))
    alike = "".join(
        f"CREATE QUERY q{number} AS SELECT {aggregate}(price) AS x FROM trades [RANGE 1 h SLIDE 5 min];"
        for number, aggregate in enumerate(["sum", "max", "avg"])
    )
    plan = plan_of(alike)
    assert [tree.number for tree in plan.trees] == [0]
    assert {each.strategy for each in plan.sets} == {"shared"}


@pytest.mark.parametrize("technique", TERMS)
def test_terms_that_are_known_give_the_costs_that_new_ones_give(technique: str) -> None:
    statistics = Statistics(1000.0, groups=30.0)
    demand = Demand.of([[TimeWindow(60_000_000, 5_000_000)], [TimeWindow(7_000_000, 1_000_000)] * 9], statistics)
    work, constants = Work.of(demand, np.array([0.5, 2.0]), statistics), shipped_constants()
    known: dict[str, dict[str, np.ndarray]] = {}
    measured = constants.techniques[technique]
    for family in FAMILIES.values():
        if measured_name(constants, technique, family) in measured:
            alone = technique_cost(constants, technique, family, work)
            assert (technique_cost(constants, technique, family, work, known) == alone).all()
            assert (alone > 0).all()
    assert list(known) == [technique]
