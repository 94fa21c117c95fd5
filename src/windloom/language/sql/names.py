"""The meaning of names: on the tuples of a stream, and on the groups of a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from windloom.aggregates.equivalents import EQUIVALENTS, WITHIN_GROUP
from windloom.aggregates.registry import FUNCTIONS
from windloom.errors import QueryError, WindloomError, near_names
from windloom.language.sql.binder import Binder, Call
from windloom.language.sql.equivalents import meaning_of
from windloom.language.sql.syntax import CHANGING, SUPPORTED, why_refused
from windloom.language.sql.terms import Term, all_of, condition_of, inside, is_not_null, number_of
from windloom.model import Aggregate, Expression, Stream, TypeKind, UserDefined
from windloom.model.aggregate import Function, find_function

#: For these, DISTINCT changes nothing.
_SAME_IF_DISTINCT = ("min", "max")


def _holistic_arguments(spelling: str, node: exp.Anonymous, binder: Binder) -> tuple[str, exp.Expr, tuple[float, ...]]:
    """Return the name of a holistic aggregate, the expression it takes, and its constants (k, p)."""
    name, arguments = FUNCTIONS[spelling], node.expressions
    function = find_function(name)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return _read_distinct(spelling, name, arguments[0], binder)
    implied, constant = function.spellings.get(spelling, ()), function.constant
    if constant is None or implied:
        if len(arguments) != 1:
            message = f"{spelling}() takes one argument, not {len(arguments)}"
            raise binder.error(message, node, f"for example {spelling}(price)")
        return name, arguments[0], implied
    example = f"for example {spelling}({constant.example})"
    if len(arguments) != 2:
        raise binder.error(f"{spelling}() takes two arguments, not {len(arguments)}", node, example)
    number, argument = arguments if constant.goes_first else arguments[::-1]
    value = number_of(number)
    if value is None:
        message = f"{spelling}() needs a number as its {constant.letter}, the same for all tuples"
        raise binder.error(message, number, example)
    wrong = constant.check(value)
    if wrong is not None:
        raise binder.error(f"{spelling}() cannot be taken: {wrong}", number, example)
    return name, argument, (value,)


def _read_distinct(
    function: str, name: str, distinct: exp.Distinct, binder: Binder
) -> tuple[str, exp.Expr, tuple[float, ...]]:
    arguments = distinct.expressions
    if len(arguments) != 1 or distinct.args.get("on") is not None:
        message = f"{function}(DISTINCT …) takes one argument, not {len(arguments)}"
        raise binder.error(
            message, distinct, "for example count(DISTINCT user), or make one value from them: concat_ws(…)"
        )
    if name == "count":
        return "count_distinct", arguments[0], ()
    if name in _SAME_IF_DISTINCT:
        return name, arguments[0], ()
    message = f"{function}(DISTINCT …) is not supported"
    raise binder.error(message, distinct, f"only count, min and max take DISTINCT; without it, {SUPPORTED}")


_HINTS = {
    "WHERE": "filter on aggregates with HAVING",
    "GROUP BY": "group by columns, or by expressions of columns",
    "FILTER": "it is evaluated for each tuple; filter on aggregates with HAVING",
}

WINDOW_COLUMNS = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of the stream, the names by which they may be qualified, and the aliases of the select list."""

    stream: Stream
    qualifiers: tuple[str, ...]  # the stream and its alias, as they are written
    aliases: frozenset[str]
    own: Mapping[str, UserDefined] = field(default_factory=dict)  # user-defined aggregates, by name

    def is_aggregate(self, function: str) -> bool:
        return function in FUNCTIONS or function in EQUIVALENTS or function in WITHIN_GROUP or function in self.own

    def find(self, parts: list[exp.Identifier]) -> tuple[str, list[exp.Identifier]] | None:
        """Return the column of the stream and the struct fields after it."""
        qualified = self.find_qualified(parts)
        if qualified is not None:
            return qualified
        owners = self.owners(parts[0].name)
        return (owners[0][1], parts[1:]) if len(owners) == 1 else None

    def find_qualified(self, parts: list[exp.Identifier]) -> tuple[str, list[exp.Identifier]] | None:
        """Return the column of a qualified name, and the struct fields after it; None if it is not qualified."""
        column = self.stream.find_column(parts[1].name) if self.is_qualified(parts) else None
        return None if column is None else (column, parts[2:])

    def owners(self, name: str) -> list[tuple[str, str]]:
        """Return the possible meanings of a name without a qualifier, as (qualifier, column of the stream)."""
        column = self.stream.find_column(name)
        return [] if column is None else [(self.label, column)]

    @property
    def label(self) -> str:
        """The name that qualifies its columns best."""
        return next(iter(self.qualifiers), self.stream.name)

    def written(self, column: str) -> tuple[str, str]:
        """Return the qualifier and the name by which a query calls a column of the stream."""
        return self.label, column

    def is_qualified(self, parts: list[exp.Identifier]) -> bool:
        return len(parts) > 1 and parts[0].name.lower() in (name.lower() for name in self.qualifiers)

    def find_node(self, node: exp.Expr) -> tuple[str, list[exp.Identifier]] | None:
        """Return the column of a node, and the struct fields after it; None if the node is not a column."""
        if not isinstance(node, exp.Column) or not all(isinstance(part, exp.Identifier) for part in node.parts):
            return None
        return self.find([part for part in node.parts if isinstance(part, exp.Identifier)])

    def column_term(self, column: str, node: exp.Expr) -> Term:
        return Term.of_column(Expression.of_column(column).sql, column, node, self.written(column)[1])

    def with_fields(self, value: Term, fields: list[exp.Identifier], binder: Binder) -> Term:
        if fields and value.column is not None:
            kind = self.stream.columns[value.column]
            if kind.kind is not TypeKind.OTHER:
                hint = f"it is of type {kind}; only structs have fields"
                raise binder.error(f"column '{value.column}' has no field '{fields[0].name}'", fields[0], hint)
        for each in fields:
            value = binder.field_of(value, each)
        return value

    def unknown(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder, known: list[str]) -> Exception:
        first = parts[0]
        name = first.name
        if self.is_qualified(parts):
            first, name = parts[1], parts[1].name
        elif len(parts) > 1:
            column, hint = parts[1].name, near_names(name, list(self.qualifiers))
            is_near = hint.startswith("did you mean")
            if not is_near:
                hint = " or ".join(["write " + column, *(f"{qualifier}.{column}" for qualifier in self.qualifiers)])
            if is_near or self.stream.find_column(column) is not None:
                return binder.error(f"'{name}' is not the stream of this query", first, hint)
        refused = no_column(parts, first, node, binder)
        return refused or binder.error(f"unknown column '{name}'", first, near_names(name, known))


