"""Turns one SELECT into a `model.Query`, clause by clause, in the order in which names depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import Token, exp

from windloom.errors import QueryError
from windloom.language.group_by import Group, read_group_by, read_window_call
from windloom.language.predicates import analyse
from windloom.language.scopes import WINDOW_COLUMNS, GroupScope, RowScope
from windloom.language.statement import Item, Statement, is_window_call, take_apart
from windloom.language.syntax import too_deep
from windloom.language.terms import Term
from windloom.language.tokens import Source, Span, tokenize
from windloom.model import Aggregate, Expression, Grouping, Output, Query, Stream, UserDefined, Window

#: Columns that every result has, or gets when it is written to a table that several queries share.
_RESERVED = (*WINDOW_COLUMNS, "query")

#: An output with its expression and the node that names it.
_Named = tuple[Output, Term, exp.Expr]


def parse_query(
    name: str, text: str, streams: Mapping[str, Stream], own: Mapping[str, UserDefined] | None = None
) -> Query:
    """Reads one query and checks it against the streams it may read from; `own` are user-defined aggregates.

    >>> from windloom.model import DataType
    >>> trades = Stream("trades", {"ts": DataType.parse("timestamp"), "price": DataType.parse("double")}, time="ts")
    >>> query = parse_query("q", "SELECT avg(Price) FROM trades [RANGE 1 hour SLIDE 60 s]", {"trades": trades})
    >>> str(query.window), str(query.aggregates[0]), query.outputs[0].name
    ('[RANGE 1 hour SLIDE 1 minute]', 'avg(price)', 'avg(price)')
    """
    if not isinstance(text, str):
        raise QueryError(
            f"query '{name}': the text must be a string, not {type(text).__name__}", hint="SELECT … as str"
        )
    source = Source(text, f"query '{name}'")
    return read_query(name, tokenize(source), source, streams, text, own)


def read_query(
    name: str,
    tokens: Sequence[Token],
    source: Source,
    streams: Mapping[str, Stream],
    text: str,
    own: Mapping[str, UserDefined] | None = None,
) -> Query:
    """Reads the query in these tokens of a longer text."""
    try:
        return _read(name, take_apart(tokens, source, streams, own or {}), text)
    except RecursionError:
        raise too_deep(Span.of(tokens), source) from None


def _read(name: str, statement: Statement, text: str) -> Query:
    where = _where(statement)
    window, groups = read_group_by(statement)
    aggregates: dict[Aggregate, int] = {}
    outputs = _outputs(statement, window, groups, aggregates)
    having = _having(statement, groups, aggregates, outputs)
    _check_names(statement, groups, outputs)
    _check_window(statement, window, aggregates)
    return Query(
        name,
        statement.windowed(window),
        where,
        tuple(Grouping(group.name, group.term.row_expression()) for group in groups),
        tuple(aggregates),
        tuple(output for output, _, _ in outputs),
        having,
        text,
        None if where is None else analyse(where, statement.stream),
    )


def _check_window(statement: Statement, window: Window, aggregates: Iterable[Aggregate]) -> None:
    """FREQUENT needs the lists of sub-windows, and some kinds of windows merge slices as time goes on."""
    for one in aggregates:
        if one.function == "frequent" and not window.keeps_slices:
            hint = "use top(k, x), or a window of [RANGE … SLIDE …]"
            raise statement.error(f"'{one}' cannot be taken over {window}", statement.tree, hint)


def _where(statement: Statement) -> Expression | None:
    where = statement.tree.args.get("where")
    if where is None:
        return None
    return statement.bind(where.this, RowScope(statement.names, "WHERE")).row_expression()


def _outputs(
    statement: Statement, window: Window, groups: list[Group], aggregates: dict[Aggregate, int]
) -> list[_Named]:
    """The select items that are not grouping columns; those that are give the groupings their names."""
    aliases: dict[str, Term] = {}
    scope = GroupScope(statement.names, _indexes(groups), aggregates, aliases)
    outputs: list[_Named] = []
    for item in statement.items:
        if _is_window(item, window, statement):
            continue
        term = _grouped(item.node, scope, statement)
        if item.alias is not None:
            aliases.setdefault(item.alias.lower(), term)
        placeholder = term.placeholder or ""
        name = item.alias or term.name or term.sql
        if placeholder.startswith("__a"):
            outputs.append((Output(name, aggregate=int(placeholder[3:])), term, item.named))
        elif placeholder and (group := groups[int(placeholder[3:])]).alias is None:
            group.alias, group.named = item.alias or group.name, item.named
        else:
            outputs.append((Output(name, expression=term.group_expression()), term, item.named))
    return outputs


def _having(
    statement: Statement, groups: list[Group], aggregates: dict[Aggregate, int], outputs: list[_Named]
) -> Expression | None:
    having = statement.tree.args.get("having")
    if having is None:
        return None
    aliases = {output.name.lower(): term for output, term, _ in reversed(outputs)}
    for index, group in enumerate(groups):
        aliases.setdefault(group.name.lower(), Term.of_placeholder(group.term.sql, f"__g{index}"))
    scope = GroupScope(statement.names, _indexes(groups), aggregates, aliases, in_having=True)
    return _grouped(having.this, scope, statement).group_expression()


def _indexes(groups: list[Group]) -> dict[str, int]:
    return {group.term.sql: index for index, group in enumerate(groups)}


def _grouped(node: exp.Expr, scope: GroupScope, statement: Statement) -> Term:
    """An expression that consists of aggregates, groupings and constants only."""
    term = statement.bind(node, scope)
    if term.loose is not None:
        column = term.loose.name
        raise statement.error(
            f"column '{column}' is neither grouped nor aggregated",
            term.loose,
            f"add it to GROUP BY, or aggregate it, for example max({column})",
        )
    return term


def _is_window(item: Item, window: Window, statement: Statement) -> bool:
    """Items that only select the window are accepted and left out, because its columns are always reported first."""
    name = statement.window_reference(item.node)
    if name is None:
        return False
    if item.alias is not None and item.alias.lower() != name:
        raise statement.error(
            f"the window cannot be called '{item.alias}'",
            item.named,
            "the first columns are always window_start and window_end; leave the alias out",
        )
    if is_window_call(item.node) and read_window_call(item.node, statement) != window:
        raise statement.error("this is not the window of the query", item.node, f"the query is over {window}")
    return True


def _check_names(statement: Statement, groups: list[Group], outputs: list[_Named]) -> None:
    """The names of result columns are case-insensitive, as in Spark and in readers of Parquet."""
    seen: set[str] = set()
    named = [(group.name, group.named) for group in groups]
    named += [(output.name, node) for output, _, node in outputs]
    for name, node in named:
        if name.lower() in _RESERVED:
            raise statement.error(f"the column name '{name}' is reserved", node, "give it another name with AS")
        if name.lower() in seen:
            raise statement.error(f"two columns are called '{name}'", node, "give one of them another name with AS")
        seen.add(name.lower())
