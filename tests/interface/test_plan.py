"""`windloom plan` of a catalog."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from support.command import Command


def test_a_catalog_is_planned_at_the_rate_given(windloom: Command, desk: Path) -> None:
    outcome = windloom("plan", desk / "desk.cql", "--rate", "trades=50", "--strategy", "no_share", "--json")
    assert outcome.code == 0
    told = json.loads(outcome.out)
    assert {partial_set["rate"] for partial_set in told["sets"]} == {50.0}
    assert sorted(name for partial_set in told["sets"] for tree in partial_set["trees"] for name in tree["names"]) == [
        "busy",
        "flow",
        "high",
    ]
    assert told["unit"] == "seconds per second"


def test_a_catalog_is_costed_as_the_papers_do_where_that_is_asked_for(windloom: Command, desk: Path) -> None:
    outcome = windloom("plan", desk / "desk.cql", "--rate", "trades=50", "--cost", "paper")
    assert outcome.code == 0
    assert "operations/edge" in outcome.out
    assert "operations/s of event time (strategy weave_share" in outcome.out


def test_a_rate_of_a_stream_that_is_not_there_is_refused(refused: Callable[..., str], desk: Path) -> None:
    assert "no stream 'trade'" in refused("plan", desk / "desk.cql", "--rate", "trade=5")
