"""`windloom explain`: the plan of a catalog, to read, for programs, and as a picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.command import Command
from support.files import put
from support.trades import ROWS, catalog

Refused = Callable[..., str]
_COSTS = ("seconds", "paper")


def test_the_plan_is_told_in_words_without_data(windloom: Command, desk: Path) -> None:
    outcome = windloom("explain", desk / "desk.cql")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Plan: 3 queries, 1 stream")
    for name in ("flow", "high", "busy"):
        assert name in outcome.out


def test_one_query_is_told_in_full(windloom: Command, desk: Path) -> None:
    outcome = windloom("explain", desk / "desk.cql", "--query", "high")
    assert outcome.code == 0
    assert "max(price)" in outcome.out
    assert "[RANGE 1 minute SLIDE 20 seconds]" in outcome.out


def test_many_queries_are_cut_short_unless_all_are_wanted(windloom: Command, tmp_path: Path) -> None:
    queries = {f"q{i}": f"SELECT max(price) AS m FROM trades [RANGE {i + 1} minutes SLIDE 10 s]" for i in range(80)}
    path = tmp_path / "many.cql"
    path.write_text(catalog(**queries))
    short, full = windloom("explain", path), windloom("explain", path, "--all")
    assert short.code == full.code == 0
    assert len(short.out) < len(full.out)
    assert all(f"q{i}" in full.out for i in range(80))


@pytest.mark.parametrize("option", [("--json",), ("--format", "json")])
def test_json_is_alone_on_stdout(windloom: Command, desk: Path, option: tuple[str, ...]) -> None:
    plan = json.loads(windloom("explain", desk / "desk.cql", *option).out)
    assert plan["format"] == "windloom-plan/2"
    assert plan["counts"]["queries"] == 3


def test_the_picture_is_well_formed(windloom: Command, desk: Path) -> None:
    outcome = windloom("explain", desk / "desk.cql", "--format", "svg", "--out", desk / "plan.svg")
    assert (outcome.code, outcome.out) == (0, f"written to {desk / 'plan.svg'}\n")
    assert ElementTree.parse(desk / "plan.svg").getroot().tag.endswith("svg")


def test_costs_are_predicted_unless_those_of_the_papers_are_asked_for(windloom: Command, desk: Path) -> None:
    assert "µs/s of event time (predicted; constants: " in windloom("explain", desk / "desk.cql").out
    counted = windloom("explain", desk / "desk.cql", "--cost", "paper")
    assert counted.code == 0
    assert "operations/s of event time" in counted.out
    assert "weaveability" in counted.out
    told = [json.loads(windloom("explain", desk / "desk.cql", "--json", "--cost", cost).out) for cost in _COSTS]
    assert [plan["cost"]["unit"].split()[0] for plan in told] == ["seconds", "operations"]


@pytest.mark.parametrize("other", [("--sharing",), ("--what-if", "SELECT count(*) AS n FROM trades [TUMBLE 1 h]")])
def test_what_is_predicted_is_told_in_seconds_only(refused: Refused, desk: Path, other: tuple[str, ...]) -> None:
    assert "in seconds" in refused("explain", desk / "desk.cql", "--cost", "paper", *other).replace("predicted ", "")


def test_a_catalog_is_run_to_show_where_its_time_goes(windloom: Command, refused: Refused, desk: Path) -> None:
    data = ("--stream", f"trades={desk / 'trades.csv'}")
    told = windloom("explain", desk / "desk.cql", *data, "--analyze")
    assert told.out.startswith("Run of 3 queries: ")
    found = json.loads(windloom("explain", desk / "desk.cql", *data, "--analyze", "--json").out)
    assert {part["tuples"] for part in found["answers"]} == {30}
    assert "one thing" in refused("explain", desk / "desk.cql", *data, "--analyze", "--sharing")
    assert "no data" in refused("explain", desk / "desk.cql", "--analyze")


def test_the_choices_of_the_plan_are_respected(windloom: Command, desk: Path) -> None:
    chosen = ("--strategy", "shared", "--slicing", "panes", "--technique", "recalculate", "--json")
    plan = json.loads(windloom("explain", desk / "desk.cql", *chosen).out)
    assert [plan[key] for key in ("strategy", "slicing", "technique")] == ["shared", "panes", "recalculate"]


def test_charts_tell_which_plan_would_be_best_where(windloom: Command, desk: Path) -> None:
    chart = ("explain", desk / "desk.cql", "--chart", "--parts", "3", "--dimensions", "2")
    outcome = windloom(*chart)
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 110
    assert outcome.out.startswith("Chart of trades: 3 × 3 regions, geometric parts")
    (found,) = json.loads(windloom(*chart, "--json", "--objective", "latency=1,memory=3").out)
    assert len(found["regions"]) == 9
    assert found["candidates"][0]["memory"] == pytest.approx(0.75, rel=0.2)
    picture = windloom(*chart, "--partition", "regular", "--format", "svg", "--out", desk / "chart.svg")
    assert (picture.code, picture.out) == (0, f"written to {desk / 'chart.svg'}\n")
    assert ElementTree.parse(desk / "chart.svg").getroot().tag.endswith("svg")


def test_charts_are_drawn_of_joins_and_rows(windloom: Command, tmp_path: Path) -> None:
    columns = "(ts TIMESTAMP, k STRING, v DOUBLE) TIME ts RATE"
    window = "[RANGE 1 minute SLIDE 10 seconds]"
    texts = [
        *(
            f"CREATE STREAM {name} {columns} {rate};"
            for name, rate in {"orders": 100, "clicks": 900, "views": 9}.items()
        ),
        f"CREATE QUERY pairs AS SELECT o.k, count(*) AS n FROM orders {window} AS o JOIN clicks [RANGE 1 minute] AS c"
        " ON o.k = c.k GROUP BY o.k;",
        f"CREATE QUERY seen AS SELECT ISTREAM o.v, w.v AS x FROM orders {window} AS o JOIN clicks [RANGE 1 minute] AS c"
        " ON o.k = c.k JOIN views [RANGE 1 minute] AS w ON c.k = w.k;",
    ]
    catalog = tmp_path / "shop.cql"
    catalog.write_text("\n".join(texts), encoding="utf-8")
    chart = ("explain", catalog, "--chart", "--parts", "3", "--dimensions", "2")
    shown = windloom(*chart)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("Chart of orders, clicks, views: 3 × 3 regions")
    assert "seen joined in order " in shown.out
    (found,) = json.loads(windloom(*chart, "--json", "--joins", "LAP", "--fold", "pairwise").out)
    assert {
        plan for plan_text in found["plans"].values() for plan in plan_text.split("; ") if "native" in plan
    } == set()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--parts", "0"), "a chart cannot have 0 parts"),
        (("--parts", "99"), "a chart of 99 parts and 3 dimensions is past its bound"),
        (("--partition", "log"), "unknown partition 'log'"),
        (("--objective", "speed"), "unknown objective 'speed'"),
        (("--objective", "latency=x"), "cannot read --objective 'latency=x'"),
        (("--objective", "latency=-1"), "the weight of 'latency' cannot be -1.0"),
        (("--objective", "latency=0,memory=0"), "all weights of the objective are zero"),
        (("--parts", "-2"), "a chart cannot have -2 parts"),
        (("--dimensions", "0"), "a chart cannot have 0 dimensions"),
        (("--sharing",), "--chart shows one thing only"),
    ],
)
def test_charts_that_cannot_be_are_refused(refused: Refused, desk: Path, options: tuple[str, ...], words: str) -> None:
    assert words in refused("explain", desk / "desk.cql", "--chart", *options)


@pytest.mark.parametrize("option", ["--parts", "--dimensions", "--partition", "--objective"])
def test_an_option_of_charts_is_refused_without_one(refused: Refused, desk: Path, option: str) -> None:
    said = refused("explain", desk / "desk.cql", option, "5")
    assert f"{option} is for charts" in said
    assert f"add --chart, or leave {option} out" in said


@pytest.mark.parametrize("objective", ["latency=0,memory=0", "memory=-2", "speed"])
def test_a_stream_with_an_objective_that_is_none_does_not_start(refused: Refused, desk: Path, objective: str) -> None:
    given = ("--stream", f"trades={desk}", "--out", desk / "out", "--trigger", "now", "--objective", objective)
    assert "objective" in refused("run", desk / "desk.cql", "--follow", *given)


def test_a_chart_of_nothing_is_refused(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "none.cql").write_text("CREATE STREAM s (ts TIMESTAMP) TIME ts;", encoding="utf-8")
    assert "there is no query to plan" in refused("explain", tmp_path / "none.cql", "--chart")


def test_a_plan_is_made_with_what_the_rounds_of_a_stream_observed(
    windloom: Command, refused: Refused, desk: Path
) -> None:
    put(desk / "in", "0", ROWS[:12])
    given = ("--stream", f"trades={desk / 'in'}", "--out", desk / "out", "--trigger", "now")
    assert windloom("run", desk / "desk.cql", "--follow", *given).code == 0
    put(desk / "in", "1", ROWS[12:])
    assert windloom("run", desk / "desk.cql", "--follow", *given).code == 0
    shown = windloom("explain", desk / "desk.cql", "--checkpoint", desk / "out" / "_checkpoint")
    assert shown.code == 0, shown.err
    assert "events/s (observed in 2 rounds)" in shown.out
    assert "groups (observed in 2 rounds)" in shown.out
    first, second = sorted((desk / "out" / "_checkpoint" / "commits").glob("*.json"))
    first.write_bytes(first.read_bytes()[:40])
    shown = windloom("explain", desk / "desk.cql", "--checkpoint", desk / "out" / "_checkpoint")
    assert "'commits/000000000.json': damaged" in shown.err
    assert "events/s (observed in 1 round)" in shown.out
    second.write_bytes(b"")
    said = refused("explain", desk / "desk.cql", "--checkpoint", desk / "out" / "_checkpoint")
    assert "nothing can be learned from" in said
    assert "'commits/000000001.json'" in said


def test_a_checkpoint_that_is_none_is_refused_by_name(refused: Callable[..., str], desk: Path) -> None:
    said = refused("explain", desk / "desk.cql", "--checkpoint", desk)
    assert f"there is no checkpoint at '{desk}'" in said
