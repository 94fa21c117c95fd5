"""`loom.what_if`: what a query would cost, before it is added, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from support.trades import WINDOW, catalog
from windloom import Loom, WindloomError


def no_session() -> NoReturn:
    raise AssertionError("Spark is not needed for this")


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    path = tmp_path / "c.cql"
    path.write_text(catalog(a="SELECT symbol, sum(volume) AS v … GROUP BY symbol"), encoding="utf-8")
    loom = Loom(no_session)
    loom.load(path)
    return loom


def test_a_query_that_needs_what_is_there_adds_little(loom: Loom) -> None:
    same = loom.what_if(f"SELECT symbol, sum(volume) AS v2 {WINDOW} GROUP BY symbol")
    finer = loom.what_if("SELECT symbol, sum(volume) AS v FROM trades [RANGE 30 s SLIDE 1 s] GROUP BY symbol")
    assert 0 < same.added < 0.2 * same.alone
    assert same.added_edges_per_second == 0
    assert finer.added > 2 * same.added
    assert finer.added_edges_per_second == pytest.approx(0.9)
    assert (same.partners, same.new_set) == (1, False)


def test_nothing_is_registered_by_asking(loom: Loom) -> None:
    before = loom.plan()
    loom.what_if(f"SELECT max(price) AS m {WINDOW}")
    assert list(loom.queries) == ["a"]
    assert loom.plan() is before


def test_adding_the_query_costs_what_was_said(loom: Loom) -> None:
    text = "SELECT symbol, avg(price) AS p FROM trades [RANGE 1 minute SLIDE 20 seconds] GROUP BY symbol"
    found = loom.what_if(text)
    loom.query("b", text)
    again = loom.what_if(f"SELECT symbol, sum(volume) AS v {WINDOW} GROUP BY symbol")
    assert again.before == pytest.approx(found.after)


def test_the_first_query_is_all_of_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "c.cql"
    path.write_text(catalog(), encoding="utf-8")
    loom = Loom(no_session)
    loom.load(path)
    found = loom.what_if(f"SELECT count(*) AS n {WINDOW}")
    assert (found.before, found.added, found.new_set) == (0.0, found.after, True)
    assert found.added == pytest.approx(found.alone)


def test_it_reads_well(loom: Loom) -> None:
    said = repr(loom.what_if(f"SELECT  max(price) AS m\n {WINDOW} GROUP BY symbol"))
    assert said.startswith("WhatIf: adds ")
    assert "query   SELECT max(price) AS m FROM trades" in said
    assert "with 1 other query" in said
    apart = repr(loom.what_if(f"SELECT max(price) AS m {WINDOW}"))
    assert "no other query has its stream, predicate, grouping and kind of window" in apart


def test_windows_of_rows_are_a_set_of_their_own_beside_windows_of_time(loom: Loom) -> None:
    found = loom.what_if("SELECT symbol, sum(volume) AS v FROM trades [ROWS 100 SLIDE 10] GROUP BY symbol")
    assert (found.partners, found.new_set) == (0, True)
    events_per_second = loom.streams["trades"].events_per_second or 1_000
    assert found.added_edges_per_second == pytest.approx(events_per_second / 10)


def test_windows_of_rows_join_those_that_are_counted_alike(loom: Loom) -> None:
    loom.query("rows", "SELECT symbol, sum(volume) AS v FROM trades [ROWS 100 SLIDE 10] GROUP BY symbol")
    same = loom.what_if("SELECT symbol, max(volume) AS v FROM trades [ROWS 50 SLIDE 10] GROUP BY symbol")
    by_key = "FROM trades [PARTITION BY symbol ROWS 50 SLIDE 10] GROUP BY symbol"
    apart = loom.what_if(f"SELECT symbol, max(volume) AS v {by_key}")
    assert (same.new_set, same.added_edges_per_second) == (False, 0)
    assert apart.new_set


def test_a_wrong_query_is_refused_as_when_it_is_added(loom: Loom) -> None:
    with pytest.raises(WindloomError, match="unknown column 'prise'"):
        loom.what_if(f"SELECT max(prise) {WINDOW}")
    with pytest.raises(WindloomError, match="cannot take 'sum\\(symbol\\)'"):
        loom.what_if(f"SELECT sum(symbol) {WINDOW}")


def test_sharing_is_explained_as_text_and_json_only(loom: Loom) -> None:
    assert loom.explain(sharing=True).startswith("Sharing: 1 query")
    assert '"sharing": {' in loom.explain("json", sharing=True)
    for wrong in ({"format": "svg"}, {"query": "a"}):
        with pytest.raises(WindloomError, match=r"sharing cannot be shown (of one query|as a picture)"):
            loom.explain(sharing=True, **wrong)  # type: ignore[arg-type]


def test_a_row_query_tells_what_is_kept_for_it(loom: Loom) -> None:
    found = loom.what_if("SELECT a.symbol, b.price FROM trades a JOIN trades b WITHIN 1 minute ON a.symbol = b.symbol")
    (keeps,) = found.keeps
    assert keeps.startswith("trades: 1 minute, about 60,000 tuples, ")
    assert "looks kept tuples up by key and time" in found.place
    assert keeps in repr(found)
    assert keeps.endswith("(rate assumed)")
    assert repr(found).startswith("WhatIf: a row query, for which tuples are kept\n"), "its work is not predicted"


def test_what_is_one_is_told_in_the_singular(loom: Loom) -> None:
    assert "adds 1 edge/s to its set's" in repr(loom.what_if("SELECT count(*) AS n FROM trades [TUMBLE 1 second]"))
    loom.query("b", "SELECT count(*) AS n FROM trades [TUMBLE 1 second]")
    loom.query("c", "SELECT count(*) AS n FROM trades [RANGE 10001 ms SLIDE 10 s OFFSET 500 ms]")
    assert "adds 1 edge/s that no other query needs" in loom.explain(sharing=True)
    assert "lies in 1 window, on average" in loom.explain(query="c")


def test_a_chart_of_row_queries_says_that_there_is_nothing_to_choose(tmp_path: Path) -> None:
    path = tmp_path / "c.cql"
    path.write_text(catalog(a="SELECT symbol, price …"), encoding="utf-8")
    loom = Loom(no_session)
    loom.load(path)
    assert "A: row queries only, which leave nothing to choose" in loom.chart()
