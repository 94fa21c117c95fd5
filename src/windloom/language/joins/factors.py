"""The factors of a polynomial: each side sums or counts, and the products of these add up to the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from windloom.expressions.types import MOST_DIGITS, as_decimal, decimal
from windloom.language.joins.polynomials import Leaf, Monomial, Polynomial
from windloom.language.joins.sides import SideBuilder
from windloom.language.statement import Statement
from windloom.language.terms import Level, Term, all_of, cast_term, compose, inside, is_not_null
from windloom.model import Component, DataType, TypeKind
from windloom.model.join import Product

_BIGINT, _DOUBLE = DataType.parse("bigint"), DataType.parse("double")


class Factors:
    """Products of sums and counts of all sides, for one polynomial; `filters` are conditions by side.

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
        self._atoms = {side: self._guards(side) for side in polynomial.sides}

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

    def _guards(self, side: int) -> dict[str, Term]:
        """Return the terms that must not be NULL in a tuple of the side, by their text."""
        leaves = self._polynomial.leaves(side)
        terms = (self._bind(side, node) for leaf in leaves for node in null_atoms(leaf.node))
        return {term.sql: term for term in sorted(terms, key=lambda term: term.sql)}

    def _bind(self, side: int, node: exp.Expr) -> Term:
        return self._builders[side].bind(node, self._shown)

    def _count(self, side: int) -> int:
        atoms, filters = list(self._atoms.get(side, {}).values()), self._filters.get(side, [])
        builder = self._builders[side]
        if len(atoms) == 1:
            where = all_of(filters)
            condition = None if where is None else where.row_expression()
            return builder.keep(Component("count", atoms[0].row_expression(), where=condition))
        return builder.count([*filters, *map(is_not_null, atoms)])

    def _factor(self, side: int, monomial: Monomial) -> int:
        leaves = monomial.of(side)
        if side == self._bearer(monomial):
            leaves = [*leaves, *monomial.of(None)]
        if not leaves:
            return self._count(side)
        term = self._typed(side, leaves, monomial)
        bound = {self._bind(side, node).sql for leaf in leaves for node in null_atoms(leaf.node)}
        others = [is_not_null(atom) for sql, atom in self._atoms[side].items() if sql not in bound]
        where = all_of([*self._filters.get(side, []), *others])
        condition = None if where is None else where.row_expression()
        return self._builders[side].keep(Component("sum", term.row_expression(), where=condition))

    def _bearer(self, monomial: Monomial) -> int:
        """Return the side whose factor includes the constants of a product."""
        return min((leaf.side for leaf in monomial.leaves if leaf.side is not None), default=self._polynomial.sides[0])

    # ---- types --------------------------------------------------------------------------------------------------

    def _typed(self, side: int, leaves: list[Leaf], monomial: Monomial) -> Term:
        """Return the product of the leaves of one side, of a type whose sums multiply to the type of the whole."""
        kind = self._polynomial.kind.kind
        if kind is TypeKind.FLOAT:
            is_alone = len(leaves) == 1
            return _product([self._as_double(side, leaf, is_alone) for leaf in leaves])
        if kind is TypeKind.DECIMAL:
            return self._as_decimal(side, leaves, monomial)
        terms = [self._bind(side, leaf.node) for leaf in leaves]
        if len(terms) > 1 and all(leaf.kind.bits <= 32 for leaf in leaves):
            terms[0] = cast_term(terms[0], _BIGINT)  # then no product of two of them overflows
        return _product(terms)

    def _as_double(self, side: int, leaf: Leaf, is_alone: bool) -> Term:
        term = self._bind(side, leaf.node)
        is_double = leaf.kind == _DOUBLE or (is_alone and leaf.kind.kind is TypeKind.FLOAT)
        return term if is_double else cast_term(term, _DOUBLE)

    def _as_decimal(self, side: int, leaves: list[Leaf], monomial: Monomial) -> Term:
        """Scales add up to that of the whole: the factor that bears the constants makes up the difference."""
        parts = [as_decimal(leaf.kind) for leaf in leaves]
        precision, scale = sum(part.precision + 1 for part in parts) - 1, sum(part.scale for part in parts)
        missing = self._polynomial.kind.scale - sum(leaf.kind.scale for leaf in monomial.leaves)
        more = missing if side == self._bearer(monomial) else 0
        if precision > MOST_DIGITS or not 0 < precision + more <= MOST_DIGITS:
            raise self._statement.error(
                f"'{self._shown}' cannot be taken over a join: a part of it has more than 38 digits",
                leaves[0].node,
                "use fewer digits, or doubles: CAST(… AS DOUBLE)",
            )
        term = _product([self._bind(side, leaf.node) for leaf in leaves])
        is_exact = not more and all(leaf.kind.kind is TypeKind.DECIMAL for leaf in leaves)
        return term if is_exact else cast_term(term, decimal(precision + more, scale + more))


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
    pieces: list[str | Term] = [first.fit(Level.MULTIPLY) if others else first]
    for term in others:
        pieces += [" * ", term.fit(Level.UNARY)]
    return compose(Level.MULTIPLY, *pieces) if others else first
