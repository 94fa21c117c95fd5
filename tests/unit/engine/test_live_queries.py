"""Queries that come and go: planned, and forgotten when they are gone."""

from __future__ import annotations

import gc
import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

from support.trades import WINDOW, catalog
from windloom.engine.live_queries import LiveQueries
from windloom.engine.registry import Registry
from windloom.model import Query
from windloom.optimizer.adapt.candidates import choices_of
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.facts import PlanningFacts
from windloom.plan.plan import Plan
from windloom.statistics.estimates import Estimates, StreamEstimate
from windloom.statistics.set_statistics import Mean, Ongoing, SetEstimate, SetIdentity

_OPTIONS = {
    "strategy": "auto",
    "slicing": "pairs",
    "technique": "auto",
    "intake": "auto",
    "joins": "auto",
    "fold": "auto",
    "tuples": "0",
}


def no_session() -> NoReturn:
    raise AssertionError("Spark is not needed for this")


def test_nothing_stays_of_queries_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "c.cql").write_text(catalog(stays="SELECT count(*) …"), encoding="utf-8")
    registry = Registry(no_session)
    registry.load(tmp_path / "c.cql")
    live = LiveQueries(registry, PlanningFacts)
    options = _OPTIONS | {"strategy": "shared"}
    record = live.first({"stays": registry.queries["stays"].text}, options)
    counts = []
    for version in range(1, 40):
        put, gone = {f"guest_{version}": f"SELECT max(price) AS p {WINDOW}"}, [f"guest_{version - 1}"]
        record = live.following(record, version, version, put=put, remove=gone if version > 1 else [])
        live.bind("ask", f"SELECT min(price) AS p{version} {WINDOW}")
        assert live.plan_of(record).find(f"guest_{version}")
        if version in (6, 39):
            gc.collect()
            counts.append(tuple(sum(type(held) is kind for held in gc.get_objects()) for kind in (Plan, Query)))
    assert list(record.queries) == ["stays", "guest_39"]
    assert counts[0] == counts[1]


def test_plans_are_made_for_the_objective(tmp_path: Path) -> None:
    """What comes: so many tuples of so many groups that weaving is faster, and partials are fewer bytes."""
    (tmp_path / "c.cql").write_text(catalog(q="SELECT symbol, sum(price) AS p … GROUP BY symbol"), encoding="utf-8")
    registry = Registry(no_session)
    registry.load(tmp_path / "c.cql")
    options = _OPTIONS
    identity = SetIdentity.of_query(registry.queries["q"])
    seen = Estimates(
        {"trades": StreamEstimate(Mean(30_000.0, 3), Mean(20.0, 3))},
        {identity: SetEstimate(Mean(1.0, 3), Mean(60_000.0, 3), Mean(60_000.0, 3))},
    )
    ways = {}
    for name in ("latency", "memory"):
        live = LiveQueries(registry, lambda: PlanningFacts(estimates=seen, ongoing=Ongoing()), Objective.of(name))
        record = live.first({"q": registry.queries["q"].text}, options)
        ways[name] = record.choices.options_of("intake")["trades"]
        assert choices_of(live.plan_of(record)) == record.choices
    assert ways == {"latency": "woven", "memory": "native"}


@pytest.mark.parametrize(("epsilon", "plans_anew"), [(0.0, True), (math.inf, False)])
def test_the_tolerance_says_when_trees_that_follow_queries_are_planned_anew(
    tmp_path: Path, epsilon: float, plans_anew: bool
) -> None:
    rng = random.Random(1)
    slides = [rng.choice([7, 10, 11, 13, 60, 77, 100, 600]) for _ in range(10)]
    texts = {
        f"q{i}": f"SELECT count(*) AS n FROM trades [RANGE {slide * rng.randint(1, 4000)} s SLIDE {slide} s]"
        for i, slide in enumerate(slides)
    }
    (tmp_path / "c.cql").write_text(catalog(q0=texts["q0"]), encoding="utf-8")
    registry = Registry(no_session)
    registry.load(tmp_path / "c.cql")
    options = _OPTIONS | {"strategy": "weave_share", "technique": "recalculate"}
    live = LiveQueries(registry, PlanningFacts, epsilon=epsilon)
    record = live.first({"q0": texts["q0"]}, options)
    same = []
    for version, name in enumerate(list(texts)[1:], start=1):
        record = live.following(record, version, version, put={name: texts[name]})
        anew = LiveQueries(registry, PlanningFacts).first(record.queries, options)
        same.append(_sets(record.choices.tree_names) == _sets(anew.choices.tree_names))
    assert all(same) is plans_anew


def _sets(trees: Iterable[Iterable[str]]) -> set[frozenset[str]]:
    return {frozenset(tree) for tree in trees}
