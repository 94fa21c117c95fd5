"""Registering without Spark: a catalog is read, checked and planned before there is a session."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from support.trades import STREAM, WINDOW, catalog
from windloom import Loom, WindloomError


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
    with pytest.raises(WindloomError, match="stream 'quotes' is already registered"):
        loom.load(put(tmp_path, STREAM.replace("trades", "quotes")))


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_query_needs_a_name(loom: Loom, name: str) -> None:
    with pytest.raises(WindloomError, match="a query needs a name"):
        loom.query(name, "SELECT 1")


def test_names_of_the_plans_choices_are_checked_first(loom: Loom) -> None:
    for choice in ("strategy", "slicing", "technique"):
        with pytest.raises(WindloomError, match=f"unknown {choice} 'x'"):
            loom.plan(**{choice: "x"})
