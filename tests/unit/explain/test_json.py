"""EXPLAIN as JSON: what programs may rely on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from golden.plans import FEW, MIXED, SESSIONS, json_of, many_queries, plan_of
from windloom.slicing.edges import EdgeClass, EdgeSet


@pytest.mark.parametrize("slicing", ["panes", "pairs", "cutty"])
@pytest.mark.parametrize("strategy", ["no_share", "shared", "weave_share"])
def test_it_is_json_and_holds_every_query_once(strategy: str, slicing: str) -> None:
    plan = plan_of(MIXED, strategy=strategy, slicing=slicing)
    said = json.loads(json.dumps(json_of(plan), allow_nan=False))
    names = [
        query["name"] for partial_set in said["sets"] for tree in partial_set["trees"] for query in tree["queries"]
    ]
    assert sorted(names) == sorted(planned.name for planned in plan.queries)
    assert said["counts"]["queries"] == len(names)


def test_predicted_costs_add_up() -> None:
    said = json_of(plan_of(MIXED, strategy="no_share"))
    sets = said["sets"]
    assert said["cost"]["total"] == pytest.approx(
        said["cost"]["job"] + sum(partial_set["cost"]["total"] for partial_set in sets)
    )
    for partial_set in sets:
        trees = sum(tree["cost"]["total"] for tree in partial_set["trees"])
        parts = partial_set["cost"]["scan"] + partial_set["cost"]["partials"] + partial_set["cost"]["merge"]
        assert partial_set["cost"]["total"] == pytest.approx(parts + trees)
        for cost in (tree["cost"] for tree in partial_set["trees"]):
            assert cost["total"] == pytest.approx(cost["own"] + cost["combine"] + cost["answers"])


def test_costs_of_the_papers_add_up() -> None:
    said = json_of(plan_of(MIXED, strategy="no_share"), "paper")
    trees = [tree["cost"] for partial_set in said["sets"] for tree in partial_set["trees"]]
    assert said["cost"]["total"] == pytest.approx(said["cost"]["read"] + said["cost"]["combine"])
    assert said["cost"]["combine"] == pytest.approx(sum(cost["total"] for cost in trees))
    for cost in trees:
        assert cost["total"] == pytest.approx(cost["edges_per_second"] * cost["operations_per_edge"])


@pytest.mark.parametrize(
    ("catalog", "way"),
    [
        ("CREATE QUERY a AS SELECT count(*) AS n FROM trades [TUMBLE 1 minute];", "regular"),
        (FEW, "greatest"),
    ],
)
def test_the_way_to_a_slice_comes_with_its_numbers(catalog: str, way: str) -> None:
    slice_id = json_of(plan_of(catalog))["sets"][0]["slice_id"]
    assert slice_id["way"] == way
    assert {"regular": "period_ticks", "greatest": "classes"}[way] in slice_id


def test_numbers_too_large_for_readers_of_json_are_null_and_said_in_words() -> None:
    plan = plan_of(FEW)
    edges = EdgeSet.of(EdgeClass(1_000_000 * prime) for prime in (10_007, 10_009, 10_037, 10_039))
    said = json_of(replace(plan, sets=(replace(plan.sets[0], edges=edges),)))["sets"][0]["edges"]
    assert said["composite_slide_ticks"] is None
    assert said["composite_slide"] == "about 320 million years"


def test_expressions_over_aggregates_are_spelled_out() -> None:
    queries = json_of(plan_of(FEW))["sets"][0]["trees"][0]["queries"]
    vwap = next(query for query in queries if query["name"] == "vwap")
    assert "__a" not in vwap["answer"]
    assert vwap["having"] == "count(*) > 10"


def test_it_grows_with_the_queries_and_not_with_their_pairs() -> None:
    assert len(json.dumps(json_of(plan_of(many_queries(150))))) < 150 * 1_500


def test_sessions_are_told_with_their_gap_and_what_they_keep() -> None:
    said = json_of(plan_of(SESSIONS))
    assert [scan["intake"] for scan in said["scans"]] == ["woven"]
    assert "session windows" in said["scans"][0]["why"]
    kept = [
        partial_set
        for partial_set in said["sets"]
        if partial_set["trees"][0]["queries"][0]["window"]["kind"] == "session"
    ]
    assert len(kept) == 2
    assert all(partial_set["components"][1]["name"] == "last_tick" for partial_set in kept)
    window = kept[0]["trees"][0]["queries"][0]["window"]
    assert window["text"] == f"[SESSION GAP {window['range_ticks'] // 1_000_000} seconds]"
