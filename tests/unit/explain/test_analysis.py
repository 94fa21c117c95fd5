"""EXPLAIN ANALYZE of a run: its stages, and what answered its queries."""

from __future__ import annotations

import pytest

from golden.plans import FEW, plan_of
from windloom.explain.analysis import MeasuredRun, analysis, analysis_text

PLAN = plan_of(FEW)
MEASURED = MeasuredRun(
    cores=2,
    seconds={"plan": 0.25, "partials": 0.5, "answers": 1.25},
    processor={"plan": 0.25, "partials": 1.0, "answers": 1.75},
    tuples={each.number: 1000 for each in PLAN.sets},
    cells={each.number: 40 + each.number for each in PLAN.sets},
    groups={each.number: 4 for each in PLAN.sets},
    took={tree.answered[0].name: 0.5 + number for number, tree in enumerate(PLAN.trees)} | {"a join": 9.0},
)


def test_cores_are_idle_for_the_share_of_their_seconds_that_the_processor_did_not_work() -> None:
    found = analysis(PLAN, MEASURED)
    assert (found["seconds"], found["processor"], found["cores"]) == (2.0, 3.0, 2)
    assert found["idle"] == pytest.approx(0.25)
    assert [(each["stage"], each["idle"]) for each in found["stages"]] == [
        ("plan", pytest.approx(0.5)),
        ("partials", pytest.approx(0.0)),
        ("answers", pytest.approx(0.3)),
    ]


def test_what_took_longest_comes_first_with_the_counts_of_its_set() -> None:
    parts = analysis(PLAN, MEASURED)["answers"]
    assert [each["seconds"] for each in parts] == sorted(MEASURED.took.values(), reverse=True)
    assert parts[0] == {"part": "a join", "queries": ["a join"], "seconds": 9.0}
    trees = {tree.answered[0].name: (each, tree) for each in PLAN.sets for tree in each.trees}
    for part in parts[1:]:
        partial_set, tree = trees[part["queries"][0]]
        assert part["queries"] == [planned.name for planned in tree.answered]
        assert (part["tuples"], part["cells"], part["groups"]) == (1000, 40 + partial_set.number, 4)


def test_the_text_has_a_line_for_every_stage_and_for_what_took_longest() -> None:
    lines = analysis_text(analysis(PLAN, MEASURED)).splitlines()
    queries = sum(1 for _ in PLAN.queries)
    assert lines[0] == f"Run of {queries} queries: 2.000 s, 2 cores, 25 % idle"
    assert [line.split() for line in lines[2:7]] == [
        ["stage", "seconds", "processor", "idle"],
        ["plan", "0.250", "0.250", "50", "%"],
        ["partials", "0.500", "1.000", "0", "%"],
        ["answers", "1.250", "1.750", "30", "%"],
        ["all", "2.000", "3.000", "25", "%"],
    ]
    assert lines[8].split() == ["answers", "queries", "tuples", "cells", "groups", "seconds"]
    assert lines[9].split() == ["a", "join", "1", "9.000"]
    assert len(lines) == 9 + len(MEASURED.took)


def test_a_long_list_is_cut_short_and_says_what_is_left() -> None:
    many = MeasuredRun(took={f"join {number}": 1.0 for number in range(30)})
    last = analysis_text(analysis(PLAN, many)).splitlines()[-1]
    trees = sum(1 for _ in PLAN.trees)
    assert last == f"  … and {10 + trees} others, 10.000 s together"
