"""Aggregates beyond sums and extremes: how they are written, named and refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.model import Aggregate, Expression, Output, Query

Read = Callable[[str], Query]

PRICE = Expression.of_column("price")
SYMBOL = Expression.of_column("symbol")
RAND = "rand() gives another answer each time, so results would depend on when and where they are computed"
CHEAP = Expression("price < 1", ("price",))


@pytest.mark.parametrize(
    ("call", "aggregate", "name"),
    [
        ("bool_and(price < 1)", Aggregate("bool_and", CHEAP), "bool_and(price < 1)"),
        ("EVERY( (price) < 1 )", Aggregate("bool_and", CHEAP), "every(price < 1)"),
        ("bool_or(price < 1)", Aggregate("bool_or", CHEAP), "bool_or(price < 1)"),
        ("some(price < 1)", Aggregate("bool_or", CHEAP), "some(price < 1)"),
        ("any(price < 1)", Aggregate("bool_or", CHEAP), "any(price < 1)"),
        ("ANY (price < 1)", Aggregate("bool_or", CHEAP), "any(price < 1)"),
        ("min_by(symbol, Price)", Aggregate("min_by", SYMBOL, PRICE), "min_by(symbol, price)"),
        ("MAX_BY(symbol, (price) < 1)", Aggregate("max_by", SYMBOL, CHEAP), "max_by(symbol, price < 1)"),
        ("first(price)", Aggregate("first", PRICE), "first(price)"),
        ("first_value(price)", Aggregate("first", PRICE), "first_value(price)"),
        ("last(price < 1)", Aggregate("last", CHEAP), "last(price < 1)"),
        ("LAST_VALUE(price)", Aggregate("last", PRICE), "last_value(price)"),
        ("first(price) RESPECT NULLS", Aggregate("first", PRICE), "first(price)"),
        ("first(price, false)", Aggregate("first", PRICE), "first(price)"),
    ],
)
def test_aggregates_are_known_by_every_name_spark_has_for_them(
    read: Read, call: str, aggregate: Aggregate, name: str
) -> None:
    query = read(f"SELECT {call} …")
    assert query.aggregates == (aggregate,)
    assert query.outputs == (Output(name, aggregate=0),)


KNOWN = Expression("price IS NOT NULL", ("price",))


@pytest.mark.parametrize(
    ("call", "aggregate", "name"),
    [
        (
            "sum(price) FILTER (WHERE Price<1)",
            Aggregate("sum", PRICE, where=CHEAP),
            "sum(price) FILTER (WHERE price < 1)",
        ),
        (
            "mean(price) filter(where (price < 1))",
            Aggregate("avg", PRICE, where=CHEAP),
            "mean(price) FILTER (WHERE price < 1)",
        ),
        ("count(*) FILTER (WHERE price < 1)", Aggregate("count", where=CHEAP), "count(1) FILTER (WHERE price < 1)"),
        (
            "max_by(symbol, price) FILTER (WHERE price < 1)",
            Aggregate("max_by", SYMBOL, PRICE, CHEAP),
            "max_by(symbol, price) FILTER (WHERE price < 1)",
        ),
        ("last(price) IGNORE NULLS", Aggregate("last", PRICE, where=KNOWN), "last(price) IGNORE NULLS"),
        ("last(price IGNORE NULLS)", Aggregate("last", PRICE, where=KNOWN), "last(price) IGNORE NULLS"),
        ("last(price, TRUE)", Aggregate("last", PRICE, where=KNOWN), "last(price) IGNORE NULLS"),
        ("last(price) FILTER (WHERE price IS NOT NULL)", Aggregate("last", PRICE, where=KNOWN), None),
        (
            "first(price) FILTER (WHERE price < 1 OR volume > 2) IGNORE NULLS",
            Aggregate(
                "first",
                PRICE,
                where=Expression("(price < 1 OR volume > 2) AND price IS NOT NULL", ("price", "volume")),
            ),
            "first(price) FILTER (WHERE price < 1 OR volume > 2) IGNORE NULLS",
        ),
    ],
)
def test_a_filter_is_kept_with_its_aggregate(read: Read, call: str, aggregate: Aggregate, name: str | None) -> None:
    query = read(f"SELECT {call} …")
    assert query.aggregates == (aggregate,)
    assert query.outputs == (Output(name or str(aggregate), aggregate=0),)
    assert aggregate.where in query.expressions


def test_filters_that_differ_only_in_spelling_are_one(read: Read) -> None:
    query = read(
        "SELECT sum(price) FILTER (WHERE price < 1) AS a, SUM(Price) FILTER(WHERE (trades.price) < 1) / count(*) AS b …"
        " HAVING sum(price) FILTER (WHERE price<1) > count(*) FILTER (WHERE volume > 2)"
    )
    assert list(map(str, query.aggregates)) == [
        "sum(price) FILTER (WHERE price < 1)",
        "count(*)",
        "count(*) FILTER (WHERE volume > 2)",
    ]
    assert [str(output.expression) for output in query.outputs] == ["None", "__a0 / __a1"]
    assert str(query.having) == "__a0 > __a2"


def test_filter_is_still_a_function_of_arrays(read: Read) -> None:
    query = read(
        "SELECT max(size(filter(sizes, x -> x > 1))) FILTER (WHERE size(filter(sizes, x -> x > 1)) > 0) AS m …"
    )
    assert str(query.aggregates[0].where) == "size(filter(sizes, x -> x > 1)) > 0"


def test_any_is_still_a_quantifier_behind_like(read: Read) -> None:
    query = read("SELECT any(symbol LIKE ANY ('A%', 'B%')) AS x …")
    assert str(query.aggregates[0]) == "bool_or(symbol LIKE ANY ('A%', 'B%'))"


def test_what_a_pick_looks_at_is_evaluated_on_tuples_too(read: Read) -> None:
    query = read("SELECT max_by(symbol, price * volume) AS x …")
    assert [str(expression) for expression in query.expressions] == ["symbol", "price * volume"]
