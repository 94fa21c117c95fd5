"""Defining aggregates: what compiles and keeps its laws is taken, everything else refused by name."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from support.user_aggregates import DEFINITIONS
from windloom.aggregates.define import define_aggregate
from windloom.errors import WindloomError
from windloom.model import Property, UserDefined


class Pair(NamedTuple):
    total: float
    count: int


def define(name: str = "mine", **changes: Any) -> UserDefined:
    """A sum, but for the changes."""
    plain: dict[str, Any] = {
        "lift": lambda x: x,
        "combine": lambda a, b: a + b,
        "lower": lambda value: value,
        "neutral": 0.0,
    }
    return define_aggregate(name, **{**plain, **changes})


def refusal(**changes: Any) -> WindloomError:
    with pytest.raises(WindloomError) as caught:
        define(**changes)
    assert "'mine'" in caught.value.message
    assert caught.value.detail
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("name", DEFINITIONS)
def test_what_keeps_its_laws_is_taken(name: str) -> None:
    own = define_aggregate(name, **DEFINITIONS[name]())
    assert own.name == name
    assert Property.ASSOCIATIVE | Property.COMMUTATIVE in own.has
    assert (Property.INVERTIBLE in own.has) == (name == "parity")
    assert own.result.name == ("bigint" if name == "parity" else "double")


def test_a_copy_of_a_definition_is_the_same_and_another_one_is_not() -> None:
    first, copy = (define_aggregate("geo_mean", **DEFINITIONS["geo_mean"]()) for _ in range(2))
    assert first == copy
    assert hash(first) == hash(copy)
    assert define() == define()
    assert define() != define(lower=lambda value: -value)
    assert define(lower=_scaled(2.0)) != define(lower=_scaled(3.0))
    long = np.zeros(5000)
    assert define(lower=_shifted(long)) != define(lower=_shifted(np.where(np.arange(5000) == 2500, 1.0, long)))


def _scaled(factor: float) -> Any:
    return lambda value: value * factor


def _shifted(table: Any) -> Any:
    return lambda value: value + table[2500]


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"combine": lambda a, b: (a + b) / 2}, "it is not associative"),
        ({"combine": lambda a, b: a - b}, "it is not commutative"),
        ({"combine": lambda a, b: max(a, b)}, "its neutral value changes other values"),
        ({"properties": ("associative", "commutative", "selective")}, "it is not selective"),
        (
            {"neutral": 0, "argument": "bigint", "inverse": lambda a, b: a + b},
            "its inverse does not remove what was combined",
        ),
        (
            {
                "lift": lambda x: Pair(x, 1),
                "combine": lambda a, b: Pair((a.total + b.total) / 2, a.count + b.count),
                "lower": lambda value: value.total,
                "neutral": Pair(0.0, 0),
            },
            "it is not associative",
        ),
    ],
)
def test_a_law_that_is_broken_is_named_with_the_values_that_break_it(changes: dict[str, Any], law: str) -> None:
    error = refusal(**changes)
    assert error.message == f"aggregate 'mine': {law}"
    assert "where a = " in error.detail


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lift": lambda x: globals()[x]}, "aggregate 'mine': 'lift' does not compile"),
        ({"combine": lambda a, b: a.total + b.total}, "aggregate 'mine': 'combine' does not compile"),
        ({"combine": lambda a: a}, "aggregate 'mine': 'combine' does not compile"),
        ({"combine": max}, "aggregate 'mine': 'combine' is not a Python function"),
        ({"lower": lambda value: (value, value)}, "aggregate 'mine': 'lower' does not give a number"),
        ({"neutral": 0}, "aggregate 'mine': 'lift' does not give a value like the neutral one"),
        ({"neutral": "nothing"}, "aggregate 'mine': its neutral value cannot be kept"),
        ({"neutral": True}, "aggregate 'mine': its neutral value cannot be kept"),
        ({"lift": lambda x: Pair(x, 1)}, "aggregate 'mine': 'lift' does not give a value like the neutral one"),
        ({"inverse": lambda a, b: a - b}, "aggregate 'mine' cannot have an inverse"),
        ({"properties": ("associative",)}, "aggregate 'mine' must be associative and commutative"),
        ({"properties": ("asociative", "commutative")}, "aggregate 'mine': unknown property 'asociative'"),
        (
            {"properties": ("associative", "commutative", "invertible")},
            "aggregate 'mine' is claimed to be invertible",
        ),
        ({"argument": "string"}, "aggregate 'mine': its argument cannot be a string"),
        ({"lift": lambda x: math.nan}, "aggregate 'mine': 'lift' gives no finite values"),
    ],
)
def test_what_cannot_be_compiled_or_kept_is_refused(changes: dict[str, Any], message: str) -> None:
    assert refusal(**changes).message == message


def test_functions_that_raise_are_refused() -> None:
    def picky(x: float) -> float:
        if x < 0:
            raise ValueError("no debts")
        return x

    error = refusal(lift=picky)
    assert error.message == "aggregate 'mine': its functions raise"
    assert "no debts" in error.detail


@pytest.mark.parametrize("name", ["Geo", "geo mean", "2nd", "", "__a0", None])
def test_a_name_that_no_query_can_call_is_refused(name: Any) -> None:
    with pytest.raises(WindloomError, match="cannot be the name of an aggregate"):
        define(name)
