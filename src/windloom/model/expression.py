"""A scalar expression, kept as canonical Spark SQL text and the columns it reads, and perhaps as a tree.

The text is what Spark would evaluate. The tree, over the columns `__a0, …` (aggregates) and `__g0, …` (groupings) of a
query, is for evaluation without Spark; an expression that has an unknown node is left to Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from windloom.model.types import DataType

#: Deeper trees are not kept, because code that walks, copies or sends one may be recursive.
MOST_LEVELS = 60


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """The value of a column."""

    column: str
    depth: int = field(default=1, init=False)


@dataclass(frozen=True, slots=True)
class ConstantValue:
    """A literal: its value in Python (a decimal as `Decimal`, a date as days since the epoch), None for NULL."""

    value: Any
    kind: DataType
    depth: int = field(default=1, init=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator by its symbol, or a function by its lower-case name.

    Some have special forms: `case` has conditions and values in turn, and a last value for the case that no condition
    holds; `in` begins with the value that is searched for.
    """

    name: str
    operands: tuple[Scalar, ...]
    depth: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST(operand AS kind)."""

    operand: Scalar
    kind: DataType
    depth: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """An expression that has no tree; `what` describes it to people, and `typed_as` is one of the same type."""

    what: str
    depth: int = field(default=1, init=False, compare=False)
    typed_as: Scalar | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.typed_as is not None:
            object.__setattr__(self, "depth", self.typed_as.depth)


_TOO_DEEP = Opaque(f"an expression of more than {MOST_LEVELS} levels")

Scalar = ColumnRef | ConstantValue | Apply | Cast | Opaque


def apply(name: str, *operands: Scalar) -> Scalar:
    """Return the operator or function over its operands.

    >>> apply("+", ColumnRef("__a0"), ColumnRef("__a1")).depth
    2
    """
    depth = 1 + max((operand.depth for operand in operands), default=0)
    return Apply(name, operands, depth) if depth <= MOST_LEVELS else _TOO_DEEP


def cast(operand: Scalar, kind: DataType) -> Scalar:
    depth = 1 + operand.depth
    return Cast(operand, kind, depth) if depth <= MOST_LEVELS else _TOO_DEEP


#: Words Spark never reads as a column unless they are quoted.
_QUOTED_WORDS = {"true", "false", "null", "not", "current_path"}


@dataclass(frozen=True, slots=True, order=True)
class ExpressionKey:
    """An expression where it is evaluated: the same text has another type on the tuples of another relation."""

    relation: str  # the name of a stream, or the streams of a join with their aliases
    sql: str


@dataclass(frozen=True, slots=True, order=True)
class Expression:
    """A scalar expression as canonical SQL text.

    `sql` is generated from a checked syntax tree, never the user's raw text.

    Equal expressions have equal text, which is how components, predicates and groupings are recognised as shared.
    `column` names the column of the stream if the expression is nothing but that column. `tree` is the same expression
    as a tree, if it is over aggregates and groupings; equality depends on the text alone.
    """

    sql: str
    columns: tuple[str, ...] = ()
    column: str | None = None
    tree: Scalar | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.sql

    @classmethod
    def of_column(cls, name: str) -> Expression:
        """Return the expression that reads one column.

        >>> Expression.of_column("my`col").sql
        '`my``col`'
        """
        plain = name.isidentifier() and name.isascii() and name.lower() not in _QUOTED_WORDS
        sql = name if plain else "`" + name.replace("`", "``") + "`"
        return cls(sql, (name,), name)

    @classmethod
    def of_placeholder(cls, name: str) -> Expression:
        """Return the expression that reads one aggregate or one grouping: `__a0`, `__g0`, …"""
        return cls(name, (name,), tree=ColumnRef(name))