def no_column(parts: list[exp.Identifier], name: exp.Identifier, node: exp.Expr, binder: Binder) -> QueryError | None:
    """Return the error for a name that looks like a column and is something else; None if it is nothing known here."""
    lowered = name.name.lower()
    if len(parts) == 1 and not name.quoted and lowered in CHANGING:
        refused = why_refused(lowered, 0)
        assert refused is not None
        return binder.error(refused[0], node, refused[1])
    if lowered in (*WINDOW_COLUMNS, "window"):
        return binder.error(
            f"'{name.name}' is not known here",
            name,
            "a tuple may be in several windows: use window_start and window_end in the select list, HAVING or ORDER BY",
        )
    return None


@dataclass(frozen=True, slots=True)
class AggregateUse:
    """An aggregate as it is written: its arguments on tuples, and the conditions for a tuple to count."""

    index: int  # among the aggregates of the query
    node: exp.Expr
    arguments: tuple[exp.Expr, ...]
    conditions: tuple[exp.Expr, ...]
    picked: tuple[exp.Expr, ...] = ()  # what else is picked from the same tuple, in the order of `Aggregate.picked`


@dataclass(frozen=True, slots=True)
class _NamesScope:
    """What scopes over the names of a query have in common."""

    names: Names

    def is_aggregate(self, function: str) -> bool:
        return self.names.is_aggregate(function)

    def settle(self, term: Term) -> Term:
        return term


@dataclass(frozen=True, slots=True)
class RowScope(_NamesScope):
    """Expressions on tuples: WHERE, GROUP BY, arguments of aggregates."""

    place: str

    def column(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder) -> Term:
        column = self.names.find(parts)
        name = parts[0].name
        if column is None and name.lower() in self.names.aliases and len(parts) == 1 and not self.names.owners(name):
            hint = f"it is an alias of the select list; {self.place} sees only the columns of the stream"
            raise binder.error(f"unknown column '{name}'", node, hint)
        if column is None:
            raise self.names.unknown(parts, node, binder, list(self.names.stream.columns))
        return self.names.with_fields(self.names.column_term(column[0], node), column[1], binder)

    def aggregate(self, call: Call, binder: Binder) -> Term:
        hint = _HINTS.get(self.place, "aggregate a column, or an expression of columns")
        raise binder.error(f"the aggregate {call.function}() cannot stand in {self.place}", call.node, hint)


