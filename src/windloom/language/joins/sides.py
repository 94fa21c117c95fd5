"""Collects what a join asks of each of its sides, as expressions over the columns of one stream."""

from __future__ import annotations

from sqlglot import exp

from windloom.language.predicates import analyse
from windloom.language.scopes import Names, RowScope
from windloom.language.statement import Statement
from windloom.language.terms import Term, all_of
from windloom.model import Component, Expression, Side, Stream, WindowedStream
from windloom.model.aggregate import COUNT_STAR


class SideBuilder:
    """One side of a join while it is being read. Grouping columns are sorted in the end; until then they are texts."""

    def __init__(self, source: WindowedStream, names: Names, statement: Statement) -> None:
        self.source = source
        self._names = names
        self._statement = statement
        self._conditions: list[Term] = []
        self._group_by: dict[str, Expression] = {}
        self._components: dict[Component, int] = {COUNT_STAR: 0}

    @property
    def stream(self) -> Stream:
        return self._names.stream

    def bind(self, node: exp.Expr, place: str) -> Term:
        """Return an expression that reads no other side, over the columns of the stream."""
        return self._statement.bind(node, RowScope(self._names, place))

    def require(self, condition: Term) -> None:
        """Let only tuples that satisfy the condition take part."""
        self._conditions.append(condition)

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
        where = all_of(conditions)
        return self.keep(Component(COUNT_STAR.kind, where=None if where is None else where.row_expression()))

    def position(self, sql: str) -> int:
        """Return the final position of a grouping expression."""
        return sorted(self._group_by).index(sql)

    def build(self) -> Side:
        where = all_of(self._conditions)
        condition = None if where is None else where.row_expression()
        return Side(
            self.source,
            condition,
            None if condition is None else analyse(condition, self.stream),
            tuple(self._group_by[sql] for sql in sorted(self._group_by)),
            tuple(self._components),
        )
