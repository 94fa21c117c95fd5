"""`windloom plan` of generated workloads, which need no Spark."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from support.command import Outcome
from windloom.cli.main import main

Plan = Callable[..., Outcome]


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str]) -> Plan:
    def run(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as left:
            main(["plan", *map(str, arguments)])
        written = capsys.readouterr()
        return Outcome(int(left.value.code or 0), written.out, written.err)

    return run


@pytest.mark.parametrize("workload", ["divisors", "zipf"])
def test_a_workload_is_told_as_json(plan: Plan, workload: str) -> None:
    outcome = plan("--workload", workload, "--queries", 40, "--rate", 20, "--seed", 5, "--cost", "paper", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    told = json.loads(outcome.out)
    (partial_set,) = told["sets"]
    assert (told["queries"], partial_set["rate"], partial_set["rate_from"]) == (40, 20.0, "given")
    assert sum(tree["queries"] for tree in partial_set["trees"]) == 40
    assert sum(tree["cost"] for tree in partial_set["trees"]) == pytest.approx(told["cost"])
    assert told["tree_count"] == len(partial_set["trees"]) > 1
    assert all(tree["edges_per_second"] > 0 for tree in partial_set["trees"])
    assert told["seconds"] >= 0
    assert told["peak_memory_bytes"] > 1 << 20


def test_costs_are_predicted_seconds_unless_the_papers_are_asked_for(plan: Plan) -> None:
    asked = ("--workload", "zipf", "--queries", 40, "--json")
    predicted, counted = (json.loads(plan(*asked, "--cost", cost).out) for cost in ("seconds", "paper"))
    assert json.loads(plan(*asked).out)["cost"] == predicted["cost"]
    assert (predicted["unit"], counted["unit"]) == ("seconds per second", "operations per second")
    assert "operations_per_edge" not in predicted["sets"][0]["trees"][0]
    for told in (predicted, counted):
        (partial_set,) = told["sets"]
        assert partial_set["cost"] == pytest.approx(
            partial_set["once"] + sum(tree["cost"] for tree in partial_set["trees"])
        )
    assert 0 < predicted["cost"] < 1 < counted["cost"]


def test_slides_of_source_a_are_drawn_from_templates_of_whole_seconds(plan: Plan) -> None:
    def edges(*options: object) -> float:
        asked = ("--workload", "zipf", "--queries", 40, "--strategy", "shared", "--cost", "paper", "--json")
        (tree,) = json.loads(plan(*asked, *options).out)["sets"][0]["trees"]
        return float(tree["edges_per_second"])

    assert edges("--templates", 1) == 1  # all slides are one second
    assert edges() == edges("--templates", 26, "--unit", "1 s") != edges("--templates", 0)


def test_a_strategy_is_costed_in_seconds_too(plan: Plan) -> None:
    asked = ("--workload", "zipf", "--queries", 40, "--json", "--strategy")
    apart, together = (json.loads(plan(*asked, name).out) for name in ("no_share", "shared"))
    assert (apart["tree_count"], together["tree_count"]) == (40, 1)
    assert apart["cost"] > together["cost"]


def test_the_same_options_give_the_same_plan(plan: Plan) -> None:
    def trees() -> object:
        return json.loads(plan("--workload", "zipf", "--queries", 60, "--json").out)["sets"][0]["trees"]

    assert trees() == trees()


def test_a_workload_is_told_as_a_table(plan: Plan) -> None:
    outcome = plan("--workload", "divisors", "--queries", 200)
    assert outcome.code == 0
    assert outcome.out.startswith("divisors: 200 queries")
    assert "µs/s of event time (strategy auto" in outcome.out
    assert "1,000 events/s (default)" in outcome.out
    assert "peak memory" in outcome.out


def test_many_trees_are_cut_short(plan: Plan) -> None:
    outcome = plan("--workload", "zipf", "--queries", 50, "--strategy", "no_share")
    assert "… 30 more trees" in outcome.out


def test_tri_weave_pays_for_the_stream_once(plan: Plan) -> None:
    options = ("--strategy", "tri_weave", "--cost", "paper", "--json")
    told = json.loads(plan("--workload", "zipf", "--queries", 30, *options).out)
    assert told["sets"][0]["once"] == 1000.0
    assert told["cost"] == pytest.approx(1000.0 + sum(tree["cost"] for tree in told["sets"][0]["trees"]))


def test_a_technique_has_its_own_cost(plan: Plan) -> None:
    paper = ("--cost", "paper", "--json")
    costs = [
        json.loads(plan("--workload", "divisors", "--queries", 100, "--technique", name, *more, *paper).out)["cost"]
        for name, more in (("recalculate", ()), ("slick_deque", ()), ("slick_deque", ("--aggregate", "max")))
    ]
    assert len(set(costs)) == 3
    assert min(costs) < costs[0]


def test_a_rate_of_zero_is_unknown_and_the_report_says_so(plan: Plan) -> None:
    assert "1,000 events/s (default, as 0 was given)" in plan("--workload", "zipf", "--queries", 3, "--rate", 0).out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "neither a catalog nor a workload"),
        (("some.cql", "--workload", "zipf"), "both are given"),
        (("some.cql", "--queries", 3), "--queries does not go with a catalog"),
        (("--workload", "zipf", "--rate", "trades=3"), "one stream"),
        (("--workload", "zipf", "--rate", "-3"), "cannot be '-3'"),
        (("--workload", "zipf", "--rate", "fast"), "cannot be 'fast'"),
        (("--workload", "zipf", "--epsilon", "0.1"), "--epsilon does not go with --strategy"),
        (("--workload", "zipf", "--epsilon", "-1", "--strategy", "incremental"), "cannot be -1"),
        (("--workload", "zipf", "--memory", "much"), "cannot read --memory 'much'"),
        (("--workload", "zipf", "--queries", 2000, "--memory", "1m", "--cost", "paper"), "takes 22 MiB to find"),
        (("--workload", "zipf", "--unit", "0 s"), "no length of time"),
        (("--workload", "divisors", "--overlap", "2.5"), "ranges are whole slides"),
        (("--workload", "divisors", "--templates", 5), "--templates does not go with --workload divisors"),
        (("--workload", "zipf", "--strategy", "weave"), "unknown strategy 'weave'"),
        (("--workload", "zipf", "--queries", 30, "--strategy", "exhaustive"), "at most 12 windows"),
        (("--workload", "divisors", "--queries", 6000, "--strategy", "incremental"), "at most 5,000 queries"),
        (("--workload", "zipf", "--technique", "prefix_ring", "--aggregate", "max"), "cannot answer --aggregate max"),
    ],
)
def test_mistakes_are_one_message_with_a_hint(plan: Plan, arguments: tuple[object, ...], complaint: str) -> None:
    outcome = plan(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert complaint in outcome.err
    assert "hint: " in outcome.err
    assert "Traceback" not in outcome.err
