"""Rows that consist of tuples: each is made once, with the ends between which it stands.

The first end of a row is the latest first end of its tuples; its last end is their earliest last end. A row is reported
where it enters, where it leaves, or at every end in between. If only rows that enter are asked for, a round joins the
new tuples of each strand with all tuples of the others: new ⋈ (kept ∪ new) ∪ kept ⋈ new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from windloom.aggregates.aggregator import NativeAggregator
from windloom.aggregates.registry import aggregator_for
from windloom.model.aggregate import Aggregate
from windloom.model.expression import Expression
from windloom.model.rows import Reports, Selection
from windloom.plan.rows import PlannedRows
from windloom.spark.native import component_sql, input_sql
from windloom.spark.rows.sql import Asking, aliased, extreme, joined_sql, strand_sql, within_sql

#: The tuples of a strand that take part.
_ALL, _NEW, _KEPT = "all", "new", "kept"


def lifetimes_sql(asking: Asking, orders: Sequence[Sequence[int]]) -> str:
    """Return the SQL of `window_start`, `window_end`, and the columns of the rows as `c0, c1, …`."""
    pairs = zip(asking.rows.selections, orders, strict=True)
    return " UNION ALL ".join(f"({_reported(asking, _made(asking, *pair))})" for pair in pairs)


def entering_sql(asking: Asking, selection: Selection, order: Sequence[int], columns: Sequence[str]) -> str:
    """Return rows where they enter, with `__first` (the end at which they enter), `__last`, and `columns`."""
    end, conditions = _entering(asking)
    rows_text = _made(asking, selection, order, columns)
    names = ["__last", *(column.rpartition(" AS ")[2] for column in columns)]
    text = f"SELECT {end} AS __end, {', '.join(names)} FROM ({rows_text})"
    return f"SELECT __end AS __first, {', '.join(names)} FROM ({text}) WHERE {' AND '.join(conditions)}"


def _made(asking: Asking, selection: Selection, order: Sequence[int], columns: Sequence[str] | None = None) -> str:
    """Return the SQL of rows with `__first`, `__last`, `__is_new` (some tuple is new) and columns."""
    if asking.follows and asking.rows.reports is Reports.ENTERING:
        parts = (_probing(order, first) for first in order)
        return " UNION ALL ".join(f"({made_sql(asking, selection, part, columns)})" for part in parts)
    return made_sql(asking, selection, [(number, _ALL) for number in order], columns)


def _probing(order: Sequence[int], first: int) -> list[tuple[int, str]]:
    """Return the strands in the order of a look-up: new tuples of one strand look up the others in order.

    The first of several new tuples finds the row.
    """
    position = order.index(first)
    others = [(number, _KEPT if order.index(number) < position else _ALL) for number in order if number != first]
    return [(first, _NEW), *others]


def made_sql(
    asking: Asking, selection: Selection, parts: Sequence[tuple[int, str]], columns: Sequence[str] | None = None
) -> str:
    """Return the join of some tuples of every strand; `columns` replace those of the selection."""
    done: list[int] = []
    text = ""
    for number, which in parts:
        more = {_ALL: (), _NEW: (f"__n{number}",), _KEPT: (f"NOT __n{number}",)}[which]
        strand_text = aliased(selection, number, strand_sql(asking, selection.strands[number], number, more))
        if text:
            conditions = _conditions(selection, done, number)
            text = f"{text} INNER JOIN {strand_text} ON {' AND '.join(conditions)}"
        else:
            text = strand_text
        done.append(number)
    selected = [*_lifetime(asking, done), *(_columns(asking, selection, done) if columns is None else columns)]
    joined = f"SELECT {', '.join(selected)} FROM {text}"
    return f"SELECT * FROM ({joined}) WHERE __first <= __last" if len(done) > 1 else joined


def _conditions(selection: Selection, done: Sequence[int], number: int) -> list[str]:
    """Return all conditions that can be decided when a strand is joined to those before it."""
    known = {*done, number}
    conditions = [
        f"({condition.expression.sql})"
        for condition in selection.conditions
        if set(condition.strands) <= known
        and (number in condition.strands or (not condition.strands and len(done) == 1))
    ]
    for other in done:
        conditions += [
            f"__f{other} <= __l{number}",
            f"__f{number} <= __l{other}",
            *within_sql(selection, other, number),
        ]
    return conditions


def _lifetime(asking: Asking, done: Sequence[int]) -> list[str]:
    firsts, lasts = [f"__f{i}" for i in done], [f"__l{i}" for i in done]
    columns = [f"{extreme('greatest', firsts)} AS __first", f"{extreme('least', lasts)} AS __last"]
    if asking.follows:
        columns.append(f"({' OR '.join(f'__n{i}' for i in done)}) AS __is_new")
    return columns


def _columns(asking: Asking, selection: Selection, done: Sequence[int]) -> list[str]:
    columns = [f"{row_column.expression.sql} AS c{index}" for index, row_column in enumerate(selection.columns)]
    if asking.rows.within:
        ticks = [f"__t{i}" for i in done]
        columns += [f"{extreme('least', ticks)} AS __from", f"{extreme('greatest', ticks)} AS __to"]
    return columns


# ---- reporting ------------------------------------------------------------------------------------------------------


def _reported(asking: Asking, rows_text: str) -> str:
    end, conditions = {
        Reports.STANDING: _standing,
        Reports.ENTERING: _entering,
        Reports.LEAVING: _leaving,
    }[asking.rows.reports](asking)
    text = f"SELECT *, {end} AS __end FROM ({rows_text})"
    if conditions:
        text = f"SELECT * FROM ({text}) WHERE {' AND '.join(conditions)}"
    if asking.rows.reports is Reports.STANDING:
        text = standing_sql(asking, rows_text)
    edges = asking.edges("__end")
    columns = asking.columns
    if asking.rows.tells_end:
        leaves = asking.instant(f"(__last + {asking.rows.window.slide_ticks}L)")
        columns = [*columns, f"{leaves} AS c{len(columns)}"]
    if asking.rows.within:
        edges = [f"{asking.instant('__from')} AS window_start", f"{asking.instant('__to')} AS window_end"]
    return f"SELECT {', '.join([*edges, *columns])} FROM ({text})"


def standing_sql(asking: Asking, rows_text: str) -> str:
    """Return the SQL of each row once for each end at which it stands; `__end` is that end."""
    first, last, slide = asking.span.first, asking.span.last, asking.rows.window.slide_ticks
    begin = "__first" if first is None else f"greatest(__first, {first}L)"
    until = "__last" if last is None else f"least(__last, {last}L)"
    bounded = f"SELECT *, {begin} AS __begin, {until} AS __until FROM ({rows_text})"
    # Without the condition a sequence would go backwards.
    return f"SELECT *, explode(sequence(__begin, __until, {slide}L)) AS __end FROM ({bounded}) WHERE __begin <= __until"


def _standing(asking: Asking) -> tuple[str, list[str]]:
    return "__first", []


def _entering(asking: Asking) -> tuple[str, list[str]]:
    first, last = asking.span.first, asking.span.last
    end = "__first" if first is None else f"greatest(__first, {first}L)"
    return end, ["__end <= __last", *([] if last is None else [f"__end <= {last}L"])]


def _leaving(asking: Asking) -> tuple[str, list[str]]:
    """Return the end and conditions of rows that leave: the window before had them, so they did not come too late for
    it.
    """
    first, last, slide = asking.span.first, asking.span.last, asking.rows.window.slide_ticks
    conditions = [] if last is None else [f"__end <= {last}L"]
    if first is not None:
        had = f" OR (__end = {first}L AND NOT __is_new)" if asking.follows else ""
        conditions.append(f"(__end > {first}L{had})")
    return f"__last + {slide}L", conditions


# Aggregates over rows as SQL: partials of rows by first and last end, or answers at every end.


def partials_sql(asking: Asking, planned: PlannedRows) -> str:
    """Return the SQL of `__first`, `__last`, `g0…`, `f0…`: a row per first end, last end and group."""
    (selection,), (order,) = asking.rows.selections, planned.orders
    asking = replace(asking, rows=replace(asking.rows, reports=Reports.ENTERING))
    groups = [f"{grouping.expression.sql} AS g{i}" for i, grouping in enumerate(planned.query.group_by)]
    read = [
        input_sql(planned_component, tick_sql_of(planned, selection, _read(planned_component.component.argument)))
        for planned_component in planned.components
    ]
    names = {sql: f"x{i}" for i, sql in enumerate(dict.fromkeys(sql for texts in read for sql in texts))}
    columns = [*groups, *(f"{sql} AS {name}" for sql, name in names.items())]
    rows_text = entering_sql(asking, selection, order, columns)
    fields: list[str] = []
    for planned_component, texts in zip(planned.components, read, strict=True):
        assert isinstance(planned_component.aggregator, NativeAggregator)
        fields += component_sql(planned_component, [names[sql] for sql in texts])
    keys = ["__first", "__last", *(f"g{i}" for i in range(len(groups)))]
    selected = [*keys, *(f"{sql} AS f{i}" for i, sql in enumerate(fields))]
    return f"SELECT {', '.join(selected)} FROM ({rows_text}) GROUP BY {', '.join(keys)}"


def answers_sql(asking: Asking, planned: PlannedRows) -> str:
    """Return the SQL of `window_start`, `window_end`, `c0…`: groupings and aggregates, at every end of the span."""
    (selection,), (order,) = asking.rows.selections, planned.orders
    groups = [f"{grouping.expression.sql} AS g{i}" for i, grouping in enumerate(planned.query.group_by)]
    inputs, outputs = _truths(planned, selection)
    columns = ", ".join([f"__e{order[0]} AS __end", *groups, *(f"{sql} AS {name}" for name, sql in inputs.items())])
    rows_text = f"SELECT {columns} FROM {joined_sql(asking, selection, order)}"
    keys = ["__end", *(f"g{i}" for i in range(len(groups)))]
    selected = [*keys, *(f"{sql} AS a{i}" for i, sql in enumerate(outputs))]
    grouped = f"SELECT {', '.join(selected)} FROM ({rows_text}) GROUP BY {', '.join(keys)}"
    shown = [f"g{i} AS c{i}" for i in range(len(groups))]
    shown += [f"a{index} AS c{len(groups) + i}" for i, index in enumerate(planned.columns)]
    return f"SELECT {', '.join([*asking.edges('__end'), *shown])} FROM ({grouped})"


def _truths(planned: PlannedRows, selection: Selection) -> tuple[dict[str, str], list[str]]:
    """Return the expressions read from rows, by name, and every aggregate over them, as Spark itself computes it."""
    inputs: dict[str, str] = {}

    def named(sql: str) -> str:
        return next((name for name, known in inputs.items() if known == sql), None) or _added(inputs, sql)

    outputs = []
    for aggregate in planned.query.aggregates:
        tick = named(tick_sql_of(planned, selection, _read(aggregate.argument)))
        outputs.append(aggregator_for(aggregate, None).truth_sql(_renamed(aggregate, named), tick))
    return inputs, outputs


def _added(inputs: dict[str, str], sql: str) -> str:
    name = f"x{len(inputs)}"
    inputs[name] = sql
    return name


def _renamed(aggregate: Aggregate, named: Callable[[str], str]) -> Aggregate:
    """Return the aggregate over columns that hold its expressions: within the GROUP BY, streams have no names."""

    def column(expression: Expression | None) -> Expression | None:
        return None if expression is None else Expression(named(expression.sql))

    return replace(
        aggregate, argument=column(aggregate.argument), by=column(aggregate.by), where=column(aggregate.where)
    )


def _read(argument: Expression | None) -> Sequence[str]:
    return () if argument is None else argument.columns


def tick_sql_of(planned: PlannedRows, selection: Selection, columns: Sequence[str]) -> str:
    """Return the event time of a row for FIRST and LAST: the latest of the tuples whose columns they take."""
    every = range(selection.joined)
    numbers = [
        number
        for number in every
        if any(column.startswith(f"{selection.strands[number].alias}.") for column in columns)
    ]
    return extreme("greatest", [f"__t{number}" for number in numbers or every])
