"""Conditions on pairs of rows other than equalities: the parts that read one side become grouping columns of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from windloom.language.expressions import Binder, Call
from windloom.language.joins.conditions import node_sides
from windloom.language.joins.links import LinkPlan
from windloom.language.joins.names import JoinNames
from windloom.language.joins.sides import SideBuilder
from windloom.language.scopes import RowScope
from windloom.language.statement import Statement
from windloom.language.terms import Term, all_of, inside
from windloom.model import Expression
from windloom.model.scalar import Read

#: Parts of a condition that read one side, by their qualified text, with the text of the side's grouping column.
Parts = Mapping[str, tuple[int, str]]


def group_residual(link: LinkPlan, builders: list[SideBuilder], names: JoinNames, statement: Statement) -> Parts:
    """Make every part of a residual condition that reads one side a grouping column of that side."""
    parts: dict[str, tuple[int, str]] = {}
    for conjunct in link.residual:
        for node, side in _parts(conjunct.node, names):
            term = builders[side].bind(node, "the condition of a join")
            whole = statement.bind(node, RowScope(names, "the condition of a join"))
            parts[whole.sql] = (side, builders[side].group(term))
    return parts


def residual_of(
    link: LinkPlan, parts: Parts, builders: list[SideBuilder], names: JoinNames, statement: Statement
) -> Expression | None:
    """Return the condition over the grouping columns `__p0`, … of the parent and `__c0`, … of the child."""
    placeholders = {
        whole: f"__{'p' if side == link.parent else 'c'}{builders[side].position(sql)}"
        for whole, (side, sql) in parts.items()
    }
    scope = _PairScope(RowScope(names, "the condition of a join"), placeholders)
    condition = all_of([statement.bind(conjunct.node, scope) for conjunct in link.residual])
    return None if condition is None else condition.group_expression()


def _parts(node: exp.Expr, names: JoinNames) -> Iterator[tuple[exp.Expr, int]]:
    """Yield the largest parts that read one side."""
    node = inside(node)
    sides = node_sides(node, names)
    if len(sides) == 1:
        yield node, next(iter(sides))
    elif sides:
        for below in node.iter_expressions():
            yield from _parts(below, names)


@dataclass(frozen=True, slots=True)
class _PairScope:
    """Expressions on pairs of rows, in which parts that read one side are replaced by placeholders."""

    row: RowScope
    placeholders: Mapping[str, str]

    def column(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder) -> Term:
        return self.row.column(parts, node, binder)

    def is_aggregate(self, function: str) -> bool:
        return self.row.is_aggregate(function)

    def aggregate(self, call: Call, binder: Binder) -> Term:
        return self.row.aggregate(call, binder)

    def settle(self, term: Term) -> Term:
        placeholder = self.placeholders.get(term.sql)
        if placeholder is None:
            return term
        return replace(term, over=placeholder, uses=frozenset((placeholder,)), loose=None, tree=Read(placeholder))
