"""Every function that an aggregator declares, asked of every column that it takes."""

from __future__ import annotations

from collections.abc import Iterator

from support.catalogs import TYPES
from windloom.aggregates.registry import AGGREGATORS
from windloom.errors import WindloomError
from windloom.model import Aggregate, Expression, ExpressionKey
from windloom.model.aggregate import Function

_COLUMNS = ("x", "n", "i", "d", "b", "k")
#: Constants to be asked with; a function refuses those that are not for it.
_CONSTANTS = (1, 2, 0.5, 0.9)

FUNCTIONS: dict[str, Function] = {
    function.name: function for aggregator in AGGREGATORS for function in aggregator.functions
}


_COMOMENTS = (
    *("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept"),
    *("regr_r2", "regr_sxx", "regr_sxy", "regr_syy"),
)


def asked_of(function: Function) -> list[Aggregate]:
    """The function with every argument, constant and order that it takes."""
    counted = [Aggregate("count")] if function.name == "count" else []
    return counted + [
        aggregate for column in _COLUMNS for aggregate in _of_column(function, column) if _is_taken(aggregate)
    ]


def _of_column(function: Function, column: str) -> Iterator[Aggregate]:
    argument = Expression.of_column(column)
    constant = function.constant
    given = [()] if constant is None else [(value,) for value in _CONSTANTS if constant.check(value) is None]
    # The second argument of comoments is a number, that of picks anything that has an order.
    seconds = ("x", "i") if function.name in _COMOMENTS else ("x", "i", "b", "k")
    orders = [None] if function.arguments == 1 else [Expression.of_column(by) for by in seconds]
    for parameters in given:
        for by in orders:
            yield Aggregate(function.name, argument, by, parameters=parameters)


def _is_taken(aggregate: Aggregate) -> bool:
    assert aggregate.argument is not None
    try:
        aggregate.result_type(TYPES[ExpressionKey("s", aggregate.argument.sql)])
    except WindloomError:
        return False
    return True
