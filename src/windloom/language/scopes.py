"""What names mean: on the tuples of a stream, and on the groups of a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from windloom.errors import WindloomError, near_names
from windloom.language.expressions import Binder
from windloom.language.functions import CHANGING, why_refused
from windloom.language.holistic import read_arguments
from windloom.language.terms import Term
from windloom.model import Aggregate, Expression, Stream, TypeKind
from windloom.model.holistic import COMPONENT_OF, holistic_text

_HINTS = {
    "WHERE": "filter on aggregates with HAVING",
    "GROUP BY": "group by columns, or by expressions of columns",
}

WINDOW_COLUMNS = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of the stream, the names by which they may be qualified, and the aliases of the select list."""

    stream: Stream
    qualifiers: frozenset[str]
    aliases: frozenset[str]

    def find(self, parts: list[exp.Identifier]) -> tuple[str, list[exp.Identifier]] | None:
        """The stream's column and the struct fields behind it."""
        if len(parts) > 1 and parts[0].name.lower() in self.qualifiers:
            column = self.stream.find_column(parts[1].name)
            if column is not None:
                return column, parts[2:]
        column = self.stream.find_column(parts[0].name)
        return None if column is None else (column, parts[1:])

    def find_node(self, node: exp.Expr) -> tuple[str, list[exp.Identifier]] | None:
        """The same for a node that may or may not be a column."""
        if not isinstance(node, exp.Column) or not all(isinstance(part, exp.Identifier) for part in node.parts):
            return None
        return self.find([part for part in node.parts if isinstance(part, exp.Identifier)])

    def column_term(self, column: str, node: exp.Expr) -> Term:
        expression = Expression.of_column(column)
        columns = frozenset((column,))
        return Term(expression.sql, expression.sql, columns=columns, loose=node, column=column, name=column)

    def with_fields(self, value: Term, fields: list[exp.Identifier], binder: Binder) -> Term:
        if fields and value.column is not None:
            kind = self.stream.columns[value.column]
            if kind.kind is not TypeKind.OTHER:
                raise binder.error(
                    f"column '{value.column}' has no field '{fields[0].name}'",
                    fields[0],
                    f"it is of type {kind}; only structs have fields",
                )
        for field in fields:
            value = binder.field_of(value, field)
        return value

    def unknown(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder, known: list[str]) -> Exception:
        first = parts[0]
        name = first.name
        if len(parts) > 1 and name.lower() in self.qualifiers:
            first, name = parts[1], parts[1].name
        elif len(parts) == 2 and self.stream.find_column(parts[1].name):
            return binder.error(
                f"'{name}' is not the stream of this query",
                first,
                f"write {parts[1].name} or {self.stream.name}.{parts[1].name}",
            )
        if len(parts) == 1 and not first.quoted and name.lower() in CHANGING:
            refused = why_refused(name.lower(), 0)
            assert refused is not None
            return binder.error(refused[0], node, refused[1])
        if name.lower() in (*WINDOW_COLUMNS, "window"):
            return binder.error(
                f"'{name}' cannot be used in an expression yet",
                first,
                "window_start and window_end are always the first columns of the result; compute with them there",
            )
        return binder.error(f"unknown column '{name}'", first, near_names(name, known))


@dataclass(frozen=True, slots=True)
class RowScope:
    """Expressions on tuples: WHERE, GROUP BY, arguments of aggregates."""

    names: Names
    place: str

    def column(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder) -> Term:
        found = self.names.find(parts)
        name = parts[0].name
        if found is None and name.lower() in self.names.aliases and len(parts) == 1:
            hint = f"it is an alias of the select list; {self.place} sees only the columns of the stream"
            raise binder.error(f"unknown column '{name}'", node, hint)
        if found is None:
            raise self.names.unknown(parts, node, binder, list(self.names.stream.columns))
        return self.names.with_fields(self.names.column_term(found[0], node), found[1], binder)

    def aggregate(self, function: str, node: exp.Anonymous, binder: Binder) -> Term:
        hint = _HINTS.get(self.place, "aggregate a column, or an expression of columns")
        raise binder.error(f"the aggregate {function}() cannot stand in {self.place}", node, hint)

    def settle(self, term: Term) -> Term:
        return term


@dataclass(frozen=True, slots=True)
class GroupScope:
    """Expressions on groups: the select list and HAVING.

    `groupings` maps canonical texts to their index, `aggregates` collects what the query needs, `aliases` are the
    named select items so far. As in Spark, a column of the stream goes before an alias; in HAVING an alias goes before
    a column that is not grouped.
    """

    names: Names
    groupings: Mapping[str, int]
    aggregates: dict[Aggregate, int]
    aliases: dict[str, Term]
    in_having: bool = False

    def column(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder) -> Term:
        alias = self.aliases.get(parts[0].name.lower())
        found = self.names.find(parts)
        if found is not None:
            value = self.settle(self.names.column_term(found[0], node))
            value = self.names.with_fields(value, found[1], binder)
            if value.loose is None or alias is None or not self.in_having:
                return value
        if alias is None:
            known = [*self.names.stream.columns, *self.aliases]
            raise self.names.unknown(parts, node, binder, known)
        return self.names.with_fields(replace(alias, column=None), parts[1:], binder)

    def aggregate(self, function: str, node: exp.Anonymous, binder: Binder) -> Term:
        name, argument, parameters = read_arguments(function, node, binder)
        if name == "count" and _is_constant(argument):
            return self._use(Aggregate("count"), "count(1)", "count(1)")
        inner = Binder(RowScope(self.names, f"{function}()"), binder.source, binder.place).bind(argument)
        aggregate = Aggregate(name, inner.row_expression(), parameters)
        if inner.column is not None:
            # Types of expressions are Spark's to tell; of a column we know it now, and where it stands.
            try:
                aggregate.result_type(self.names.stream.columns[inner.column])
            except WindloomError as error:
                raise binder.wrap(error, argument) from None
        if name in COMPONENT_OF:
            label = f"median({inner.sql})" if function == "median" else holistic_text(function, inner.sql, parameters)
            return self._use(aggregate, str(aggregate), str(aggregate) if name == "count_distinct" else label)
        return self._use(aggregate, f"{name}({inner.sql})", label=f"{function}({inner.sql})")

    def _use(self, aggregate: Aggregate, sql: str, label: str) -> Term:
        index = self.aggregates.setdefault(aggregate, len(self.aggregates))
        placeholder = f"__a{index}"
        return Term(sql, placeholder, uses=frozenset((placeholder,)), name=label)

    def settle(self, term: Term) -> Term:
        index = self.groupings.get(term.sql)
        if index is None or term.placeholder is not None:
            return term
        placeholder = f"__g{index}"
        return replace(term, over=placeholder, uses=frozenset((placeholder,)), loose=None)


def _is_constant(node: exp.Expr) -> bool:
    """count(1), count('x') and count(true) count tuples, as count(*) does; count(NULL) does not."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Literal | exp.Boolean) or (isinstance(node, exp.Star) and not any(node.args.values()))
