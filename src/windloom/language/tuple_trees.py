"""Trees and types of expressions on tuples, which are kept as text: read here once, for types and for evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from windloom.errors import QueryError
from windloom.expressions.typing import certain_type
from windloom.language.expressions import Binder
from windloom.language.joins.names import names_of
from windloom.language.literals import fold_literals
from windloom.language.scopes import Names, RowScope
from windloom.language.syntax import parse_select
from windloom.language.tokens import Source, Span, tokenize
from windloom.model import DataType, Expression, Stream
from windloom.model.scalar import Scalar


def tuple_tree(sql: str, columns: Mapping[str, DataType]) -> Scalar | None:
    """Return the tree of an expression over these columns; None if it cannot be read here.

    >>> tuple_tree("price > 1", {"price": DataType.parse("double")}).name
    '>'
    """
    return _read_on_stream(sql, tuple(columns.items()))


def expression_type(expression: Expression, columns: Mapping[str, DataType]) -> DataType | None:
    """Return the type of an expression over these columns; None if only Spark knows it, or may refuse the expression.

    >>> columns = {"price": DataType.parse("decimal(10,2)"), "volume": DataType.parse("int")}
    >>> str(expression_type(Expression("coalesce(price * volume, 0)"), columns))
    'decimal(21,2)'
    """
    return certain_type(tuple_tree(expression.sql, columns), columns)


def joined_type(expression: Expression, aliases: Sequence[str], streams: Sequence[Stream]) -> DataType | None:
    """Return the type of an expression over the qualified columns of streams; None if only Spark knows it.

    >>> price = {"price": DataType.parse("decimal(10,2)"), "qty": DataType.parse("int")}
    >>> str(joined_type(Expression("o.price * p.qty"), ["o", "p"], [Stream("orders", price), Stream("parts", price)]))
    'decimal(21,2)'
    """
    names = names_of(tuple(aliases), tuple(streams))
    if expression.column is not None:
        return names.stream.columns[expression.column]
    return certain_type(_read(expression.sql, names), names.stream.columns)


@lru_cache(maxsize=4_096)
def _read_on_stream(sql: str, columns: tuple[tuple[str, DataType], ...]) -> Scalar | None:
    return _read(sql, Names(Stream("", dict(columns)), (), frozenset()))


def _read(sql: str, names: Names) -> Scalar | None:
    source = Source(f"SELECT {sql}", "an expression")
    try:
        tokens = tokenize(source)
        tree = parse_select(fold_literals(tokens, source), source)
        if len(tree.expressions) != 1:
            return None
        return Binder(RowScope(names, "a tuple"), source, Span.of(tokens)).bind(tree.expressions[0]).tree
    except (QueryError, RecursionError):  # nested too deeply to analyse
        return None
