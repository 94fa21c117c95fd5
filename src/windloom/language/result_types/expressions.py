"""The type of an expression given as text, by the rules."""

from __future__ import annotations

from collections.abc import Mapping

from windloom.errors import QueryError
from windloom.language.literals import fold_literals
from windloom.language.result_types.rules import type_of
from windloom.language.scopes import Names
from windloom.language.syntax import parse_select
from windloom.language.tokens import Source, tokenize
from windloom.model import DataType, Expression, Stream


def expression_type(expression: Expression, columns: Mapping[str, DataType]) -> DataType | None:
    """The type of an expression over these columns; None if only Spark knows it, or may refuse the expression.

    >>> columns = {"price": DataType.parse("decimal(10,2)"), "volume": DataType.parse("int")}
    >>> str(expression_type(Expression("coalesce(price * volume, 0)"), columns))
    'decimal(21,2)'
    """
    return type_by_names(expression, Names(Stream("", columns), (), frozenset()))


def type_by_names(expression: Expression, names: Names) -> DataType | None:
    """The type of an expression whose names have the meaning that they have in a query."""
    source = Source(f"SELECT {expression.sql}", "an expression")
    try:
        tree = parse_select(fold_literals(tokenize(source), source), source)
        return type_of(tree.expressions[0], names) if len(tree.expressions) == 1 else None
    except (QueryError, RecursionError):  # nested too deeply to analyse
        return None
