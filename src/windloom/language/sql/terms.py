"""A checked expression as canonical Spark SQL text, composed so that Spark reads it as it was read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import IntEnum

from sqlglot import exp

from windloom.expressions.literals import literal
from windloom.model import DataType, Expression, TypeKind
from windloom.model.expression import ColumnRef, ConstantValue, Opaque, Scalar, cast


class Precedence(IntEnum):
    """How tightly Spark binds an operator: the order of alternatives in Spark's own grammar (SqlBaseParser.g4)."""

    OR = 1
    AND = 2
    NOT = 3
    PREDICATE = 4  # IN, LIKE, BETWEEN, IS: not associative
    COMPARE = 5
    BIT_OR = 6
    BIT_XOR = 7
    BIT_AND = 8
    SHIFT = 9
    ADD = 10  # also ||
    MULTIPLY = 11
    UNARY = 12
    PRIMARY = 13


@dataclass(frozen=True, slots=True)
class Term:
    """An expression twice: over the stream's columns, and over a query's aggregates and groupings.

    `sql` has one text for all spellings of an expression. `over` is the same text with each aggregate i replaced by
    `__a{i}` and each grouping i by `__g{i}`, and `tree` is the same as a tree. `loose` is the first column that
    is part of neither an aggregate nor a grouping.
    """

    sql: str
    over: str
    level: Precedence = Precedence.PRIMARY
    columns: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    loose: exp.Expr | None = None
    column: str | None = None  # the column of the stream, if the expression is nothing else
    name: str | None = None  # the name that Spark would give it, if that is not the text
    tree: Scalar = field(default=Opaque("…"), compare=False)

    @classmethod
    def text(cls, sql: str, tree: Scalar | None = None) -> Term:
        """Return a constant."""
        return cls(sql, sql, tree=Opaque(sql) if tree is None else tree)

    @classmethod
    def of_column(cls, sql: str, column: str, node: exp.Expr, name: str) -> Term:
        """Return a column of the stream, which Spark would call by this name."""
        columns, tree = frozenset((column,)), ColumnRef(column)
        return cls(sql, sql, columns=columns, loose=node, column=column, name=name, tree=tree)

    @classmethod
    def of_placeholder(cls, sql: str, placeholder: str, name: str | None = None) -> Term:
        """Return one aggregate or grouping, which is the given text over the stream's columns."""
        return cls(sql, placeholder, uses=frozenset((placeholder,)), name=name, tree=ColumnRef(placeholder))

    @property
    def placeholder(self) -> str | None:
        """`__a{i}` or `__g{i}`, if the expression is one aggregate or one grouping and nothing else."""
        return self.over if self.over in self.uses else None

    def as_placeholder(self, placeholder: str) -> Term:
        """Return the expression as one grouping of a query."""
        uses = frozenset((placeholder,))
        return replace(self, over=placeholder, uses=uses, loose=None, tree=ColumnRef(placeholder))

    def fit(self, least: Precedence) -> Term:
        """Return the expression as an operand that must bind at least this tightly."""
        if self.level >= least:
            return self
        over = self.over if self.placeholder else f"({self.over})"
        return replace(self, sql=f"({self.sql})", over=over, level=Precedence.PRIMARY)

    def row_expression(self) -> Expression:
        """Return the term as an expression over the stream's columns."""
        if self.column is not None:
            return Expression(self.sql, (self.column,), self.column)
        return Expression(self.sql, tuple(sorted(self.columns)))

    def group_expression(self) -> Expression:
        """Return the term as an expression over the aggregates and groupings of a query."""
        return Expression(self.over, tuple(sorted(self.uses)), tree=self.tree)


def inside(node: exp.Expr) -> exp.Expr:
    """Return the expression within any parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def number_of(node: exp.Expr) -> float | None:
    """Return the value of a literal number with any sign, an `int` if it has no fraction; None for all else."""
    sign, node = 1, inside(node)
    while isinstance(node, exp.Neg):
        sign, node = -sign, inside(node.this)
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    found = literal(str(node.this))
    value = found.value if isinstance(found, ConstantValue) else None
    if isinstance(value, int):
        return sign * value
    return sign * float(value) if isinstance(value, float | Decimal) else None


def compose(level: Precedence, *pieces: str | Term, tree: Scalar | None = None, typed_as: Scalar | None = None) -> Term:
    """Return an expression from pieces of text and operands that fit; `typed_as` has its type if it has no tree."""
    terms = [piece for piece in pieces if isinstance(piece, Term)]
    sql = "".join(piece if isinstance(piece, str) else piece.sql for piece in pieces)
    if any(term.uses for term in terms):
        over = "".join(piece if isinstance(piece, str) else piece.over for piece in pieces)
    else:
        over = sql
    if tree is None:
        tree = Opaque("".join(piece if isinstance(piece, str) else "…" for piece in pieces), typed_as=typed_as)
    return Term(
        sql,
        over,
        level,
        columns=frozenset().union(*(term.columns for term in terms)),
        uses=frozenset().union(*(term.uses for term in terms)),
        loose=next((term.loose for term in terms if term.loose is not None), None),
        tree=tree,
    )


def comma_separated(terms: list[Term]) -> list[str | Term]:
    pieces: list[str | Term] = []
    for term in terms:
        pieces += [", ", term] if pieces else [term]
    return pieces


def all_of(terms: Sequence[Term]) -> Term | None:
    """Return the conjunction of conditions, each once; None if there are none."""
    distinct = list({term.sql: term for term in terms}.values())
    if len(distinct) < 2:
        return distinct[0] if distinct else None
    pieces: list[str | Term] = []
    for term in distinct:
        pieces += [" AND ", term.fit(Precedence.NOT)] if pieces else [term.fit(Precedence.AND)]
    return compose(Precedence.AND, *pieces)


def condition_of(terms: Sequence[Term]) -> Expression | None:
    """Return the conjunction of conditions as an expression over the stream's columns; None if there are none."""
    conjunction = all_of(terms)
    return None if conjunction is None else conjunction.row_expression()


def is_not_null(term: Term) -> Term:
    return compose(Precedence.PREDICATE, term.fit(Precedence.BIT_OR), " IS NOT NULL")


def cast_term(term: Term, kind: DataType) -> Term:
    """Return CAST(term AS kind), as a user would write it."""
    name = f"DECIMAL({kind.precision}, {kind.scale})" if kind.kind is TypeKind.DECIMAL else kind.name.upper()
    return compose(Precedence.PRIMARY, "CAST(", term, f" AS {name})", tree=cast(term.tree, kind))
