"""Aggregates beyond sums and extremes: how they are written, named and refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.model import Aggregate, Expression, Output, Query

Read = Callable[[str], Query]
Refusal = Callable[[str], str]

PRICE = Expression.of_column("price")
SYMBOL = Expression.of_column("symbol")
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
    ],
)
def test_aggregates_are_known_by_every_name_spark_has_for_them(
    read: Read, call: str, aggregate: Aggregate, name: str
) -> None:
    query = read(f"SELECT {call} …")
    assert query.aggregates == (aggregate,)
    assert query.outputs == (Output(name, aggregate=0),)


def test_any_is_still_a_quantifier_behind_like(read: Read) -> None:
    query = read("SELECT any(symbol LIKE ANY ('A%', 'B%')) AS x …")
    assert str(query.aggregates[0]) == "bool_or(symbol LIKE ANY ('A%', 'B%'))"


def test_what_a_pick_looks_at_is_evaluated_on_tuples_too(read: Read) -> None:
    query = read("SELECT max_by(symbol, price * volume) AS x …")
    assert [str(one) for one in query.expressions] == ["symbol", "price * volume"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT bool_and(price) …", "cannot take 'bool_and(price)'"),
        ("SELECT any(symbol) …", "cannot take 'bool_or(symbol)'"),
        ("SELECT some() …", "some() takes one argument, not 0"),
        ("SELECT any(price > 1, price > 2) …", "any() takes one argument, not 2"),
        ("SELECT max_by(price) …", "max_by() takes two arguments, not 1"),
        ("SELECT min_by(symbol, price, volume) …", "min_by() takes two arguments, not 3"),
        ("SELECT first() …", "first() takes one argument, not 0"),
        ("SELECT last(price, volume) …", "last() takes one argument, not 2"),
        ("SELECT max_by(sizes, price) …", "cannot take 'max_by(sizes, price)'"),
        ("SELECT max_by(price, sizes) …", "cannot take 'max_by(price, sizes)'"),
        ("SELECT max_by(price, prise) …", "unknown column 'prise'"),
        ("SELECT min_by(symbol, max(price)) …", "the aggregate max() cannot stand in min_by()"),
        ("SELECT first(*) …", "'*' can only stand in count(*)"),
        ("SELECT count(*) … WHERE price = any(volume)", "the aggregate any() cannot stand in WHERE"),
    ],
)
def test_what_has_no_meaning_here_is_refused_with_its_name(refusal: Refusal, text: str, message: str) -> None:
    assert refusal(text) == message