@dataclass(frozen=True, slots=True)
class GroupScope(_NamesScope):
    """Expressions on groups: the select list and HAVING.

    `groupings` maps canonical texts to their index. `aggregates` collects the aggregates that the query needs, with the
    place where each is first written. `aliases` are the named select items so far. As in Spark, a column of the stream
    takes precedence over an alias; in HAVING, an alias takes precedence over a column that is not grouped. Nodes of
    which `window_reference` knows an edge are that edge.
    """

    groupings: Mapping[str, int]
    aggregates: dict[Aggregate, AggregateUse]
    aliases: dict[str, Term]
    window_reference: Callable[[exp.Expr], str | None] = lambda node: None
    in_having: bool = False

    def column(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder) -> Term:
        edge = self.window_reference(node)
        if edge is not None and edge not in WINDOW_COLUMNS:
            hint = f"select it as a column, or compute with its edges: {edge}.start, {edge}.end"
            raise binder.error(f"'{'.'.join(part.name for part in parts)}' is the whole window", node, hint)
        if edge is not None:
            return Term.of_placeholder(edge, edge)
        alias = self.aliases.get(parts[0].name.lower())
        column = self.names.find(parts)
        if column is not None:
            value = self.settle(self.names.column_term(column[0], node))
            value = self.names.with_fields(value, column[1], binder)
            if value.loose is None or alias is None or not self.in_having:
                return value
        if alias is None:
            known = [*self.names.stream.columns, *self.aliases]
            raise self.names.unknown(parts, node, binder, known)
        return self.names.with_fields(replace(alias, column=None), parts[1:], binder)

    def aggregate(self, call: Call, binder: Binder) -> Term:
        user_defined = self.names.own.get(call.function)
        meaning = None if user_defined is not None else meaning_of(call, binder)
        if meaning is not None:
            return replace(binder.bind(meaning), name=self._label(call, binder))
        declared = None if user_defined is not None else find_function(FUNCTIONS[call.function])
        is_distinct = any(isinstance(argument, exp.Distinct) for argument in call.node.expressions)
        if declared is not None and (is_distinct or declared.constant is not None):
            return self._holistic(declared, call, binder)
        function, name = call.function, call.function if declared is None else declared.name
        arguments, ignore_nulls = _arguments(call, declared, binder)
        if name == "count" and _is_constant(arguments[0]):
            arguments = []
        terms = [self._on_tuples(expr, f"{function}()", binder) for expr in arguments]
        written = [] if call.where is None else [call.where]
        conditions = [self._on_tuples(expr, "FILTER", binder) for expr in written]
        label = _listed(function, terms, conditions) + (" IGNORE NULLS" if ignore_nulls else "")
        if ignore_nulls:
            written.append(exp.Not(this=exp.Is(this=exp.Paren(this=arguments[0].copy()), expression=exp.Null())))
            conditions.append(is_not_null(terms[0]))
        where = all_of(conditions)
        argument, by = [*(term.row_expression() for term in terms), None, None][:2]
        aggregate = Aggregate(name, argument, by, condition_of(conditions), own=user_defined)
        self._check(aggregate, terms, arguments, conditions[:1], label, call, binder)
        use = AggregateUse(len(self.aggregates), call.node, tuple(arguments), tuple(written))
        index = self.aggregates.setdefault(aggregate, use).index
        return Term.of_placeholder(_listed(name, terms, [] if where is None else [where]), f"__a{index}", label)

    def _holistic(self, declared: Function, call: Call, binder: Binder) -> Term:
        name, argument, parameters = _holistic_arguments(call.function, call.node, binder)
        _refuse_nulls(call, [] if call.ignore_nulls is None else [call.ignore_nulls], binder)
        term = self._on_tuples(argument, f"{call.function}()", binder)
        conditions = [] if call.where is None else [self._on_tuples(call.where, "FILTER", binder)]
        aggregate = Aggregate(name, term.row_expression(), None, condition_of(conditions), parameters)
        shown = str(aggregate)
        if declared.constant is not None:
            spelled = () if declared.spellings.get(call.function) else parameters
            shown = declared.spelled(call.function, term.sql, spelled)
            shown += f" FILTER (WHERE {conditions[0].sql})" if conditions else ""
        self._check(aggregate, [term], [argument], conditions, shown, call, binder)
        written = () if call.where is None else (call.where,)
        use = AggregateUse(len(self.aggregates), call.node, (argument,), written)
        index = self.aggregates.setdefault(aggregate, use).index
        return Term.of_placeholder(str(aggregate), f"__a{index}", shown)

    def _check(
        self,
        aggregate: Aggregate,
        terms: list[Term],
        arguments: list[exp.Expr],
        conditions: list[Term],
        written: str,
        call: Call,
        binder: Binder,
    ) -> None:
        """Check the type of a bare column here, where its place is known; Spark decides the types of expressions.

        Errors call the aggregate by the name with which it is `written`, which may be another spelling.
        """
        checks = [
            *zip(terms, arguments, (aggregate.result_type, aggregate.check_by), strict=False),
            *((term, call.where, aggregate.check_where) for term in conditions if call.where is not None),
        ]
        for term, node, check in checks:
            if term.column is not None:
                try:
                    check(self.names.stream.columns[term.column])
                except WindloomError as error:
                    message = error.message.replace(f"'{aggregate}'", f"'{written}'")
                    raise binder.wrap(WindloomError(message, error.detail, error.hint), node) from None

    def _label(self, call: Call, binder: Binder) -> str:
        """Return a call as it is written, which names its column."""
        terms = [self._on_tuples(each, f"{call.function}()", binder) for each in call.node.expressions]
        ordered = [] if call.within is None else [each.this for each in call.within.expressions]
        orders = [self._on_tuples(each, "WITHIN GROUP", binder).sql for each in ordered]
        conditions = [] if call.where is None else [self._on_tuples(call.where, "FILTER", binder)]
        shown = f"{call.function}({', '.join(term.sql for term in terms)})"
        shown += f" WITHIN GROUP (ORDER BY {', '.join(orders)})" if orders else ""
        shown += f" FILTER (WHERE {conditions[0].sql})" if conditions else ""
        return shown + (" IGNORE NULLS" if call.ignore_nulls else "")

    def _on_tuples(self, node: exp.Expr, place: str, binder: Binder) -> Term:
        return Binder(RowScope(self.names, place), binder.source, binder.place).bind(node)

    def settle(self, term: Term) -> Term:
        index = self.groupings.get(term.sql)
        return term if index is None or term.placeholder is not None else term.as_placeholder(f"__g{index}")


