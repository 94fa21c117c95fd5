"""Conditions of joins, divided into conjuncts, each with the sides whose columns it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from windloom.language.joins.names import JoinNames
from windloom.language.joins.null_rows import Value, on_null_row
from windloom.language.scopes import RowScope
from windloom.language.statement import Statement
from windloom.language.terms import Term, inside

#: The parts of a column's name in a syntax tree, the last one first.
_PARTS = ("this", "table", "db", "catalog")


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One part of a condition, over the qualified columns of the join."""

    node: exp.Expr
    term: Term
    sides: frozenset[int]

    def rejects_nulls(self, side: int, names: JoinNames) -> bool:
        """Return whether it cannot hold if all columns of a side are NULL."""
        return on_null_row(self.term.tree, names.columns_of(side)) in (Value.NULL, Value.FALSE)

    @property
    def is_true(self) -> bool:
        return isinstance(self.node, exp.Boolean) and bool(self.node.this)


@dataclass(frozen=True, slots=True)
class Equality:
    """A conjunct that equates an expression of one side with one of another; NULL equals NULL if it is `null_safe`."""

    conjunct: Conjunct
    sides: tuple[int, int]
    nodes: tuple[exp.Expr, exp.Expr]
    null_safe: bool

    def node_of(self, side: int) -> exp.Expr:
        return self.nodes[self.sides.index(side)]

    def other(self, side: int) -> int:
        return self.sides[1 - self.sides.index(side)]


def read_conjuncts(node: exp.Expr, names: JoinNames, place: str, statement: Statement) -> list[Conjunct]:
    """Return the conjuncts of a condition, in their order; their columns are qualified, so that they mean the same
    later.
    """
    conjuncts = []
    for part in _parts(node):
        term = statement.bind(part, RowScope(names, place))
        conjuncts.append(Conjunct(_qualified(part, names), term, sides_of(term, names)))
    return conjuncts


def _qualified(node: exp.Expr, names: JoinNames) -> exp.Expr:
    def qualify(visited: exp.Expr) -> exp.Expr:
        column = names.find_node(visited)
        if column is None or not isinstance(visited, exp.Column):
            return visited
        label, _ = names.written(column[0])
        written = [part for part in visited.parts if isinstance(part, exp.Identifier)]
        start = len(written) - len(column[1]) - 1  # the index of the column itself, which keeps its place in the text
        parts = [exp.to_identifier(label, quoted=True), *(part.copy() for part in written[start:])]
        if len(parts) > len(_PARTS):
            return visited
        qualified = exp.Column(**dict(zip(_PARTS, reversed(parts), strict=False)))
        qualified.meta.update(visited.meta)
        return qualified

    return node.transform(qualify)


def sides_of(term: Term, names: JoinNames) -> frozenset[int]:
    """Return the sides whose columns an expression reads."""
    return frozenset(map(names.side_of, term.columns))


def equality_of(conjunct: Conjunct, names: JoinNames) -> Equality | None:
    """Return the conjunct as an equality between two sides; None if it is not one."""
    node = conjunct.node
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return None
    left, right = inside(node.this), inside(node.expression)
    left_sides, right_sides = node_sides(left, names), node_sides(right, names)
    if len(left_sides) != 1 or len(right_sides) != 1 or left_sides == right_sides:
        return None
    sides = next(iter(left_sides)), next(iter(right_sides))
    return Equality(conjunct, sides, (left, right), isinstance(node, exp.NullSafeEQ))


def node_sides(node: exp.Expr, names: JoinNames) -> frozenset[int]:
    """Return the sides that an expression reads; its names have been checked before."""
    columns = (names.find_node(column) for column in node.find_all(exp.Column))
    return frozenset(names.side_of(column[0]) for column in columns if column is not None)


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a chain. Chains lean to the left and can be long, so this is a loop, not a recursion."""
    pending = [node]
    while pending:
        operand = inside(pending.pop())
        if isinstance(operand, exp.And):
            pending += [operand.expression, operand.this]
        else:
            yield operand
