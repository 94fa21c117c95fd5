"""A scalar expression, kept as canonical Spark SQL text and the columns it reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from windloom.model.scalar import Read, Scalar

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
        """The expression that reads one column.

        >>> Expression.of_column("my`col").sql
        '`my``col`'
        """
        plain = name.isidentifier() and name.isascii() and name.lower() not in _QUOTED_WORDS
        sql = name if plain else "`" + name.replace("`", "``") + "`"
        return cls(sql, (name,), name)

    @classmethod
    def of_placeholder(cls, name: str) -> Expression:
        """The expression that reads one aggregate or one grouping: `__a0`, `__g0`, …"""
        return cls(name, (name,), tree=Read(name))
