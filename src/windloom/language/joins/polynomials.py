"""Expressions over several sides as sums of products of expressions over one side each.

`a.x * b.y`, `a.x - b.y` and `(a.x + 1) * b.y * 2` are such sums; a division by another side is not. If no value is
NULL, SUM over pairs of rows is a sum of products of SUMs over rows, and a join is answered from these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from windloom.errors import QueryError
from windloom.expressions.functions import literal_digits
from windloom.expressions.types import MOST_DIGITS, arithmetic_type, as_decimal, decimal
from windloom.expressions.typing import operand_type, typed
from windloom.language.joins.conditions import node_sides
from windloom.language.sql.join_names import JoinNames
from windloom.language.sql.names import Names, RowScope
from windloom.language.sql.predicates import analyse
from windloom.language.sql.statement import Statement
from windloom.language.sql.terms import Precedence, Term, cast_term, compose, condition_of, inside, is_not_null
from windloom.model import Component, DataType, Expression, Side, TypeKind, WindowedStream
from windloom.model.aggregate import COUNT_STAR
from windloom.model.expression import ConstantValue, Scalar
from windloom.model.join import Product
from windloom.model.types import BIGINT, DOUBLE

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
        if isinstance(node, exp.Cast) and node.args["to"].sql("spark").lower() == "double":
            # A cast to double changes a number only slightly, so it can be applied to the parts instead.
            return Polynomial(self._polynomial(node.this).monomials, DOUBLE)
        if type(node) in _OPERATORS:
            return self._combined(node)
        reason = "this part is no sum of products of parts over one stream each"
        if isinstance(node, exp.Div | exp.IntDiv | exp.Mod):
            reason = "a division by another stream's values is no product of what is known of each stream"
        raise self._refuse(node, reason, "combine sums over each stream instead, or use +, - and * between streams")

    def _combined(self, node: exp.Expr) -> Polynomial:
        operator = _OPERATORS[type(node)]
        left, right = self._polynomial(node.this), self._polynomial(node.expression)
        kinds = [left.kind, right.kind]
        if any(kind.kind is TypeKind.DECIMAL for kind in kinds):
            for index, (part, polynomial) in enumerate(((node.this, left), (node.expression, right))):
                tree = None if polynomial.sides else self._tree(part)
                if isinstance(tree, ConstantValue):
                    kinds[index] = literal_digits(typed(tree, {}))
        result = arithmetic_type(operator, *kinds)
        if not result.is_certain:
            reason = f"Spark rounds {kinds[0]} {operator} {kinds[1]}"
            raise self._refuse(node, reason, f"compute with doubles, or with fewer digits: {_CAST}")
        if operator == "*":
            products = tuple(
                Monomial(monomial.sign * other.sign, monomial.leaves + other.leaves)
                for monomial in left.monomials
                for other in right.monomials
            )
        else:
            sign = -1 if operator == "-" else 1
            products = left.monomials + tuple(
                Monomial(sign * monomial.sign, monomial.leaves) for monomial in right.monomials
            )
        if len(products) > _MOST_PRODUCTS:
            reason = f"it is a sum of more than {_MOST_PRODUCTS} products"
            raise self._refuse(node, reason, "split it into several aggregates")
        return Polynomial(products, result.kind)

    def _tree(self, node: exp.Expr) -> Scalar:
        return self.statement.bind(node, RowScope(self.names, self.shown)).tree

    def _refuse(self, node: exp.Expr, reason: str, hint: str) -> QueryError:
        return self.statement.error(f"'{self.shown}' cannot be taken over a join: {reason}", node, hint)


class SideBuilder:
    """One side of a join while it is being read, as expressions over the columns of its stream.

    Only tuples that satisfy all `conditions` take part. Grouping columns are sorted in the end; until then they are
    texts.
    """

    def __init__(self, source: WindowedStream, names: Names, statement: Statement) -> None:
        self.source = source
        self.stream = names.stream
        self._names = names
        self._statement = statement
        self.conditions: list[Term] = []
        self._group_by: dict[str, Expression] = {}
        self._components: dict[Component, int] = {COUNT_STAR: 0}

    def bind(self, node: exp.Expr, place: str) -> Term:
        """Return an expression that reads no other side, over the columns of the stream."""
        return self._statement.bind(node, RowScope(self._names, place))

    def group(self, term: Term) -> str:
        """Group by an expression, and return its text."""
        expression = term.row_expression()
        self._group_by.setdefault(expression.sql, expression)
        return expression.sql

    def keep(self, component: Component) -> int:
        """Keep a component, and return its index."""
        return self._components.setdefault(component, len(self._components))

    def count(self, conditions: list[Term]) -> int:
        """Keep the number of tuples that satisfy all conditions, and return the index of that component."""
        return self.keep(Component(COUNT_STAR.kind, where=condition_of(conditions)))

    def position(self, sql: str) -> int:
        """Return the final position of a grouping expression."""
        return sorted(self._group_by).index(sql)

    def build(self) -> Side:
        condition = condition_of(self.conditions)
        return Side(
            self.source,
            condition,
            None if condition is None else analyse(condition, self.stream),
            tuple(self._group_by[sql] for sql in sorted(self._group_by)),
            tuple(self._components),
        )


class PolynomialFactors:
    """Products of sums and counts of all sides, which add up to one polynomial; `filters` are conditions by side.

    A pair of rows has a value only if no part of the *whole* polynomial is NULL, so every factor counts only tuples
    for which no part of its side is NULL.
    """

    def __init__(
        self,
        polynomial: Polynomial,
        builders: Sequence[SideBuilder],
        filters: Mapping[int, list[Term]],
        statement: Statement,
        shown: str,
    ) -> None:
        self._polynomial = polynomial
        self._builders = builders
        self._filters = filters
        self._statement = statement
        self._shown = shown
        # By side, the terms that must not be NULL in a tuple of the side, by their text.
        self._atoms: dict[int, dict[str, Term]] = {}
        for side in polynomial.sides:
            nodes = (node for leaf in polynomial.leaves(side) for node in null_atoms(leaf.node))
            terms = sorted((builders[side].bind(node, shown) for node in nodes), key=lambda term: term.sql)
            self._atoms[side] = {term.sql: term for term in terms}

    @property
    def counted(self) -> Product:
        """The product that counts the pairs that have a value."""
        return Product(1, tuple(self._count(side) for side in range(len(self._builders))))

    @property
    def products(self) -> tuple[Product, ...]:
        """The products that add up to the sum of the values of all pairs."""
        return tuple(
            Product(monomial.sign, tuple(self._factor(side, monomial) for side in range(len(self._builders))))
            for monomial in self._polynomial.monomials
        )

    def _count(self, side: int) -> int:
        atoms, filters = list(self._atoms.get(side, {}).values()), self._filters.get(side, [])
        builder = self._builders[side]
        if len(atoms) == 1:
            return builder.keep(Component("count", atoms[0].row_expression(), where=condition_of(filters)))
        return builder.count([*filters, *map(is_not_null, atoms)])

    def _factor(self, side: int, monomial: Monomial) -> int:
        leaves = monomial.of(side)
        # One side bears the constants of the product.
        bearers = [leaf.side for leaf in monomial.leaves if leaf.side is not None]
        bears = side == min(bearers, default=self._polynomial.sides[0])
        if bears:
            leaves += monomial.of(None)
        if not leaves:
            return self._count(side)
        term = self._typed(side, leaves, monomial, bears=bears)
        bound = {self._builders[side].bind(node, self._shown).sql for leaf in leaves for node in null_atoms(leaf.node)}
        others = [is_not_null(atom) for sql, atom in self._atoms[side].items() if sql not in bound]
        where = condition_of([*self._filters.get(side, []), *others])
        return self._builders[side].keep(Component("sum", term.row_expression(), where=where))

    def _typed(self, side: int, leaves: list[Leaf], monomial: Monomial, *, bears: bool) -> Term:
        """Return the product of the leaves of one side, of a type whose sums multiply to the type of the whole."""
        kind = self._polynomial.kind.kind
        terms = [self._builders[side].bind(leaf.node, self._shown) for leaf in leaves]
        if kind is TypeKind.DECIMAL:
            # Scales add up to that of the whole: the factor that bears the constants makes up the difference.
            parts = [as_decimal(leaf.kind) for leaf in leaves]
            precision, scale = sum(part.precision + 1 for part in parts) - 1, sum(part.scale for part in parts)
            missing = self._polynomial.kind.scale - sum(leaf.kind.scale for leaf in monomial.leaves)
            more = missing if bears else 0
            if precision > MOST_DIGITS or not 0 < precision + more <= MOST_DIGITS:
                message = f"'{self._shown}' cannot be taken over a join: a part of it has more than 38 digits"
                raise self._statement.error(message, leaves[0].node, "use fewer digits, or doubles: CAST(… AS DOUBLE)")
            is_exact = not more and all(leaf.kind.kind is TypeKind.DECIMAL for leaf in leaves)
            term = _product(terms)
            return term if is_exact else cast_term(term, decimal(precision + more, scale + more))
        if kind is TypeKind.FLOAT:
            for index, leaf in enumerate(leaves):
                is_plain = leaf.kind == DOUBLE or (len(leaves) == 1 and leaf.kind.kind is TypeKind.FLOAT)
                terms[index] = terms[index] if is_plain else cast_term(terms[index], DOUBLE)
        elif len(terms) > 1 and all(leaf.kind.bits <= 32 for leaf in leaves):
            terms[0] = cast_term(terms[0], BIGINT)  # then no product of two of them overflows
        return _product(terms)


def null_atoms(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield parts of a number that make it NULL if they are: columns, and everything that is not plain arithmetic."""
    node = inside(node)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        yield from null_atoms(node.this)
        yield from null_atoms(node.expression)
    elif isinstance(node, exp.Neg):
        yield from null_atoms(node.this)
    elif not isinstance(node, exp.Literal):
        yield node


def _product(terms: Sequence[Term]) -> Term:
    first, *others = terms
    pieces: list[str | Term] = [first.fit(Precedence.MULTIPLY) if others else first]
    for term in others:
        pieces += [" * ", term.fit(Precedence.UNARY)]
    return compose(Precedence.MULTIPLY, *pieces) if others else first
