"""GROUP BY: the window of a query, and its grouping expressions."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from windloom.errors import QueryError
from windloom.language.bracket import Duration, make_window, parse_bracket
from windloom.language.row_bracket import is_row_bracket, parse_row_bracket, partition_tokens
from windloom.language.scopes import RowScope
from windloom.language.session_bracket import (
    check_session_gap,
    is_session_bracket,
    make_session,
    parse_session_bracket,
)
from windloom.language.statement import WINDOW_CALLS, Statement, is_window_call
from windloom.language.terms import Term
from windloom.model import Window


@dataclass(slots=True)
class Group:
    """One grouping expression; a select item that is the grouping itself sets `alias`."""

    term: Term
    node: exp.Expr
    named: exp.Expr
    alias: str | None = None

    @property
    def name(self) -> str:
        return self.alias or self.term.name or self.term.sql


def read_group_by(statement: Statement) -> tuple[Window, list[Group]]:
    """The window, from the bracket or from a call of window(), and the other grouping expressions."""
    clause = statement.clause.first
    window: Window | None = None
    groups: list[Group] = []
    if clause.bracket is not None and is_row_bracket(clause.bracket):
        window = parse_row_bracket(clause.bracket, clause.bracket_span, statement.source, statement.stream)
    elif clause.bracket is not None and is_session_bracket(clause.bracket):
        window = parse_session_bracket(clause.bracket, clause.bracket_span, statement.source)
    elif clause.bracket is not None:
        window = parse_bracket(clause.bracket, clause.bracket_span, statement.source)
    for written in _written(statement):
        node = _meant(written, statement)
        if not is_window_call(node):
            _add(node, written, groups, statement)
        elif window is None:
            window = read_window_call(node, statement)
        else:
            which = "in GROUP BY" if clause.bracket is None else "in the brackets after the stream"
            raise statement.error("a query has one window only", written, f"there is one {which} already")
    if window is None:
        raise _no_window(statement)
    if window.counted_by:
        _check_partition(statement, groups)
    return window, groups


def read_groups(statement: Statement) -> list[Group]:
    """The grouping expressions of a join, whose windows stand in brackets."""
    groups: list[Group] = []
    for written in _written(statement):
        node = _meant(written, statement)
        if is_window_call(node):
            raise no_window_call(written, statement)
        _add(node, written, groups, statement)
    return groups


def no_window_call(node: exp.Expr, statement: Statement) -> QueryError:
    hint = "give each stream its own, as in FROM orders [RANGE 1 hour SLIDE 5 minutes] o JOIN clicks [RANGE 1 hour] c"
    return statement.error("the windows of a join stand in brackets after its streams", node, hint)


def _written(statement: Statement) -> list[exp.Expr]:
    group_by = statement.tree.args.get("group")
    return list(group_by.expressions) if group_by else []


def _check_partition(statement: Statement, groups: list[Group]) -> None:
    """Refuses a window that counts tuples by key in a query that is not grouped by that key."""
    grouped = {group.term.column for group in groups}
    for token in partition_tokens(statement.clause.first.bracket or (), statement.source):
        column = statement.stream.find_column(token.text)
        if column not in grouped:
            raise statement.source.error(
                f"PARTITION BY '{column}' counts tuples by a column that is not grouped by",
                token,
                f"add it: GROUP BY {token.text}",
            )


def read_window_call(node: exp.Expr, statement: Statement) -> Window:
    """`window(time, range [, slide [, offset]])` or `session_window(time, gap)`, as Spark writes them."""
    stream, name = statement.stream, node.name.lower()
    most, takes, example = _CALLS[name]
    if not 2 <= len(node.expressions) <= most:
        raise statement.error(
            f"{name}() takes the time column and {takes}", node, f"write {name}({stream.time}, {example})"
        )
    column, *durations = node.expressions
    if statement.names.find_node(column) != (stream.time, []):
        raise statement.error(
            f"{name}() must be over the time column of stream '{stream.name}'",
            column,
            f"write {name}({stream.time}, …)",
        )
    if name == "session_window":
        check_session_gap(durations[0], statement)
        return make_session(_duration(durations[0], statement), statement.source)
    length, *others = [_duration(each, statement) for each in durations]
    return make_window(statement.source, length, *others)


#: For each of Spark's functions, the most arguments it takes, what they are, and an example.
_CALLS = {
    "window": (4, "one to three durations", "'1 hour', '10 minutes'"),
    "session_window": (2, "one duration", "'5 minutes'"),
}


def _duration(node: exp.Expr, statement: Statement) -> Duration:
    if not isinstance(node, exp.Literal) or not (node.is_string or node.this.startswith("INTERVAL ")):
        raise statement.error("a duration is expected here", node, "for example '10 minutes'")
    return Duration(str(node.this).replace("'", ""), statement.span(node))


def _meant(node: exp.Expr, statement: Statement) -> exp.Expr:
    """Resolves GROUP BY 1 and GROUP BY alias to their select item; columns take precedence over aliases."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        position = int(node.this)
        if not 1 <= position <= len(statement.items):
            hint = f"use a position from 1 to {len(statement.items)}, or the name of a column"
            raise statement.error(f"GROUP BY {position}: there is no such column", node, hint)
        return statement.items[position - 1].node
    if isinstance(node, exp.Column) and len(node.parts) == 1 and statement.names.find_node(node) is None:
        item = statement.aliases.get(node.name.lower())
        if item is None and (name := node.name.lower()) in WINDOW_CALLS:
            calls = (each for each in statement.items if is_window_call(each.node))
            item = next((each for each in calls if each.node.name.lower() == name), None)
        return node if item is None else item.node
    return node


def _add(node: exp.Expr, written: exp.Expr, groups: list[Group], statement: Statement) -> None:
    if isinstance(node, exp.Tuple):
        raise statement.error("GROUP BY takes a plain list", written, "write GROUP BY a, b without parentheses")
    if statement.window_reference(node) is not None:
        hint = "every query is grouped by its window; leave it out"
        raise statement.error("the window is not a grouping column", written, hint)
    term = statement.bind(node, RowScope(statement.names, "GROUP BY"))
    kind = statement.stream.columns[term.column] if term.column is not None else None
    if kind is not None and not kind.is_groupable:
        hint = f"it is of type {kind}; group by its parts, or by to_json({term.sql})"
        raise statement.error(f"cannot group by '{term.column}'", written, hint)
    if all(group.term.sql != term.sql for group in groups):
        groups.append(Group(term, node, written))


def _no_window(statement: Statement) -> QueryError:
    stream = statement.stream
    return statement.source.error(
        "the query has no window",
        statement.clause.first.stream,
        f"write FROM {stream.name} [RANGE 1 hour SLIDE 1 minute], "
        f"or GROUP BY window({stream.time}, '1 hour', '1 minute')",
    )
