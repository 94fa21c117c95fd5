"""Aggregates over rows as SQL: partials of rows by first and last end, or answers at every end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from windloom.aggregates import card_for
from windloom.aggregates.card import NativeCard
from windloom.model.aggregate import Aggregate
from windloom.model.expression import Expression
from windloom.model.rows import Reports, Selection
from windloom.plan.rows import PlannedRows
from windloom.spark.intake.native import component_sql, input_sql
from windloom.spark.rows.ends import joined_sql
from windloom.spark.rows.lifetimes import entering_sql
from windloom.spark.rows.strands import Asking, extreme


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
        assert isinstance(planned_component.card, NativeCard)
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
        outputs.append(card_for(aggregate, None).truth_sql(_renamed(aggregate, named), tick))
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
