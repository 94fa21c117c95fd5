"""Expressions over several sides as sums of products of expressions over one side each.

`a.x * b.y`, `a.x - b.y` and `(a.x + 1) * b.y * 2` are such sums; a division by another side is not. If no value is
NULL, SUM over pairs of rows is a sum of products of SUMs over rows, and a join is answered from these.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from windloom.errors import QueryError
from windloom.expressions.functions import literal_digits
from windloom.expressions.types import arithmetic_type
from windloom.expressions.typing import operand_type, typed
from windloom.language.joins.conditions import node_sides
from windloom.language.joins.names import JoinNames
from windloom.language.scopes import RowScope
from windloom.language.statement import Statement
from windloom.language.terms import inside
from windloom.model import DataType, TypeKind
from windloom.model.scalar import Constant, Scalar
from windloom.model.types import DOUBLE

_OPERATORS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
#: More products than this are hardly intended, and each costs a component of every side.
_MOST_PRODUCTS = 64
_CAST = "CAST(… AS DOUBLE)"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A part of an expression that reads one side at most; `side` is None for a constant."""

    node: exp.Expr
    side: int | None
    kind: DataType


@dataclass(frozen=True, slots=True)
class Monomial:
    """A product of leaves, added or subtracted."""

    sign: int
    leaves: tuple[Leaf, ...]

    def times(self, other: Monomial) -> Monomial:
        return Monomial(self.sign * other.sign, self.leaves + other.leaves)

    def of(self, side: int | None) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.side == side]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """`kind` is the type that Spark gives the whole expression."""

    monomials: tuple[Monomial, ...]
    kind: DataType

    def leaves(self, side: int | None) -> list[Leaf]:
        return [leaf for monomial in self.monomials for leaf in monomial.of(side)]

    @property
    def sides(self) -> list[int]:
        return sorted({leaf.side for monomial in self.monomials for leaf in monomial.leaves if leaf.side is not None})


@dataclass(slots=True)
class Decomposer:
    """Takes one expression apart; `shown` is the aggregate that needs it, for errors."""

    names: JoinNames
    statement: Statement
    shown: str
    _products: int = field(default=0, init=False)

    def decompose(self, node: exp.Expr) -> Polynomial:
        polynomial = self._polynomial(node)
        if polynomial.kind.name == "float":
            raise self._refuse(node, "Spark rounds every FLOAT", f"compute with doubles: {_CAST}")
        return polynomial

    def _polynomial(self, node: exp.Expr) -> Polynomial:
        node = inside(node)
        sides = node_sides(node, self.names)
        if len(sides) < 2:
            kind = operand_type(self._tree(node), self.names.stream.columns)
            if kind is None:
                raise self._refuse(node, "only Spark knows the type of this part", f"say it: {_CAST}")
            if not kind.is_numeric:
                raise self._refuse(node, f"this part is of type {kind}, which is not a number", f"cast it: {_CAST}")
            return Polynomial((Monomial(1, (Leaf(node, next(iter(sides), None), kind),)),), kind)
        if isinstance(node, exp.Neg):
            operand = self._polynomial(node.this)
            return Polynomial(
                tuple(Monomial(-monomial.sign, monomial.leaves) for monomial in operand.monomials), operand.kind
            )
        if isinstance(node, exp.Cast):
            # A cast to double changes a number only slightly, so it can be applied to the parts instead.
            if node.args["to"].sql("spark").lower() != "double":
                raise self._no_decomposition(node)
            return Polynomial(self._polynomial(node.this).monomials, DOUBLE)
        if type(node) not in _OPERATORS:
            raise self._no_decomposition(node)
        return self._combined(node)

    def _combined(self, node: exp.Expr) -> Polynomial:
        operator = _OPERATORS[type(node)]
        left, right = self._polynomial(node.this), self._polynomial(node.expression)
        kind = self._type(operator, node, left, right)
        if operator == "*":
            products = tuple(monomial.times(other) for monomial in left.monomials for other in right.monomials)
        else:
            sign = -1 if operator == "-" else 1
            products = left.monomials + tuple(
                Monomial(sign * monomial.sign, monomial.leaves) for monomial in right.monomials
            )
        if len(products) > _MOST_PRODUCTS:
            reason = f"it is a sum of more than {_MOST_PRODUCTS} products"
            raise self._refuse(node, reason, "split it into several aggregates")
        return Polynomial(products, kind)

    def _type(self, operator: str, node: exp.Expr, left: Polynomial, right: Polynomial) -> DataType:
        kinds = [left.kind, right.kind]
        if any(kind.kind is TypeKind.DECIMAL for kind in kinds):
            for index, (part, polynomial) in enumerate(((node.this, left), (node.expression, right))):
                tree = None if polynomial.sides else self._tree(part)
                if isinstance(tree, Constant):
                    kinds[index] = literal_digits(typed(tree, {}))
        found = arithmetic_type(operator, *kinds)
        if not found.is_certain:
            reason = f"Spark rounds {kinds[0]} {operator} {kinds[1]}"
            raise self._refuse(node, reason, f"compute with doubles, or with fewer digits: {_CAST}")
        return found.kind

    def _tree(self, node: exp.Expr) -> Scalar:
        return self.statement.bind(node, RowScope(self.names, self.shown)).tree

    def _no_decomposition(self, node: exp.Expr) -> QueryError:
        reason = "this part is no sum of products of parts over one stream each"
        if isinstance(node, exp.Div | exp.IntDiv | exp.Mod):
            reason = "a division by another stream's values is no product of what is known of each stream"
        return self._refuse(node, reason, "combine sums over each stream instead, or use +, - and * between streams")

    def _refuse(self, node: exp.Expr, reason: str, hint: str) -> QueryError:
        return self.statement.error(f"'{self.shown}' cannot be taken over a join: {reason}", node, hint)
