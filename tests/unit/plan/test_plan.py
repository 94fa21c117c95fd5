"""The plan as a value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from golden.plans import MIXED, plan_of


def test_a_plan_finds_its_queries_by_name_without_looking_through_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(MIXED)
    listed = list(plan.queries)
    looked: list[object] = []
    monkeypatch.setattr(type(plan), "queries", property(lambda self: looked.append(self) or iter(listed)))
    assert [plan.query(planned.name) for planned in listed] == listed
    assert len(looked) == 1
    with pytest.raises(KeyError):
        plan.query("unknown")


def test_a_changed_plan_finds_its_own_queries() -> None:
    plan = plan_of(MIXED)
    name = next(iter(plan.queries)).name
    assert plan.query(name).name == name
    without = replace(plan, sets=(), joins=())
    with pytest.raises(KeyError):
        without.query(name)
    assert plan == replace(plan)
