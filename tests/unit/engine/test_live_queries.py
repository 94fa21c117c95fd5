"""Queries that come and go: planned, and forgotten when they are gone."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import NoReturn

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
