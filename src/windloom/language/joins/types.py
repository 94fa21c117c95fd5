"""The types of expressions over the columns of several streams, by our own rules."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.language.joins.names import names_of
from windloom.language.result_types.expressions import type_by_names
from windloom.model import DataType, Expression, Stream


def joined_type(expression: Expression, aliases: Sequence[str], streams: Sequence[Stream]) -> DataType | None:
    """Return the type of an expression over the qualified columns of streams; None if only Spark knows it.

    >>> price = {"price": DataType.parse("decimal(10,2)"), "qty": DataType.parse("int")}
    >>> str(joined_type(Expression("o.price * p.qty"), ["o", "p"], [Stream("orders", price), Stream("parts", price)]))
    'decimal(21,2)'
    """
    names = names_of(tuple(aliases), tuple(streams))
    if expression.column is not None:
        return names.stream.columns[expression.column]
    return type_by_names(expression, names)
