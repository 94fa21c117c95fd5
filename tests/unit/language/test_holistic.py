"""Reading holistic aggregates: DISTINCT, and constants among the arguments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.model import Aggregate, Expression, Query

Read = Callable[[str], Query]
Refusal = Callable[[str], str]

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT top(0, symbol) …", "top() cannot be taken: k is 0; it must be a whole number above 0"),
        ("SELECT top(-1, symbol) …", "top() cannot be taken: k is -1; it must be a whole number above 0"),
        ("SELECT top(2.5, symbol) …", "top() cannot be taken: k is 2.5; it must be a whole number above 0"),
        ("SELECT top(volume, symbol) …", "top() needs a number as its k, the same for all tuples"),
        ("SELECT top('3', symbol) …", "top() needs a number as its k, the same for all tuples"),
        ("SELECT top(symbol) …", "top() takes two arguments, not 1"),
        ("SELECT quantile(price, 1.01) …", "quantile() cannot be taken: p is 1.01; it must lie between 0 and 1"),
        ("SELECT quantile(price, -0.5) …", "quantile() cannot be taken: p is -0.5; it must lie between 0 and 1"),
        ("SELECT quantile(price, volume) …", "quantile() needs a number as its p, the same for all tuples"),
        ("SELECT quantile(price) …", "quantile() takes two arguments, not 1"),
        ("SELECT median(price, 0.5) …", "median() takes one argument, not 2"),
        ("SELECT median(symbol) …", "cannot take 'median(symbol)'"),
        ("SELECT count(DISTINCT sizes) …", "cannot take 'count(DISTINCT sizes)'"),
        ("SELECT sum(DISTINCT price) …", "sum(DISTINCT …) is not supported"),
        ("SELECT count(DISTINCT price, volume) …", "count(DISTINCT …) takes one argument, not 2"),
        ("SELECT median(DISTINCT price) …", "median(DISTINCT …) is not supported"),
        ("SELECT frequent(0, symbol) …", "frequent() cannot be taken: k is 0; it must be a whole number above 0"),
        ("SELECT approx_top(1001, symbol) …", "approx_top() cannot be taken: k is 1001; a slice keeps 1,000 values"),
        ("SELECT approx_quantile(symbol, 0.5) …", "cannot take 'approx_quantile(symbol, 0.5)'"),
        (
            "SELECT approx_quantile(price, 2) …",
            "approx_quantile() cannot be taken: p is 2; it must lie between 0 and 1",
        ),
        ("SELECT approx_count_distinct(price, 0.1) …", "approx_count_distinct() takes one argument, not 2"),
        (
            "SELECT frequent(3, symbol) FROM trades [LANDMARK SLIDE 1 hour]",
            "'frequent(3, symbol)' cannot be taken over [LANDMARK SLIDE 1 hour]",
        ),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_place(refusal: Refusal, text: str, message: str) -> None:
    assert refusal(text) == message
