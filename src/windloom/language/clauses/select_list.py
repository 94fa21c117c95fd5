"""GROUP BY, SELECT, HAVING and ORDER BY: the window of a query, its groupings, and the columns of its answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from windloom.aggregates.equivalents import near_functions
from windloom.aggregates.picks import Picks
from windloom.errors import QueryError, meant
from windloom.expressions.functions import FUNCTIONS as KNOWN_FUNCTIONS
from windloom.language.clauses.presentation import (
    RESERVED,
    NamedOutput,
    Place,
    Selected,
    apart,
    checked_names,
    presented,
    read_order,
    shown_name,
)
from windloom.language.sql.join_names import JoinNames
from windloom.language.sql.names import WINDOW_COLUMNS, AggregateUse, GroupScope, RowScope
from windloom.language.sql.statement import Item, Statement
from windloom.language.sql.table_functions import CalledWindow
from windloom.language.sql.terms import Term
from windloom.language.sql.window_calls import is_window_call
from windloom.language.windows.registry import SYNTAXES, syntax_of
from windloom.language.windows.syntax import Bracket
from windloom.model import Aggregate, Expression, Grouping, Output, Query, Window
from windloom.model.clauses import Presentation
from windloom.model.query import Source
from windloom.model.windows import WINDOW_FUNCTIONS


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
    """Return the window, from the bracket or from a call of window(), and the other grouping expressions."""
    source = statement.clause.first
    bracket = (
        None
        if source.bracket is None
        else Bracket(source.bracket, source.bracket_span, statement.source, statement.stream)
    )
    window = None if bracket is None else syntax_of(bracket.tokens).read(bracket)
    groups: list[Group] = []
    edges: set[str] = set()
    for written in statement.group_by:
        if statement.called is not None and isinstance(written, exp.Column) and written.name.lower() == "window_time":
            edges.add("window_time")
            continue
        node = _meant(written, statement)
        edge = statement.window_reference(node)
        if statement.is_pasted and edge in WINDOW_COLUMNS and not is_window_call(node):
            if window is None and statement.window_calls:
                window = read_window_call(statement.window_calls[0], statement)
            edges.add(edge)
        elif not is_window_call(node):
            _add(node, written, groups, statement)
        elif window is None:
            window = read_window_call(node, statement)
        else:
            which = "in GROUP BY" if bracket is None else "in the brackets after the stream"
            raise statement.error("a query has one window only", written, f"there is one {which} already")
    if statement.called is not None:
        _check_edges(statement, statement.called, edges, groups)
    if window is None:
        stream = statement.stream
        selected = next((item.node for item in statement.items if is_window_call(item.node)), None)
        if selected is not None:
            name = selected.name.lower()
            hint = f"group by it as well: GROUP BY {name}({stream.time}, '1 hour')"
            raise statement.error(f"{name}() is selected, and nothing is grouped by it", selected, hint)
        raise statement.source.error(
            "the query has no window",
            statement.clause.first.stream,
            f"write FROM {stream.name} [RANGE 1 hour SLIDE 1 minute], "
            f"or GROUP BY window({stream.time}, '1 hour', '1 minute')",
        )
    if bracket is not None:
        syntax_of(bracket.tokens).check(bracket, [group.term.column for group in groups])
    for call in statement.window_calls:
        if read_window_call(call, statement) != window:
            raise statement.error("this is not the window of the query", call, f"the query is over {window}")
    return window, groups


def _check_edges(statement: Statement, called: CalledWindow, edges: Collection[str], groups: Sequence[Group]) -> None:
    """Refuse a table function whose windows are not grouped one by one."""
    name = called.word.text.upper()
    wanted = {"window_end", "window_time"} if called.is_cumulative else {*WINDOW_COLUMNS, "window_time"}
    if not wanted & set(edges):
        hint = "write GROUP BY window_start, window_end and other columns"
        raise statement.source.error(f"the query is not grouped by the window of {name}", called.word, hint)
    grouped = {group.term.column for group in groups}
    keys = {statement.stream.find_column(key.text) for key in called.keys}
    if called.is_session and grouped != keys:
        shown = ", ".join(key.text for key in called.keys) or "nothing"
        fact = f"its sessions are those of {shown}, and groups have sessions of their own here"
        hint = "write the same columns after PARTITION BY and in GROUP BY"
        raise statement.source.error("SESSION and GROUP BY name different columns", called.word, hint, fact)


def read_groups(statement: Statement) -> list[Group]:
    """Return the grouping expressions of a join, whose windows stand in brackets."""
    groups: list[Group] = []
    for written in statement.group_by:
        node = _meant(written, statement)
        if is_window_call(node):
            raise no_window_call(written, statement)
        _add(node, written, groups, statement)
    return groups


def with_called_window(statement: Statement) -> Statement:
    """Return a join of one stream with relations so that the stream has the window of GROUP BY window(…).

    Relations have no windows, so that such a call means the same as a bracket after the stream. Of several streams,
    each needs a window of its own.
    """
    names, clause = statement.names, statement.clause
    if not isinstance(names, JoinNames):
        return statement
    calls = [node for node in statement.group_by if is_window_call(_meant(node, statement))]
    sides = zip(clause.sides, names.sides, strict=True)
    streams = [source for source, side in sides if not side.stream.is_relation]
    if not calls:
        return statement
    if len(streams) > 1:
        raise no_window_call(calls[0], statement)
    if len(calls) > 1 or streams[0].bracket is not None:
        which = "in GROUP BY" if streams[0].bracket is None else "in the brackets after the stream"
        raise statement.error("a query has one window only", calls[-1], f"there is one {which} already")
    window = read_window_call(_meant(calls[0], statement), statement)
    sources = tuple(replace(each, called=window) if each is streams[0] else each for each in clause.sources)
    kept = [node.copy() for node in statement.group_by if node is not calls[0]]
    tree = statement.tree.copy()
    tree.set("group", exp.Group(expressions=kept) if kept else None)
    return replace(statement, clause=replace(clause, sources=sources), tree=tree)


def no_window_call(node: exp.Expr, statement: Statement) -> QueryError:
    hint = "give each stream its own, as in FROM orders [RANGE 1 hour SLIDE 5 minutes] o JOIN clicks [RANGE 1 hour] c"
    return statement.error("the windows of a join stand in brackets after its streams", node, hint)


def read_window_call(node: exp.Expr, statement: Statement) -> Window:
    """Return the window of Spark's `window(time, range [, slide [, offset]])` or `session_window(time, gap)`."""
    names, name = statement.names, node.name.lower()
    stream, time = statement.stream, statement.stream.time
    if isinstance(names, JoinNames):  # of one stream with relations
        side = next(side for side in range(len(names.sides)) if not names.is_relation(side))
        stream = names.sides[side].stream
        time = f"{names.labels[side]}.{stream.time}"
    syntax = next(each for each in SYNTAXES.values() if each.window.function == name)
    takes = syntax.arguments
    assert takes is not None, "every function takes some"
    if not 1 <= len(node.expressions) - 1 <= takes.most:
        raise statement.error(
            f"{name}() takes the time column and {takes.text}", node, f"write {name}({time}, {takes.example})"
        )
    column, *others = node.expressions
    if statement.names.find_node(column) != (time, []):
        hint = f"write {name}({time}, …)"
        raise statement.error(f"{name}() must be over the time column of stream '{stream.name}'", column, hint)
    return syntax.read_call(others, statement)


