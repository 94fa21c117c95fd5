"""The trees of expressions on the tuples of a stream, which are kept as text: for evaluation without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from windloom.errors import QueryError
from windloom.language.expressions import Binder
from windloom.language.literals import fold_literals
from windloom.language.scopes import Names, RowScope
from windloom.language.syntax import parse_select
from windloom.language.tokens import Source, Span, tokenize
from windloom.model import DataType, Stream
from windloom.model.scalar import Scalar


def tuple_tree(sql: str, columns: Mapping[str, DataType]) -> Scalar | None:
    """Return the tree of an expression over these columns; None if it cannot be read here.

    >>> tuple_tree("price > 1", {"price": DataType.parse("double")}).name
    '>'
    """
    return _read(sql, tuple(columns.items()))


@lru_cache(maxsize=4_096)
def _read(sql: str, columns: tuple[tuple[str, DataType], ...]) -> Scalar | None:
    source = Source(f"SELECT {sql}", "an expression")
    try:
        tokens = tokenize(source)
        tree = parse_select(fold_literals(tokens, source), source)
        if len(tree.expressions) != 1:
            return None
        scope = RowScope(Names(Stream("", dict(columns)), (), frozenset()), "a tuple")
        return Binder(scope, source, Span.of(tokens)).bind(tree.expressions[0]).tree
    except (QueryError, RecursionError):  # nested too deeply to analyse
        return None
