"""How each component of a join is made from components of its sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from windloom.errors import QueryError
from windloom.language.joins.conditions import node_sides, read_conjuncts
from windloom.language.joins.null_rows import NullRowValue, on_null_row
from windloom.language.joins.polynomials import Decomposer, PolynomialFactors, SideBuilder
from windloom.language.sql.join_names import JoinNames
from windloom.language.sql.names import AggregateUse
from windloom.language.sql.statement import Statement
from windloom.language.sql.terms import Term, cast_term, condition_of, inside
from windloom.model import Aggregate, Component, Expression, TypeKind
from windloom.model.aggregate import COUNT_STAR
from windloom.model.join import Corner, Folded, Product, SideComponent, SumOfProducts
from windloom.model.types import DOUBLE

_CORNERS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


@dataclass(frozen=True, slots=True)
class Folder:
    """Takes the aggregates of a join apart. `nullable` are sides whose columns are NULL in rows without a match."""

    builders: list[SideBuilder]
    names: JoinNames
    statement: Statement
    nullable: frozenset[int]

    def fold(self, aggregates: Mapping[Aggregate, AggregateUse]) -> tuple[Folded, ...]:
        """Return a fold for every distinct component of the aggregates, in the order of `Query.components`."""
        folded: dict[Component, Folded] = {}
        for aggregate, use in aggregates.items():
            folding = _Folding(self, aggregate, use)
            for component in aggregate.components:
                if component not in folded:
                    folded[component] = folding.fold(component)
        return tuple(folded.values())

    def bind_strictly(self, side: int, node: exp.Expr, place: str) -> Term:
        """Return an expression of one side; it must be NULL for rows that may have no match there."""
        term = self.builders[side].bind(node, place)
        if (
            side in self.nullable
            and on_null_row(term.tree, self.builders[side].stream.columns) is not NullRowValue.NULL
        ):
            name = self.names.labels[side]
            raise self.statement.error(
                f"this may be a value even in a row without a match of '{name}', which a LEFT JOIN cannot fold",
                node,
                "use expressions that are NULL if their columns are; replace NULLs after the aggregate, as in"
                f" coalesce(sum({name}.x), 0)",
            )
        return term


class _Folding:
    """One aggregate, with its conditions by side."""

    def __init__(self, folder: Folder, aggregate: Aggregate, use: AggregateUse) -> None:
        self._folder = folder
        self._aggregate = aggregate
        self._use = use
        self._filters: dict[int, list[Term]] = {}  # the conditions of FILTER by side, conjunct by conjunct
        for node in use.conditions:
            for conjunct in read_conjuncts(node, folder.names, "FILTER", folder.statement):
                if len(conjunct.sides) > 1:
                    hint = "join FILTER conditions of single streams with AND, or move the condition into ON"
                    raise self._refuse(conjunct.node, "this condition is about several streams at once", hint)
                side = next(iter(conjunct.sides), 0)
                if side in folder.nullable and not conjunct.rejects_nulls(side, folder.names):
                    hint = "count what matches, and subtract it from the count of all"
                    reason = f"rows without a match of '{folder.names.labels[side]}' may satisfy this condition"
                    raise self._refuse(conjunct.node, reason, hint)
                self._filters.setdefault(side, []).append(folder.builders[side].bind(conjunct.node, "FILTER"))

    def _weights(self, *but: int) -> tuple[int, ...]:
        """Return, by side, the component that counts tuples that satisfy the conditions; 0 for the sides in `but`."""
        builders = enumerate(self._folder.builders)
        return tuple(0 if side in but else builder.count(self._filters.get(side, [])) for side, builder in builders)

    def fold(self, component: Component) -> Folded:
        if component.kind == COUNT_STAR.kind:
            return SumOfProducts((Product(1, self._weights()),))
        if self._aggregate.function == "frequent":
            raise self._refuse(self._use.node, "it needs lists of every slide", "use top(k, x)")
        read = self._use.picked or self._use.arguments[:1]
        sides = [node_sides(node, self._folder.names) for node in (*read, *self._use.arguments[1:])]
        together = frozenset[int]().union(*sides)
        if len(together) < 2:
            return self._carried(component, next(iter(together), 0))
        if len(sides) > 1:
            raise self._refuse(self._use.node, "its arguments belong to two streams", "take both from one stream")
        if component.kind in ("sum", "count") and not self._aggregate.function.startswith("try_"):
            return self._summed(component)
        if self._aggregate.function in ("min", "max"):
            return self._corner()
        reason = f"{self._aggregate.function}() of values that several streams make is not known from each stream alone"
        raise self._refuse(self._use.arguments[0], reason, "only sum, avg, count, min and max take such values")

    def _carried(self, component: Component, side: int) -> SideComponent:
        if component.kind in ("first", "last", "sequences") and self._folder.names.is_relation(side):
            reason = f"the rows of relation '{self._folder.names.labels[side]}' have no time"
            raise self._refuse(self._use.node, reason, "use min_by(x, y) or max_by(x, y)")

        def bound(node: exp.Expr) -> Expression:
            return self._folder.bind_strictly(side, node, str(self._aggregate)).row_expression()

        first, *others = map(bound, self._use.picked or self._use.arguments[:1])
        by = bound(self._use.arguments[1]) if len(self._use.arguments) > 1 else None
        where = condition_of(self._filters.get(side, []))
        side_component = Component(component.kind, first, by, where, component.own, tuple(others))
        return SideComponent(side, self._folder.builders[side].keep(side_component), self._weights(side))

    def _summed(self, component: Component) -> SumOfProducts:
        folder, shown = self._folder, str(self._aggregate)
        polynomial = Decomposer(folder.names, folder.statement, shown).decompose(self._use.arguments[0])
        for side in polynomial.sides:
            for leaf in polynomial.leaves(side):
                folder.bind_strictly(side, leaf.node, shown)
        factors = PolynomialFactors(polynomial, folder.builders, self._filters, folder.statement, shown)
        if component.kind == "count":
            return SumOfProducts((factors.counted,))
        return SumOfProducts(factors.products, factors.counted)

    def _corner(self) -> Corner:
        """Return the lowest and highest values of u + v, u - v or u * v, from those of u and v."""
        folder, shown, node = self._folder, str(self._aggregate), inside(self._use.arguments[0])
        operator = _CORNERS.get(type(node))
        parts = [] if operator is None else [inside(node.this), inside(node.expression)]
        sides = [node_sides(part, folder.names) for part in parts]
        if operator is None or any(len(each) != 1 for each in sides) or sides[0] == sides[1]:
            reason = "its extrema are not known from those of each stream"
            raise self._refuse(node, reason, "a + b, a - b and a * b of two streams can be taken")
        kind = Decomposer(folder.names, folder.statement, shown).decompose(node).kind
        if kind.kind is TypeKind.DECIMAL:
            raise self._refuse(node, "extrema of decimals of two streams are not supported", "use CAST(… AS DOUBLE)")
        ends = []
        for part, (side,) in zip(parts, sides, strict=True):
            term = folder.bind_strictly(side, part, shown)
            part_kind = Decomposer(folder.names, folder.statement, shown).decompose(part).kind
            term = cast_term(term, DOUBLE) if kind == DOUBLE and part_kind != DOUBLE else term
            where, keep = condition_of(self._filters.get(side, [])), folder.builders[side].keep
            lowest, highest = (keep(Component(name, term.row_expression(), where=where)) for name in ("min", "max"))
            ends.append((side, lowest, highest))
        return Corner(operator, ends[0], ends[1], self._weights(ends[0][0], ends[1][0]))

    def _refuse(self, node: exp.Expr, reason: str, hint: str) -> QueryError:
        return self._folder.statement.error(f"'{self._aggregate}' cannot be taken over a join: {reason}", node, hint)