def _meant(node: exp.Expr, statement: Statement) -> exp.Expr:
    """Resolve GROUP BY 1 and GROUP BY alias to their select item; columns take precedence over aliases."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        position = int(node.this)
        if not 1 <= position <= len(statement.items):
            hint = f"use a position from 1 to {len(statement.items)}, or the name of a column"
            raise statement.error(f"GROUP BY {position}: there is no such column", node, hint)
        return statement.items[position - 1].node
    if isinstance(node, exp.Column) and len(node.parts) == 1 and statement.names.find_node(node) is None:
        item = statement.aliases.get(node.name.lower())
        if item is None and (name := node.name.lower()) in WINDOW_FUNCTIONS:
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


@dataclass(frozen=True, slots=True)
class SelectList:
    """The columns that a query reports for each window and group, the aggregates they need, and what readers see."""

    aggregates: dict[Aggregate, AggregateUse]
    outputs: tuple[Output, ...]
    having: Expression | None
    presentation: Presentation


def read_answer(statement: Statement, window: Window | None, groups: list[Group]) -> SelectList:
    """Read SELECT, HAVING and ORDER BY; `window` is None for a join whose windows are in brackets."""
    groupings = {group.term.sql: index for index, group in enumerate(groups)}
    scope = GroupScope(statement.names, groupings, {}, {}, statement.window_reference)
    selected = _selected(statement, window, groups, scope)
    condition, having = statement.tree.args.get("having"), None
    aliases = {named.output.name.lower(): named.term for named in reversed(selected.outputs)}
    aliases |= {item.alias.lower(): term for item, term, _ in reversed(selected.items) if item.alias and term}
    for index, group in enumerate(groups):
        aliases.setdefault(group.name.lower(), Term.of_placeholder(group.term.sql, f"__g{index}"))
    by_alias = replace(scope, aliases=aliases, in_having=True)
    if condition is not None:
        having = _grouped(condition.this, by_alias, statement).group_expression()
    is_pasted = window is not None and statement.is_pasted
    named = [(group.name, group.named) for group in groups]
    named += [(each.output.name, each.node) for each in selected.outputs]
    if is_pasted:
        shown = [(shown_name(item, term, statement), item.named) for item, term, _ in selected.items]
        wrong = checked_names(shown, statement)
    else:
        wrong = checked_names(named, statement, RESERVED)
    if wrong is not None:
        raise wrong
    order = read_order(statement, selected, lambda node: _grouped(node, by_alias, statement))
    names = apart([*(group.name for group in groups), *(each.output.name for each in selected.outputs)])
    for group, name in zip(groups, names, strict=False):
        group.alias = name
    for each, name in zip(selected.outputs, names[len(groups) :], strict=True):
        each.output = replace(each.output, name=name)
    presentation = presented(statement, selected, names[: len(groups)], order, is_pasted=is_pasted)
    return SelectList(
        _picked_together(scope.aggregates, statement),
        tuple(each.output for each in selected.outputs),
        having,
        presentation,
    )


def _picked_together(uses: Mapping[Aggregate, AggregateUse], statement: Statement) -> dict[Aggregate, AggregateUse]:
    """Return the aggregates so that those that pick by one order, under one FILTER, pick one tuple.

    In a join, every stream has first and last tuples of its own.
    """
    names, alike = statement.names, defaultdict[tuple[object, ...], list[Aggregate]](list)
    for aggregate in uses:
        if aggregate.function in Picks.kinds and aggregate.argument is not None:
            sides = None
            if aggregate.by is None and isinstance(names, JoinNames):
                sides = frozenset(map(names.side_of, aggregate.argument.columns))
            alike[aggregate.function, aggregate.by, aggregate.where, sides].append(aggregate)
    together = {aggregate: (aggregate, use) for aggregate, use in uses.items()}
    for picks in alike.values():
        arguments = tuple(pick.argument for pick in picks if pick.argument is not None)
        others = tuple(uses[pick].arguments[0] for pick in picks)
        if len(picks) > 1:
            together |= {pick: (replace(pick, picked=arguments), replace(uses[pick], picked=others)) for pick in picks}
    return dict(together.values())


def aggregated_query(name: str, source: Source, groups: list[Group], answer: SelectList, text: str) -> Query:
    """Return the query that reports these groups and columns, without a WHERE."""
    grouping = tuple(Grouping(group.name, group.term.row_expression()) for group in groups)
    query = Query(name, source, None, grouping, tuple(answer.aggregates), answer.outputs, answer.having, text)
    return replace(query, presentation=answer.presentation)


def _selected(statement: Statement, window: Window | None, groups: list[Group], scope: GroupScope) -> Selected:
    """Return the select items; those that are grouping columns give the groupings their names."""
    selected = Selected()
    for item in statement.items:
        is_window, place = _window_place(item, window, statement)
        if is_window:
            edge = None if place is None else Term.of_placeholder(place, place)
            selected.items.append((item, edge, place))
            if edge is not None and item.alias is not None:
                scope.aliases.setdefault(item.alias.lower(), edge)
            continue
        term = _grouped(item.node, scope, statement)
        if item.alias is not None:
            scope.aliases.setdefault(item.alias.lower(), term)
        placeholder = term.placeholder or ""
        name = item.alias or term.name or term.sql
        if placeholder.startswith("__g") and (group := groups[int(placeholder[3:])]).alias is None:
            group.alias, group.named = item.alias or group.name, item.named
            selected.items.append((item, term, f"g{placeholder[3:]}"))
            continue
        if placeholder.startswith("__a"):
            output = Output(name, aggregate=int(placeholder[3:]))
        else:
            output = Output(name, expression=term.group_expression())
        selected.items.append((item, term, f"o{len(selected.outputs)}"))
        selected.outputs.append(NamedOutput(output, term, item.named))
    return selected


def _grouped(node: exp.Expr, scope: GroupScope, statement: Statement) -> Term:
    """Return an expression that consists of aggregates, groupings and constants only."""
    term = statement.bind(node, scope)
    if term.loose is not None:
        column = term.loose.name
        hint = f"add it to GROUP BY, or aggregate it, for example max({column})"
        call, close = _misspelt(term.loose, node, scope)
        if call is not None:
            message = f"column '{column}' is neither grouped nor aggregated, and {call.name}() is no aggregate"
            raise statement.error(message, call, f"{meant(close)} Or {hint}")
        raise statement.error(f"column '{column}' is neither grouped nor aggregated", term.loose, hint)
    return term


def _misspelt(column: exp.Expr, node: exp.Expr, scope: GroupScope) -> tuple[exp.Anonymous | None, list[str]]:
    """Return the call around a column whose name nearly is that of an aggregate, and such names; None if there is none.

    A function whose type we know is meant as it is written.
    """
    around: exp.Expr | None = column
    while around is not None and around is not node.parent:
        if isinstance(around, exp.Anonymous) and around.name.lower() not in KNOWN_FUNCTIONS:
            close = near_functions(around.name, scope.names.own)
            if close:
                return around, close
        around = around.parent
    return None, []


def _window_place(item: Item, window: Window | None, statement: Statement) -> tuple[bool, Place]:
    """Return whether an item only selects the window, and which edge of it; None for both.

    The window is always part of the rows, so nothing needs to be computed for such an item.
    """
    name = statement.window_reference(item.node)
    if name is None:
        return False, None
    if is_window_call(item.node) and window is None:
        raise no_window_call(item.node, statement)
    if is_window_call(item.node) and read_window_call(item.node, statement) != window:
        raise statement.error("this is not the window of the query", item.node, f"the query is over {window}")
    is_edge = name in WINDOW_COLUMNS
    if item.alias is not None and item.alias.lower() != name and not statement.is_pasted:
        if is_edge:
            return False, None  # a further column, under its own name
        hint = "the first columns are always window_start and window_end; leave the alias out"
        raise statement.error(f"the window cannot be called '{item.alias}'", item.named, hint)
    return True, name if is_edge else None
