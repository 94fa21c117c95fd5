"""`windloom explain --sharing` and `--what-if`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.command import Command
from support.trades import WINDOW, catalog, trades

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUESTION = "SELECT symbol, max(price) AS m FROM trades [RANGE 1 minute SLIDE 7 seconds] GROUP BY symbol"


def test_sharing_is_told_in_words_and_as_json(windloom: Command, desk: Path) -> None:
    outcome = windloom("explain", desk / "desk.cql", "--sharing")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Sharing: 3 queries")
    assert "sharing saves" in outcome.out
    found = json.loads(windloom("explain", desk / "desk.cql", "--sharing", "--json").out)
    parts = found["sharing"]["queries"]
    assert sum(part["seconds"] for part in parts.values()) == pytest.approx(found["sharing"]["total"])


def test_one_more_query_is_priced(windloom: Command, desk: Path) -> None:
    outcome = windloom("explain", desk / "desk.cql", "--what-if", QUESTION)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("WhatIf: adds ")
    found = json.loads(windloom("explain", desk / "desk.cql", "--what-if", QUESTION, "--json").out)
    assert found["added"] == pytest.approx(found["after"] - found["before"])


def test_over_a_file_one_more_query_adds_what_the_plan_then_costs_more(
    windloom: Command, spark: SparkSession, tmp_path: Path
) -> None:
    trades(spark).coalesce(1).write.parquet(str(tmp_path / "trades"))
    first = "SELECT symbol, sum(volume) AS v … GROUP BY symbol"
    second = "SELECT symbol, max(price) AS m … GROUP BY symbol"
    (tmp_path / "one.cql").write_text(catalog(a=first), encoding="utf-8")
    (tmp_path / "two.cql").write_text(catalog(a=first, b=second), encoding="utf-8")
    given = ("--stream", f"trades={tmp_path / 'trades'}", "--json")
    one, two = (
        json.loads(windloom("explain", tmp_path / f"{name}.cql", *given, "--sharing").out)["sharing"]
        for name in ("one", "two")
    )
    found = json.loads(windloom("explain", tmp_path / "one.cql", *given, "--what-if", second.replace("…", WINDOW)).out)
    assert (found["before"], found["after"]) == pytest.approx((one["total"], two["total"]))
    assert one["queries"]["a"]["saved"] == pytest.approx(0, abs=1e-9), "there is nobody to share with"
    assert found["alone"] == pytest.approx(two["queries"]["b"]["alone"])


ROWS = """
CREATE STREAM a (ts TIMESTAMP, k STRING, x BIGINT) TIME ts;
CREATE QUERY r AS SELECT k, x FROM a [TUMBLE 1 minute];
CREATE QUERY s AS SELECT k FROM a [TUMBLE 1 hour] WHERE x > 3;
"""
COUNTED = "CREATE QUERY n AS SELECT k, count(*) AS n FROM a [TUMBLE 1 minute] GROUP BY k;"
BY_TUPLE = """CREATE QUERY t AS SELECT median(l.x + r.x) AS m FROM a [TUMBLE 1 second] l JOIN a [TUMBLE 1 second] r
ON l.k = r.k;"""


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        (ROWS + COUNTED, "2 row queries are not among these figures: r, s\n"),
        (ROWS, "2 row queries are not among these figures: r, s\n"),
        (ROWS + COUNTED + BY_TUPLE, "3 row queries are not among these figures: "),
    ],
)
def test_row_queries_have_no_figures_of_sharing_and_are_named(
    windloom: Command, tmp_path: Path, queries: str, said: str
) -> None:
    (tmp_path / "c.cql").write_text(queries, encoding="utf-8")
    outcome = windloom("explain", tmp_path / "c.cql", "--sharing")
    assert (outcome.code, outcome.err) == (0, "")
    assert said in outcome.out
    assert windloom("explain", tmp_path / "c.cql", "--sharing", "--json").code == 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--sharing", "--format", "svg"), "sharing cannot be shown as a picture"),
        (("--sharing", "--query", "flow"), "sharing cannot be shown of one query"),
        (("--what-if", QUESTION, "--sharing"), "--what-if shows one thing only"),
        (("--what-if", "SELECT"), "what if"),
    ],
)
def test_what_cannot_be_shown_together_is_refused(
    windloom: Command, desk: Path, options: tuple[str, ...], complaint: str
) -> None:
    outcome = windloom("explain", desk / "desk.cql", *options)
    assert outcome.code == 2
    assert complaint in outcome.err
