"""GROUP BY, SELECT and HAVING: the window of a query, its grouping expressions, and the columns of its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from windloom.errors import QueryError
from windloom.language.sql.names import WINDOW_COLUMNS, AggregateUse, GroupScope, RowScope
from windloom.language.sql.statement import Item, Statement, is_window_call
from windloom.language.sql.terms import Term
from windloom.language.windows.registry import SYNTAXES, syntax_of
from windloom.language.windows.syntax import Bracket
from windloom.model import Aggregate, Expression, Grouping, Output, Query, Window
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
    for written in statement.group_by:
        node = _meant(written, statement)
        if not is_window_call(node):
            _add(node, written, groups, statement)
        elif window is None:
            window = read_window_call(node, statement)
        else:
            which = "in GROUP BY" if bracket is None else "in the brackets after the stream"
            raise statement.error("a query has one window only", written, f"there is one {which} already")
    if window is None:
        stream = statement.stream
        raise statement.source.error(
            "the query has no window",
            statement.clause.first.stream,
            f"write FROM {stream.name} [RANGE 1 hour SLIDE 1 minute], "
            f"or GROUP BY window({stream.time}, '1 hour', '1 minute')",
        )
    if bracket is not None:
        syntax_of(bracket.tokens).check(bracket, [group.term.column for group in groups])
    return window, groups


def read_groups(statement: Statement) -> list[Group]:
    """Return the grouping expressions of a join, whose windows stand in brackets."""
    groups: list[Group] = []
    for written in statement.group_by:
        node = _meant(written, statement)
        if is_window_call(node):
            raise no_window_call(written, statement)
        _add(node, written, groups, statement)
    return groups


def no_window_call(node: exp.Expr, statement: Statement) -> QueryError:
    hint = "give each stream its own, as in FROM orders [RANGE 1 hour SLIDE 5 minutes] o JOIN clicks [RANGE 1 hour] c"
    return statement.error("the windows of a join stand in brackets after its streams", node, hint)


def read_window_call(node: exp.Expr, statement: Statement) -> Window:
    """Return the window of Spark's `window(time, range [, slide [, offset]])` or `session_window(time, gap)`."""
    stream, name = statement.stream, node.name.lower()
    syntax = next(each for each in SYNTAXES.values() if each.window.function == name)
    takes = syntax.arguments
    assert takes is not None, "every function takes some"
    if not 1 <= len(node.expressions) - 1 <= takes.most:
        raise statement.error(
            f"{name}() takes the time column and {takes.text}", node, f"write {name}({stream.time}, {takes.example})"
        )
    column, *others = node.expressions
    if statement.names.find_node(column) != (stream.time, []):
        hint = f"write {name}({stream.time}, …)"
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


#: Columns that every result has, or gets when it is written to a table that several queries share.
_RESERVED = (*WINDOW_COLUMNS, "query")

#: An output with its expression and the node that names it.
_Named = tuple[Output, Term, exp.Expr]


@dataclass(frozen=True, slots=True)
class SelectList:
    """The columns that a query reports for each window and group, and the aggregates they need."""

    aggregates: dict[Aggregate, AggregateUse]
    outputs: tuple[Output, ...]
    having: Expression | None


def read_answer(statement: Statement, window: Window | None, groups: list[Group]) -> SelectList:
    """Read SELECT and HAVING; `window` is None for a join, whose windows are always in brackets."""
    scope = GroupScope(statement.names, {group.term.sql: index for index, group in enumerate(groups)}, {}, {})
    outputs = _outputs(statement, window, groups, scope)
    condition, having = statement.tree.args.get("having"), None
    if condition is not None:
        aliases = {output.name.lower(): term for output, term, _ in reversed(outputs)}
        for index, group in enumerate(groups):
            aliases.setdefault(group.name.lower(), Term.of_placeholder(group.term.sql, f"__g{index}"))
        in_having = replace(scope, aliases=aliases, in_having=True)
        having = _grouped(condition.this, in_having, statement).group_expression()
    # Case does not count, as in Spark and in readers of Parquet.
    seen: set[str] = set()
    named = [(group.name, group.named) for group in groups]
    named += [(output.name, node) for output, _, node in outputs]
    for name, node in named:
        if name.lower() in _RESERVED:
            raise statement.error(f"the column name '{name}' is reserved", node, "give it another name with AS")
        if name.lower() in seen:
            raise statement.error(f"two columns are called '{name}'", node, "give one of them another name with AS")
        seen.add(name.lower())
    return SelectList(scope.aggregates, tuple(output for output, _, _ in outputs), having)


def aggregated_query(name: str, source: Source, groups: list[Group], answer: SelectList, text: str) -> Query:
    """Return the query that reports these groups and columns, without a WHERE."""
    grouping = tuple(Grouping(group.name, group.term.row_expression()) for group in groups)
    return Query(name, source, None, grouping, tuple(answer.aggregates), answer.outputs, answer.having, text)


def _outputs(statement: Statement, window: Window | None, groups: list[Group], scope: GroupScope) -> list[_Named]:
    """Return the select items that are not grouping columns; those that are give the groupings their names."""
    outputs: list[_Named] = []
    for item in statement.items:
        if _is_window(item, window, statement):
            continue
        term = _grouped(item.node, scope, statement)
        if item.alias is not None:
            scope.aliases.setdefault(item.alias.lower(), term)
        placeholder = term.placeholder or ""
        name = item.alias or term.name or term.sql
        if placeholder.startswith("__a"):
            outputs.append((Output(name, aggregate=int(placeholder[3:])), term, item.named))
        elif placeholder and (group := groups[int(placeholder[3:])]).alias is None:
            group.alias, group.named = item.alias or group.name, item.named
        else:
            outputs.append((Output(name, expression=term.group_expression()), term, item.named))
    return outputs


def _grouped(node: exp.Expr, scope: GroupScope, statement: Statement) -> Term:
    """Return an expression that consists of aggregates, groupings and constants only."""
    term = statement.bind(node, scope)
    if term.loose is not None:
        column = term.loose.name
        hint = f"add it to GROUP BY, or aggregate it, for example max({column})"
        raise statement.error(f"column '{column}' is neither grouped nor aggregated", term.loose, hint)
    return term


def _is_window(item: Item, window: Window | None, statement: Statement) -> bool:
    """Return whether an item only selects the window, which is always reported first, so that it is left out."""
    name = statement.window_reference(item.node)
    if name is None:
        return False
    if item.alias is not None and item.alias.lower() != name:
        hint = "the first columns are always window_start and window_end; leave the alias out"
        raise statement.error(f"the window cannot be called '{item.alias}'", item.named, hint)
    if is_window_call(item.node) and window is None:
        raise no_window_call(item.node, statement)
    if is_window_call(item.node) and read_window_call(item.node, statement) != window:
        raise statement.error("this is not the window of the query", item.node, f"the query is over {window}")
    return True
