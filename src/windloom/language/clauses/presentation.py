"""What readers see of the rows: the columns that a text selects, as Spark would name them, and ORDER BY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from windloom.errors import QueryError
from windloom.language.sql.names import WINDOW_COLUMNS
from windloom.language.sql.spark_names import spark_name
from windloom.language.sql.statement import Item, Statement
from windloom.language.sql.terms import Term
from windloom.language.sql.window_calls import is_window_call
from windloom.model import Output
from windloom.model.clauses import Presentation, ShownColumn, SortKey

#: Names that rows and tables of several queries need for themselves.
RESERVED = (*WINDOW_COLUMNS, "query")

#: Where a value of the rows is: an edge of the window, `g{i}` for a grouping, or `o{i}` for an output. None stands for
#: both edges.
Place = str | None


@dataclass(slots=True)
class NamedOutput:
    """An output, its expression, and the node that names it."""

    output: Output
    term: Term
    node: exp.Expr


@dataclass(slots=True)
class Selected:
    """The select list as it is read: outputs of the query, and every item in the order in which it is written."""

    outputs: list[NamedOutput] = field(default_factory=list)
    items: list[tuple[Item, Term | None, Place]] = field(default_factory=list)

    def place_of(self, term: Term) -> str:
        """Return where the value of a term is; one that no item selects becomes a further output."""
        placeholder = term.placeholder
        if placeholder in WINDOW_COLUMNS:
            return placeholder
        if placeholder is not None and placeholder.startswith("__g"):
            return f"g{placeholder[3:]}"
        for index, named in enumerate(self.outputs):
            if named.term.over == term.over:
                return f"o{index}"
        name = term.name or term.sql
        if placeholder is not None:
            output = Output(name, aggregate=int(placeholder[3:]))
        else:
            output = Output(name, expression=term.group_expression())
        self.outputs.append(NamedOutput(output, term, exp.Identifier(this=name)))
        return f"o{len(self.outputs) - 1}"


def shown_name(item: Item, term: Term | None, statement: Statement) -> str:
    """Return the name that Spark gives to the column of an item."""
    if item.alias is not None:
        return item.alias
    if is_window_call(item.node):
        return item.node.name.lower()
    qualifiers = statement.names.qualifiers
    return spark_name(item.node, qualifiers) or (item.node.name if term is None else term.name or term.sql)


def read_order(
    statement: Statement, selected: Selected, bind: Callable[[exp.Expr], Term]
) -> list[tuple[Place, bool, bool]]:
    """Return the keys of ORDER BY: where their value is, whether they descend, whether NULL comes first."""
    order = statement.tree.args.get("order")
    keys: list[tuple[Place, bool, bool]] = []
    for each in [] if order is None else order.expressions:
        if not isinstance(each, exp.Ordered) or each.args.get("with_fill") is not None:
            raise statement.error("cannot read ORDER BY", each, "for example ORDER BY window_start, count(*) DESC")
        is_descending = bool(each.args.get("desc"))
        nulls_first = bool(each.args.get("nulls_first"))
        place = _ordered_place(each.this, statement, selected, bind)
        keys.append((place, is_descending, nulls_first))
    return keys


def _ordered_place(node: exp.Expr, statement: Statement, selected: Selected, bind: Callable[[exp.Expr], Term]) -> Place:
    """Return where the value of a key is; a name of the select list takes precedence over a column, as in Spark."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        position = int(node.this)
        if not 1 <= position <= len(selected.items):
            hint = f"use a position from 1 to {len(selected.items)}, or the name of a column"
            raise statement.error(f"ORDER BY {position}: there is no such column", node, hint)
        return selected.items[position - 1][2]
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        for item, term, place in selected.items:
            if shown_name(item, term, statement).lower() == node.name.lower():
                return place
    reference = statement.window_reference(node)
    if reference is not None:
        return reference if reference in WINDOW_COLUMNS else None
    return selected.place_of(bind(node))


def checked_names(
    names: Sequence[tuple[str, exp.Expr]], statement: Statement, reserved: Sequence[str] = ()
) -> QueryError | None:
    """Return what is wrong with the names of columns; case does not count, as in Spark and in readers of Parquet."""
    seen: set[str] = set()
    for name, node in names:
        if name.lower() in reserved:
            return statement.error(f"the column name '{name}' is reserved", node, "give it another name with AS")
        if name.lower() in seen:
            return statement.error(f"two columns are called '{name}'", node, "give one of them another name with AS")
        seen.add(name.lower())
    return None


def apart(names: Sequence[str]) -> list[str]:
    """Return names for the columns of rows that differ from each other and from those that rows need for themselves."""
    taken, found = {name.lower() for name in RESERVED}, []
    for name in names:
        number, free = 1, name
        while free.lower() in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free.lower())
        found.append(free)
    return found


def presented(
    statement: Statement,
    selected: Selected,
    groups: Sequence[str],
    order: Sequence[tuple[Place, bool, bool]],
    *,
    is_pasted: bool,
) -> Presentation:
    """Return what readers see; `groups` are the names of the grouping columns. Outputs have their final names."""

    def column(place: str) -> str:
        if place in WINDOW_COLUMNS:
            return place
        return groups[int(place[1:])] if place[0] == "g" else selected.outputs[int(place[1:])].output.name

    columns = None
    if is_pasted:
        columns = tuple(
            ShownColumn(shown_name(item, term, statement), None if place is None else column(place))
            for item, term, place in selected.items
        )
    keys: list[SortKey] = []
    for place, is_descending, nulls_first in order:
        places = WINDOW_COLUMNS if place is None else (place,)
        keys += [SortKey(column(each), is_descending, nulls_first) for each in places]
    return Presentation(columns, tuple(keys))
