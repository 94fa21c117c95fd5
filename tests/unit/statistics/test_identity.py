"""What makes two partial sets the same: one value, whether it is found from a query or from a set."""

from __future__ import annotations

import pytest

from support.trades import catalog
from windloom import Loom
from windloom.statistics.set_statistics import Difference, SetIdentity

QUERIES = {
    "plain": "SELECT sum(price) AS s FROM trades [RANGE 30 s SLIDE 10 s]",
    "grown": "SELECT sum(price) AS s FROM trades [LANDMARK SLIDE 10 s]",
    "where": "SELECT sum(price) AS s FROM trades [RANGE 30 s SLIDE 10 s] WHERE price > 1 AND volume > 2",
    "groups": "SELECT symbol, sum(price) AS s FROM trades [RANGE 30 s SLIDE 10 s] GROUP BY symbol, volume",
    "rows": "SELECT sum(price) AS s FROM trades [ROWS 10 SLIDE 5]",
    "keyed": "SELECT symbol, sum(price) AS s FROM trades [PARTITION BY symbol ROWS 10 SLIDE 5] GROUP BY symbol",
}


@pytest.fixture
def loom(tmp_path) -> Loom:
    path = tmp_path / "c.cql"
    path.write_text(catalog(), encoding="utf-8")
    loom = Loom(lambda: pytest.fail("Spark is not needed for this"))
    loom.load(path)
    for name, text in QUERIES.items():
        loom.query(name, text)
    return loom


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_and_the_set_that_answers_it_have_one_identity(loom: Loom, name: str) -> None:
    partial_set, _, planned = loom.plan().find(name)
    assert SetIdentity.of_query(planned.query) == partial_set.identity
    assert loom.plan().by_identity[partial_set.identity] is partial_set


def test_sets_of_a_plan_differ_in_identity_and_say_in_what(loom: Loom) -> None:
    plan = loom.plan()
    assert len(plan.by_identity) == len(plan.sets) == 5

    def differences(left: str, right: str) -> tuple[Difference, ...]:
        return plan.find(left)[0].identity.differences(plan.find(right)[0].identity)

    assert differences("plain", "grown") == ()
    assert differences("plain", "where") == (Difference.PREDICATE,)
    assert differences("plain", "rows") == (Difference.WINDOWS,)
    assert differences("rows", "keyed") == (Difference.GROUPING, Difference.WINDOWS)


def test_a_set_says_what_it_is_of(loom: Loom) -> None:
    loom.query("visits", "SELECT count(*) AS n FROM trades [SESSION GAP 5 minutes]")
    plan = loom.plan()
    assert {name: plan.find(name)[0].text for name in ("plain", "groups", "rows", "keyed", "visits")} == {
        "plain": "trades",
        "groups": "trades GROUP BY symbol, volume",
        "rows": "trades [ROWS]",
        "keyed": "trades [PARTITION BY symbol ROWS] GROUP BY symbol",
        "visits": "trades [SESSION GAP 5 minutes]",
    }
    assert plan.find("where")[0].text.startswith("trades WHERE ")


def test_spelling_and_order_do_not_matter(loom: Loom) -> None:
    loom.query("again", "SELECT sum(price) AS s FROM trades [RANGE 9 s SLIDE 1 s] WHERE 2 < volume AND price > 1")
    loom.query("turned", "SELECT volume AS v, sum(price) AS s FROM trades [TUMBLE 1 s] GROUP BY volume, symbol")
    plan = loom.plan()
    assert plan.find("again")[0] is plan.find("where")[0]
    assert plan.find("turned")[0] is plan.find("groups")[0]
