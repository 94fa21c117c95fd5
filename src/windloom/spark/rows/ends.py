"""Rows that depend on the rest of their window, recomputed at every window end.

Every tuple comes once for each end at which it is in the window of its strand, and everything is joined, compared and
combined end by end. Such rows are values: the rows that enter are those that a window has more often than the window
before, and the rows that leave are those that it has less often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windloom.model.join import JoinKind
from windloom.model.rows import Body, Condition, Looked, Reports, Selection
from windloom.spark.rows.strands import Asking, aliased, strand_sql, within_sql


def ends_sql(asking: Asking, orders: Sequence[Sequence[int]]) -> str:
    """Return the SQL of `window_start`, `window_end`, and the columns of the rows as `c0, c1, …`."""
    rows_text = _body(asking, asking.rows.body, iter(orders))
    if asking.rows.reports is Reports.STANDING:
        text = rows_text
    else:
        first, last, slide = asking.span.first, asking.span.last, asking.rows.window.slide_ticks
        columns = ", ".join(asking.columns)
        now = f"SELECT __end, {columns} FROM __made" + ("" if first is None else f" WHERE __end >= {first}L")
        before = f"SELECT __end + {slide}L AS __end, {columns} FROM __made"
        before += "" if last is None else f" WHERE __end + {slide}L <= {last}L"
        more, less = (now, before) if asking.rows.reports is Reports.ENTERING else (before, now)
        text = f"WITH __made AS ({rows_text}) ({more}) EXCEPT ALL ({less})"
    return f"SELECT {', '.join([*asking.edges('__end'), *asking.columns])} FROM ({text})"


def _body(asking: Asking, body: Body, orders: Iterator[Sequence[int]]) -> str:
    """Return the rows of a body: `__end` and the columns."""
    if isinstance(body, Selection):
        columns = [f"{row_column.expression.sql} AS c{index}" for index, row_column in enumerate(body.columns)]
        order = next(orders)
        distinct = "DISTINCT " if body.is_distinct else ""
        selected = ", ".join([f"__e{order[0]} AS __end", *columns])
        return f"SELECT {distinct}{selected} FROM {joined_sql(asking, body, order)}"
    left, right = _body(asking, body.left, orders), _body(asking, body.right, orders)
    return f"({left}) {body.kind} ({right})"


def joined_sql(asking: Asking, selection: Selection, order: Sequence[int]) -> str:
    """Return the text after FROM: the tuples of rows side by side, and conditions; `__e{i}` is the end."""
    text, done = _strand(asking, selection, order[0]), [order[0]]
    has_left = any(attached.kind is JoinKind.LEFT for attached in selection.attached)
    for number in order[1:]:
        attached = selection.attached[number - 1]
        conditions = [f"__e{order[0]} = __e{number}"]
        if not has_left:
            conditions += _decided(selection, done, number)
        for other in done:
            conditions += within_sql(selection, other, number)
        conditions += [f"({condition.expression.sql})" for condition in attached.on]
        how = "LEFT" if attached.kind is JoinKind.LEFT else "INNER"
        text = f"{text} {how} JOIN {_strand(asking, selection, number)} ON {' AND '.join(conditions)}"
        done.append(number)
    for looked in selection.looked:
        text = f"{text} {_looked(asking, selection, looked, order[0])}"
    late = [condition for condition in selection.conditions if has_left or len(condition.strands) < 2]
    where = " AND ".join(f"CAST(({condition.expression.sql}) AS BOOLEAN)" for condition in late)
    return f"{text} WHERE {where}" if where else text


def _looked(asking: Asking, selection: Selection, looked: Looked, first: int) -> str:
    first_number, *others = looked.strands
    text = _strand(asking, selection, first_number)
    for number in others:
        text = f"{text} INNER JOIN {_strand(asking, selection, number)} ON __e{first_number} = __e{number}"
    text = f"({text})" if others else text
    conditions = [f"__e{first} = __e{first_number}", *(f"({condition.expression.sql})" for condition in looked.on)]
    how = "LEFT SEMI" if looked.kind is JoinKind.SEMI else "LEFT ANTI"
    return f"{how} JOIN {text} ON {' AND '.join(conditions)}"


def _decided(selection: Selection, done: Sequence[int], number: int) -> list[str]:
    known = {*done, number}

    def is_decided(condition: Condition) -> bool:
        return len(condition.strands) > 1 and number in condition.strands and set(condition.strands) <= known

    return [f"({condition.expression.sql})" for condition in selection.conditions if is_decided(condition)]


def _strand(asking: Asking, selection: Selection, number: int) -> str:
    """Return the tuples of a strand, once for each end at which they count."""
    strand = selection.strands[number]
    first, last, slide = asking.span.first, asking.span.last, strand.window.slide_ticks
    begin = f"__f{number}"
    if first is not None:
        least = f"{first}L"
        if asking.follows and asking.rows.reports is not Reports.STANDING:
            # The window before is made again as it was reported: without tuples that came later.
            least = f"if(__n{number}, {first}L, {first - slide}L)"
        begin = f"greatest(__f{number}, {least})"
    until = f"__l{number}" if last is None else f"least(__l{number}, {last}L)"
    bounded = f"SELECT *, {begin} AS __b, {until} AS __u FROM ({strand_sql(asking, strand, number)})"
    every = f"SELECT *, explode(sequence(__b, __u, {slide}L)) AS __e{number} FROM ({bounded}) WHERE __b <= __u"
    return aliased(selection, number, every)
