"""Reading holistic aggregates: DISTINCT, and constants among the arguments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.model import Aggregate, Expression, Query

Read = Callable[[str], Query]

PRICE, SYMBOL = Expression.of_column("price"), Expression.of_column("symbol")


@pytest.mark.parametrize(
    ("call", "aggregate", "name"),
    [
        ("count(DISTINCT symbol)", Aggregate("count_distinct", SYMBOL), "count(DISTINCT symbol)"),
        ("min(DISTINCT price)", Aggregate("min", PRICE), "min(price)"),
        ("median(price)", Aggregate("quantile", PRICE, parameters=(0.5,)), "median(price)"),
        ("quantile(price, 0.95)", Aggregate("quantile", PRICE, parameters=(0.95,)), "quantile(price, 0.95)"),
        ("percentile(price, 1)", Aggregate("quantile", PRICE, parameters=(1,)), "percentile(price, 1)"),
        ("top(3, symbol)", Aggregate("top", SYMBOL, parameters=(3,)), "top(3, symbol)"),
        ("frequent(3, symbol)", Aggregate("frequent", SYMBOL, parameters=(3,)), "frequent(3, symbol)"),
        (
            "approx_count_distinct(symbol)",
            Aggregate("approx_count_distinct", SYMBOL),
            "approx_count_distinct(symbol)",
        ),
        (
            "approx_quantile(price, .5)",
            Aggregate("approx_quantile", PRICE, parameters=(0.5,)),
            "approx_quantile(price, 0.5)",
        ),
        ("approx_top(3, symbol)", Aggregate("approx_top", SYMBOL, parameters=(3,)), "approx_top(3, symbol)"),
    ],
)
def test_a_call_becomes_an_aggregate_with_its_constants(read: Read, call: str, aggregate: Aggregate, name: str) -> None:
    query = read(f"SELECT {call} …")
    assert query.aggregates == (aggregate,)
    assert query.outputs[0].name == name


def test_a_median_is_a_quantile_and_all_share_one_component(read: Read) -> None:
    query = read("SELECT median(price), quantile(price, 0.5), count(DISTINCT price), top(2, price) …")
    assert len(query.aggregates) == 3
    assert len(query.components) == 1


def test_they_stand_in_expressions_and_having(read: Read) -> None:
    query = read("SELECT count(*) / count(DISTINCT symbol) AS r … HAVING quantile(price, 0.9) > 2 * median(price)")
    assert query.outputs[0].expression == Expression("__a0 / __a1", ("__a0", "__a1"))
    assert query.having == Expression("__a2 > 2 * __a3", ("__a2", "__a3"))
