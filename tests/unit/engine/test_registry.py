"""Registering without Spark: a catalog is read, checked and planned before there is a session."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from support.trades import STREAM, WINDOW, catalog
from windloom import Loom, WindloomError
from windloom_tools.demo.catalog import demo_catalog

EXAMPLE = Path(__file__).parents[3] / "examples" / "trades.cql"

#: Predicates, filters and arithmetic of many types, as catalogs of unlike queries have them.
UNLIKE = """
CREATE STREAM bids (ts TIMESTAMP, auction BIGINT, bidder BIGINT, price DOUBLE, fee DECIMAL(10, 2), channel STRING,
                    country STRING, test BOOLEAN) TIME ts;
CREATE QUERY q1 AS SELECT channel, sum(price) FILTER (WHERE channel = 'web') AS w, count(DISTINCT bidder) AS u
  FROM bids [RANGE 1 minute SLIDE 10 seconds] WHERE country <> 'US' AND price > 50 GROUP BY channel;
CREATE QUERY q2 AS SELECT max(price) - min(price) AS spread FROM bids [TUMBLE 10 seconds] WHERE bidder % 2 = 0;
CREATE QUERY q3 AS SELECT upper(country) AS c, sum(fee * 2 + coalesce(fee, 0)) AS f, median(price) AS m
  FROM bids [RANGE 5 minutes SLIDE 1 minute] WHERE price BETWEEN 10 AND 20 OR NOT test GROUP BY upper(country);
CREATE QUERY q4 AS SELECT hour(ts) AS h, sum(CASE WHEN channel IN ('app', 'api') THEN 1 ELSE 0 END) AS n
  FROM bids [TUMBLE 1 hour] WHERE channel LIKE 'a%' GROUP BY hour(ts) HAVING count(*) > 5;
CREATE QUERY q5 AS SELECT avg(round(price / nullif(auction, 0), 2)) AS a, max_by(bidder, price) AS b
  FROM bids [RANGE 1 hour SLIDE 5 minutes] WHERE cast(fee AS int) > 3 AND date_trunc('day', ts) IS NOT NULL;
"""


def no_session() -> NoReturn:
    raise AssertionError("Spark is not needed for this")


@pytest.fixture
def loom() -> Loom:
    return Loom(no_session)


def put(folder: Path, text: str) -> Path:
    path = folder / "c.cql"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_catalog_of_columns_is_planned_without_a_session(loom: Loom, tmp_path: Path) -> None:
    loom.load(put(tmp_path, catalog(a="SELECT symbol, avg(price) AS p … GROUP BY symbol HAVING count(*) > 1")))
    assert loom.explain().startswith("Plan: 1 query, 1 stream")
    assert loom.plan() is loom.plan(), "found once for the same queries and options"
    assert loom.plan() is not loom.plan(slicing="panes")
    assert repr(loom) == "<Loom: 1 queries over 1 streams>"


@pytest.mark.parametrize("text", [EXAMPLE.read_text(encoding="utf-8"), demo_catalog(1_000), UNLIKE])
def test_a_catalog_of_ordinary_expressions_is_planned_without_a_session(loom: Loom, tmp_path: Path, text: str) -> None:
    loom.load(put(tmp_path, text))
    assert loom.explain().startswith("Plan: ")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("try_add(price, 2)", "no rule"),
        ("no_such_function(price)", "no such function"),
        ("upper(price, price)", "too many arguments"),
        ("array(price)[0]", "a nested value"),
    ],
)
def test_spark_is_asked_for_types_that_no_rule_gives(loom: Loom, tmp_path: Path, expression: str, why: str) -> None:
    loom.load(put(tmp_path, catalog(a=f"SELECT max({expression}) AS m …")))
    with pytest.raises(AssertionError, match="Spark is not needed for this"):
        loom.plan()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("SELECT sum(upper(symbol)) AS s …", "query 'a': cannot take 'sum\\(upper\\(symbol\\)\\)'"),
        ("SELECT count(*) AS n … WHERE price + 1", "the WHERE condition 'price \\+ 1' is not a condition"),
        ("SELECT bool_or(volume + 1) AS b …", "cannot take 'bool_or\\(volume \\+ 1\\)'"),
    ],
)
def test_types_by_rule_refuse_what_types_from_spark_refuse(loom: Loom, tmp_path: Path, text: str, wrong: str) -> None:
    loom.load(put(tmp_path, catalog(a=text)))
    with pytest.raises(WindloomError, match=wrong):
        loom.plan()


def test_adding_a_query_makes_a_new_plan(loom: Loom, tmp_path: Path) -> None:
    loom.load(put(tmp_path, catalog(a="SELECT count(*) …")))
    before = loom.plan()
    loom.query("b", f"SELECT max(price) AS m {WINDOW}")
    assert [planned.name for planned in before.queries] == ["a"]
    assert {planned.name for planned in loom.plan().queries} == {"a", "b"}


def test_a_catalog_with_a_mistake_registers_nothing(loom: Loom, tmp_path: Path) -> None:
    with pytest.raises(WindloomError, match="unknown column 'prise'"):
        loom.load(put(tmp_path, catalog(good="SELECT count(*) …", wrong="SELECT max(prise) …")))
    assert not loom.streams
    assert not loom.queries
    loom.load(put(tmp_path, catalog(good="SELECT count(*) …")))
    assert list(loom.queries) == ["good"]


def test_a_query_with_a_mistake_leaves_the_others(loom: Loom, tmp_path: Path) -> None:
    loom.load(put(tmp_path, catalog(good="SELECT count(*) …")))
    with pytest.raises(WindloomError, match="query 'wrong': cannot take 'sum\\(symbol\\)'"):
        loom.query("wrong", f"SELECT sum(symbol) {WINDOW}")
    assert list(loom.queries) == ["good"]


def test_catalogs_add_up_while_their_names_differ(loom: Loom, tmp_path: Path) -> None:
    loom.load(put(tmp_path, STREAM))
    loom.load(put(tmp_path, f"CREATE QUERY a AS SELECT count(*) {WINDOW};"))
    loom.load(put(tmp_path, STREAM.replace("trades", "quotes")))
    assert (list(loom.streams), list(loom.queries)) == (["trades", "quotes"], ["a"])
    loom.load(put(tmp_path, STREAM.replace("trades", "quotes")))  # the same again
    with pytest.raises(WindloomError, match="stream 'quotes' is already registered"):
        loom.load(put(tmp_path, STREAM.replace("trades", "quotes").replace("10 seconds", "11 seconds")))


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_query_needs_a_name(loom: Loom, name: str) -> None:
    with pytest.raises(WindloomError, match="a query needs a name"):
        loom.query(name, "SELECT 1")


def test_names_of_the_plans_choices_are_checked_first(loom: Loom) -> None:
    for choice in ("strategy", "slicing", "technique"):
        with pytest.raises(WindloomError, match=f"unknown {choice} 'x'"):
            loom.plan(**{choice: "x"})