def _arguments(call: Call, declared: Function | None, binder: Binder) -> tuple[list[exp.Expr], bool]:
    """Return the arguments that are values of tuples, in the right number, and whether NULLs among them are ignored.

    User-defined aggregates are not declared, and take one argument.
    """
    function, arguments = call.function, list(call.node.expressions)
    nulls = [] if call.ignore_nulls is None else [call.ignore_nulls]
    if arguments and isinstance(arguments[0], exp.IgnoreNulls | exp.RespectNulls):
        nulls.append(isinstance(arguments[0], exp.IgnoreNulls))
        arguments[0] = arguments[0].this
    if declared is not None and declared.picks_nulls:
        if len(arguments) == 2 and isinstance(arguments[1], exp.Boolean):
            nulls.append(bool(arguments.pop().this))
        if len(nulls) > 1:
            raise binder.error(f"{function}() says twice what to do with NULL", call.node, "keep one of the two")
    else:
        _refuse_nulls(call, nulls, binder)
    takes, example = (2, "venue, price") if declared is not None and declared.arguments == 2 else (1, "price")
    if declared is not None and declared.pairs_numbers:
        example = "price, volume"
    if len(arguments) != takes:
        wanted = "one argument" if takes == 1 else "two arguments"
        message = f"{function}() takes {wanted}, not {len(arguments)}"
        raise binder.error(message, call.node, f"for example {function}({example})")
    return arguments, any(nulls)


def _refuse_nulls(call: Call, nulls: list[bool], binder: Binder) -> None:
    if nulls:
        word = "IGNORE NULLS" if nulls[0] else "RESPECT NULLS"
        raise binder.error(f"{word} belongs to first() and last()", call.node, "other aggregates skip NULL")


def _listed(function: str, arguments: list[Term], conditions: list[Term]) -> str:
    """Return an aggregate as text."""
    call = f"{function}({', '.join(term.sql for term in arguments) or '1'})"
    return f"{call} FILTER (WHERE {conditions[0].sql})" if conditions else call


def _is_constant(node: exp.Expr) -> bool:
    """Return whether count(node) counts all tuples: count(1), count('x') and count(true) do, count(NULL) does not."""
    node = inside(node)
    return isinstance(node, exp.Literal | exp.Boolean) or (isinstance(node, exp.Star) and not any(node.args.values()))
