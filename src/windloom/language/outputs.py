"""The select list and HAVING: the columns of an answer, their names, and the aggregates that they need."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from windloom.language.group_by import Group, no_window_call, read_window_call
from windloom.language.scopes import WINDOW_COLUMNS, Asked, GroupScope
from windloom.language.statement import Item, Statement, is_window_call
from windloom.language.terms import Term
from windloom.model import Aggregate, Expression, Output, Window

#: Columns that every result has, or gets when it is written to a table that several queries share.
_RESERVED = (*WINDOW_COLUMNS, "query")

#: An output with its expression and the node that names it.
_Named = tuple[Output, Term, exp.Expr]


@dataclass(frozen=True, slots=True)
class Answer:
    """The columns that a query reports for each window and group, and the aggregates they need."""

    aggregates: dict[Aggregate, Asked]
    outputs: tuple[Output, ...]
    having: Expression | None


def read_answer(statement: Statement, window: Window | None, groups: list[Group]) -> Answer:
    """Read SELECT and HAVING; `window` is None for a join, whose windows are always in brackets."""
    aggregates: dict[Aggregate, Asked] = {}
    outputs = _outputs(statement, window, groups, aggregates)
    condition, having = statement.tree.args.get("having"), None
    if condition is not None:
        aliases = {output.name.lower(): term for output, term, _ in reversed(outputs)}
        for index, group in enumerate(groups):
            aliases.setdefault(group.name.lower(), Term.of_placeholder(group.term.sql, f"__g{index}"))
        scope = GroupScope(statement.names, _indexes(groups), aggregates, aliases, in_having=True)
        having = _grouped(condition.this, scope, statement).group_expression()
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
    return Answer(aggregates, tuple(output for output, _, _ in outputs), having)


def _outputs(
    statement: Statement, window: Window | None, groups: list[Group], aggregates: dict[Aggregate, Asked]
) -> list[_Named]:
    """Return the select items that are not grouping columns; those that are give the groupings their names."""
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


def _indexes(groups: list[Group]) -> dict[str, int]:
    return {group.term.sql: index for index, group in enumerate(groups)}


def _grouped(node: exp.Expr, scope: GroupScope, statement: Statement) -> Term:
    """Return an expression that consists of aggregates, groupings and constants only."""
    term = statement.bind(node, scope)
    if term.loose is not None:
        column = term.loose.name
        raise statement.error(
            f"column '{column}' is neither grouped nor aggregated",
            term.loose,
            f"add it to GROUP BY, or aggregate it, for example max({column})",
        )
    return term


def _is_window(item: Item, window: Window | None, statement: Statement) -> bool:
    """Return whether an item only selects the window, which is always reported first, so that it is left out."""
    name = statement.window_reference(item.node)
    if name is None:
        return False
    if item.alias is not None and item.alias.lower() != name:
        raise statement.error(
            f"the window cannot be called '{item.alias}'",
            item.named,
            "the first columns are always window_start and window_end; leave the alias out",
        )
    if is_window_call(item.node) and window is None:
        raise no_window_call(item.node, statement)
    if is_window_call(item.node) and read_window_call(item.node, statement) != window:
        raise statement.error("this is not the window of the query", item.node, f"the query is over {window}")
    return True
