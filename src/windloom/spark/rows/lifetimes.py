"""Rows that consist of tuples: each is made once, with the ends between which it stands.

The first end of a row is the latest first end of its tuples; its last end is their earliest last end. A row is reported
where it enters, where it leaves, or at every end in between. If only rows that enter are asked for, a round joins the
new tuples of each strand with all tuples of the others: new ⋈ (kept ∪ new) ∪ kept ⋈ new.

Aggregates over rows are partials of rows by first and last end, or answers at every end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windloom.aggregates.registry import aggregator_for
from windloom.model.expression import Expression
from windloom.model.rows import Reports, Selection
from windloom.plan.rows import PlannedRows
from windloom.spark.native import component_sql, input_sql
from windloom.spark.rows.sql import RowQuestion, aliased, extreme, joined_sql, strand_sql, within_sql

#: The tuples of a strand that take part.
_ALL, _NEW, _KEPT = "all", "new", "kept"


def lifetimes_sql(question: RowQuestion, orders: Sequence[Sequence[int]]) -> str:
    """Return the SQL of `window_start`, `window_end`, and the columns of the rows as `c0, c1, …`."""
    pairs = zip(question.rows.selections, orders, strict=True)
    return " UNION ALL ".join(f"({_reported(question, _rows_sql(question, *pair))})" for pair in pairs)


def _rows_sql(
    question: RowQuestion, selection: Selection, order: Sequence[int], columns: Sequence[str] | None = None
) -> str:
    """Return the SQL of rows with `__first`, `__last`, `__is_new` (some tuple is new) and columns."""
    if question.follows and question.rows.reports is Reports.ENTERING:
        # New tuples of one strand look up the others in order, so that the first of several new tuples finds the row.
        texts = []
        for position, first in enumerate(order):
            others = [(number, _KEPT) for number in order[:position]]
            others += [(number, _ALL) for number in order[position + 1 :]]
            texts.append(f"({_joined_tuples(question, selection, [(first, _NEW), *others], columns)})")
        return " UNION ALL ".join(texts)
    return _joined_tuples(question, selection, [(number, _ALL) for number in order], columns)


def _joined_tuples(
    question: RowQuestion, selection: Selection, parts: Sequence[tuple[int, str]], columns: Sequence[str] | None
) -> str:
    """Return the join of some tuples of every strand; `columns` replace those of the selection."""
    done: list[int] = []
    text = ""
    for number, which in parts:
        more = {_ALL: (), _NEW: (f"__n{number}",), _KEPT: (f"NOT __n{number}",)}[which]
        strand_text = aliased(selection, number, strand_sql(question, selection.strands[number], number, more))
        if text:
            # All conditions that can be decided when a strand is joined to those before it.
            known = {*done, number}
            conditions = [
                f"({condition.expression.sql})"
                for condition in selection.conditions
                if set(condition.strands) <= known
                and (number in condition.strands or (not condition.strands and len(done) == 1))
            ]
            for other in done:
                conditions += [f"__f{other} <= __l{number}", f"__f{number} <= __l{other}"]
                conditions += within_sql(selection, other, number)
            text = f"{text} INNER JOIN {strand_text} ON {' AND '.join(conditions)}"
        else:
            text = strand_text
        done.append(number)
    firsts, lasts = [f"__f{i}" for i in done], [f"__l{i}" for i in done]
    selected = [f"{extreme('greatest', firsts)} AS __first", f"{extreme('least', lasts)} AS __last"]
    if question.follows:
        selected.append(f"({' OR '.join(f'__n{i}' for i in done)}) AS __is_new")
    if columns is not None:
        selected += columns
    else:
        selected += [f"{column.expression.sql} AS c{index}" for index, column in enumerate(selection.columns)]
        if question.rows.within:
            ticks = [f"__t{i}" for i in done]
            selected += [f"{extreme('least', ticks)} AS __from", f"{extreme('greatest', ticks)} AS __to"]
    joined = f"SELECT {', '.join(selected)} FROM {text}"
    return f"SELECT * FROM ({joined}) WHERE __first <= __last" if len(done) > 1 else joined


def _reported(question: RowQuestion, rows_text: str) -> str:
    """Return the rows once for each end at which they are reported; `__end` is that end."""
    first, last, slide = question.span.first, question.span.last, question.rows.window.slide_ticks
    if question.rows.reports is Reports.STANDING:
        begin = "__first" if first is None else f"greatest(__first, {first}L)"
        until = "__last" if last is None else f"least(__last, {last}L)"
        bounded = f"SELECT *, {begin} AS __begin, {until} AS __until FROM ({rows_text})"
        every = f"explode(sequence(__begin, __until, {slide}L))"
        # Without the condition a sequence would go backwards.
        text = f"SELECT *, {every} AS __end FROM ({bounded}) WHERE __begin <= __until"
    else:
        if question.rows.reports is Reports.ENTERING:
            end, conditions = _entering(question)
        else:
            end, conditions = f"__last + {slide}L", [] if last is None else [f"__end <= {last}L"]
            if first is not None:  # the window before had them, so they did not come too late for it
                had = f" OR (__end = {first}L AND NOT __is_new)" if question.follows else ""
                conditions.append(f"(__end > {first}L{had})")
        text = f"SELECT *, {end} AS __end FROM ({rows_text})"
        if conditions:
            text = f"SELECT * FROM ({text}) WHERE {' AND '.join(conditions)}"
    edges = question.edges("__end")
    columns = question.columns
    if question.rows.tells_end:
        leaves = question.instant(f"(__last + {question.rows.window.slide_ticks}L)")
        columns = [*columns, f"{leaves} AS c{len(columns)}"]
    if question.rows.within:
        edges = [f"{question.instant('__from')} AS window_start", f"{question.instant('__to')} AS window_end"]
    return f"SELECT {', '.join([*edges, *columns])} FROM ({text})"


def _entering(question: RowQuestion) -> tuple[str, list[str]]:
    """Return the end at which rows enter, and the conditions on it."""
    first, last = question.span.first, question.span.last
    end = "__first" if first is None else f"greatest(__first, {first}L)"
    return end, ["__end <= __last", *([] if last is None else [f"__end <= {last}L"])]


def partials_sql(question: RowQuestion, planned: PlannedRows) -> str:
    """Return the SQL of `__first`, `__last`, `g0…`, `f0…`: a row per first end, last end and group."""
    (selection,), (order,) = question.rows.selections, planned.orders
    question = replace(question, rows=replace(question.rows, reports=Reports.ENTERING))
    groups = [f"{grouping.expression.sql} AS g{i}" for i, grouping in enumerate(planned.query.group_by)]
    read = [
        input_sql(planned_component, _tick_sql(selection, planned_component.component.argument))
        for planned_component in planned.components
    ]
    names = {sql: f"x{i}" for i, sql in enumerate(dict.fromkeys(sql for texts in read for sql in texts))}
    columns = [*groups, *(f"{sql} AS {name}" for sql, name in names.items())]
    # Rows where they enter: `__first` is the end at which they do.
    end, conditions = _entering(question)
    shown = ", ".join(["__last", *(column.rpartition(" AS ")[2] for column in columns)])
    entering = f"SELECT {end} AS __end, {shown} FROM ({_rows_sql(question, selection, order, columns)})"
    rows_text = f"SELECT __end AS __first, {shown} FROM ({entering}) WHERE {' AND '.join(conditions)}"
    fields: list[str] = []
    for planned_component, texts in zip(planned.components, read, strict=True):
        fields += component_sql(planned_component, [names[sql] for sql in texts])
    keys = ["__first", "__last", *(f"g{i}" for i in range(len(groups)))]
    selected = [*keys, *(f"{sql} AS f{i}" for i, sql in enumerate(fields))]
    return f"SELECT {', '.join(selected)} FROM ({rows_text}) GROUP BY {', '.join(keys)}"


def answers_sql(question: RowQuestion, planned: PlannedRows) -> str:
    """Return the SQL of `window_start`, `window_end`, `c0…`: groupings and aggregates, at every end of the span."""
    (selection,), (order,) = question.rows.selections, planned.orders
    groups = [f"{grouping.expression.sql} AS g{i}" for i, grouping in enumerate(planned.query.group_by)]
    inputs, outputs = _truths(planned, selection)
    columns = ", ".join([f"__e{order[0]} AS __end", *groups, *(f"{sql} AS {name}" for sql, name in inputs.items())])
    rows_text = f"SELECT {columns} FROM {joined_sql(question, selection, order)}"
    keys = ["__end", *(f"g{i}" for i in range(len(groups)))]
    selected = [*keys, *(f"{sql} AS a{i}" for i, sql in enumerate(outputs))]
    grouped = f"SELECT {', '.join(selected)} FROM ({rows_text}) GROUP BY {', '.join(keys)}"
    shown = [f"g{i} AS c{i}" for i in range(len(groups))]
    shown += [f"a{index} AS c{len(groups) + i}" for i, index in enumerate(planned.columns)]
    return f"SELECT {', '.join([*question.edges('__end'), *shown])} FROM ({grouped})"


def _truths(planned: PlannedRows, selection: Selection) -> tuple[dict[str, str], list[str]]:
    """Return the names of expressions read from rows, and every aggregate over them, as Spark itself computes it.

    The aggregates are over columns that hold their expressions: within the GROUP BY, streams have no names.
    """
    names: dict[str, str] = {}

    def column(expression: Expression | None) -> Expression | None:
        return None if expression is None else Expression(names.setdefault(expression.sql, f"x{len(names)}"))

    outputs = []
    for aggregate in planned.query.aggregates:
        tick = names.setdefault(_tick_sql(selection, aggregate.argument), f"x{len(names)}")
        argument, by, where = map(column, (aggregate.argument, aggregate.by, aggregate.where))
        picked = tuple(each for each in map(column, aggregate.picked) if each is not None)
        renamed = replace(aggregate, argument=argument, by=by, where=where, picked=picked)
        outputs.append(aggregator_for(aggregate, None).truth_sql(renamed, tick))
    return names, outputs


def _tick_sql(selection: Selection, argument: Expression | None) -> str:
    """Return the event time of a row for FIRST and LAST: the latest of the tuples whose columns they take."""
    columns = () if argument is None else argument.columns
    every = range(selection.joined)
    numbers = [
        number
        for number in every
        if any(column.startswith(f"{selection.strands[number].alias}.") for column in columns)
    ]
    return extreme("greatest", [f"__t{number}" for number in numbers or every])
