"""`windloom plan` of a catalog."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

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


_ROWS = """
CREATE STREAM a (ts TIMESTAMP, k STRING, x BIGINT) TIME ts;
CREATE QUERY r AS SELECT k, x FROM a [TUMBLE 1 minute];
"""
_RELATIONS = """
CREATE STREAM trades (ts TIMESTAMP, symbol STRING, volume BIGINT) TIME ts RATE 200;
CREATE RELATION listing (symbol STRING, sector STRING);
CREATE NONRETROACTIVE RELATION lots (symbol STRING, lot BIGINT);
CREATE QUERY sectors AS SELECT l.sector, sum(t.volume) AS volume FROM trades [RANGE 1 minute SLIDE 20 seconds] t
  LEFT JOIN listing l ON t.symbol = l.symbol GROUP BY l.sector;
CREATE QUERY shares AS SELECT sum(t.volume * l.lot) AS shares FROM trades [TUMBLE 1 minute] t
  JOIN lots l ON t.symbol = l.symbol;
CREATE QUERY last_100 AS SELECT symbol, median(volume) AS v FROM trades [ROWS 100 SLIDE 10] GROUP BY symbol;
"""
_EXAMPLE = (Path(__file__).parents[2] / "examples" / "trades.cql").read_text(encoding="utf-8")


@pytest.mark.parametrize("cost", ["seconds", "paper"])
def test_a_catalog_of_row_queries_has_no_partials_to_share(windloom: Command, tmp_path: Path, cost: str) -> None:
    (tmp_path / "c.cql").write_text(_ROWS, encoding="utf-8")
    outcome = windloom("plan", tmp_path / "c.cql", "--cost", cost)
    assert (outcome.code, outcome.err) == (0, "")
    assert "no query has partials to share\n1 row query is made from tuples, not from partials: r" in outcome.out
    told = json.loads(windloom("plan", tmp_path / "c.cql", "--cost", cost, "--json").out)
    assert (told["sets"], told["cost"], told["row_queries"]) == ([], 0, ["r"])
    assert told["unit"] == ("seconds per second" if cost == "seconds" else "operations per second")


@pytest.mark.parametrize("cost", ["seconds", "paper"])
def test_a_query_over_a_relation_is_planned_at_the_rate_of_its_stream(
    windloom: Command, tmp_path: Path, cost: str
) -> None:
    (tmp_path / "c.cql").write_text(_RELATIONS, encoding="utf-8")
    for options, rate in (((), (200.0, "catalog")), (("--rate", "trades=50"), (50.0, "given"))):
        outcome = windloom("plan", tmp_path / "c.cql", "--cost", cost, "--json", *options)
        assert (outcome.code, outcome.err) == (0, "")
        found = json.loads(outcome.out)["sets"]
        assert {(partial_set["rate"], partial_set["rate_from"]) for partial_set in found} == {rate}
        assert "shares" in {name for partial_set in found for tree in partial_set["trees"] for name in tree["names"]}


@pytest.mark.parametrize("text", [_EXAMPLE, _RELATIONS, _ROWS])
def test_plan_and_explain_predict_the_same_cost(windloom: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "c.cql").write_text(text, encoding="utf-8")
    told = json.loads(windloom("plan", tmp_path / "c.cql", "--json").out)
    explained = json.loads(windloom("explain", tmp_path / "c.cql", "--json").out)
    assert told["cost"] == pytest.approx(explained["cost"]["total"])
    of_sets = sum(partial_set["cost"] for partial_set in told["sets"])
    assert told["cost"] == pytest.approx(of_sets + sum(told["besides"].values()))


def test_one_query_and_one_tree_are_told_in_the_singular(windloom: Command, tmp_path: Path) -> None:
    (tmp_path / "c.cql").write_text(_RELATIONS, encoding="utf-8")
    assert ": 1 query, 1 distinct window, 1 tree, 200 events/s" in windloom("plan", tmp_path / "c.cql").out
