"""Aggregates beyond sums and extremes: how they are written, named and refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.model import Aggregate, Expression, Output, Query

Read = Callable[[str], Query]
Refusal = Callable[[str], str]

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT bool_and(price) …", "cannot take 'bool_and(price)'"),
        ("SELECT any(symbol) …", "cannot take 'bool_or(symbol)'"),
        ("SELECT some() …", "some() takes one argument, not 0"),
        ("SELECT any(price > 1, price > 2) …", "any() takes one argument, not 2"),
        ("SELECT count(*) … WHERE price = any(volume)", "the aggregate any() cannot stand in WHERE"),
    ],
)
def test_what_has_no_meaning_here_is_refused_with_its_name(refusal: Refusal, text: str, message: str) -> None:
    assert refusal(text) == message
