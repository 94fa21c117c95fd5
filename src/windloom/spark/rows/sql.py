"""Strands as SQL, and rows that depend on the rest of their window, recomputed at every window end.

A strand gives its tuples, with the ends between which each is in the window of the strand. Strand i adds the columns
`__t{i}` (the tick of the tuple), `__f{i}` and `__l{i}` (the first and the last end at which it is in the window). If a
window before was reported, it also adds `__n{i}`: whether the tuple is new, that is, whether this round reports its
first end, or the window before was reported without it.

If rows depend on the rest of their window, every tuple comes once for each end at which it is in the window of its
strand, and everything is joined, compared and combined end by end. Such rows are values: the rows that enter are those
that a window has more often than the window before, and the rows that leave are those that it has less often.

A job is one SQL text, so that Spark analyses it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from windloom.checkpoint.tuple_files import ROUND, TICK
from windloom.model.expression import Expression
from windloom.model.rows import Body, Reports, RowInput, RowQuery, Selection
from windloom.model.stream import JoinKind
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import Window
from windloom.state.tuple_store import RowSpan, needed_from, needed_until


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A row query and the span that is asked of it.

    `view` returns the name of a view with the tuples of a strand with ticks in `[begin, end)`, and perhaps more; it has
    the columns of the stream and `__tick`, in a stream also `__round`. `instant` makes the SQL of a window column from
    the SQL of ticks. `follows`: the window before was reported, and `__round` shows which tuples it had.
    """

    rows: RowQuery
    span: RowSpan
    view: Callable[[RowInput, int, int], str]
    instant: Callable[[str], str]
    follows: bool

    def edges(self, end: str) -> list[str]:
        """Return `window_start` and `window_end` of rows whose window ends at a tick."""
        start = f"({end} - {self.rows.window.range_ticks}L)"
        return [f"{self.instant(start)} AS window_start", f"{self.instant(end)} AS window_end"]

    @property
    def columns(self) -> list[str]:
        """The names of the columns of rows within the text."""
        return [f"c{index}" for index in range(len(self.rows.columns))]


def _last_sql(window: Window, tick: str) -> str:
    """Return the last end at or before a tick."""
    if window.slide_ticks == 1:
        return f"({tick})"
    return f"({tick} - pmod({tick} - {window.end_ticks}L, {window.slide_ticks}L))"


def strand_sql(question: RowQuestion, strand: RowInput, number: int, more: tuple[str, ...] = ()) -> str:
    """Return the tuples of a strand that a span needs; `more` are further conditions on what is selected."""
    window, span = strand.window, question.span
    begin, end = needed_from(question.rows, window, span), needed_until(span)
    conditions = [f"{TICK} IS NOT NULL"]
    # In this form, Spark pushes the conditions down to files.
    conditions += [] if begin == TICK_MIN else [f"{TICK} >= {begin}L"]
    conditions += [] if end == TICK_MAX else [f"{TICK} < {end}L"]
    if strand.where is not None:
        conditions.append(f"CAST(({strand.where.sql}) AS BOOLEAN)")
    first = f"({_last_sql(window, TICK)} + {window.slide_ticks}L)"
    last = _last_sql(window, f"({TICK} + {window.range_ticks}L)")
    selected = [Expression.of_column(name).sql for name in strand.columns]
    selected += [f"{TICK} AS __t{number}", f"{first} AS __f{number}", f"{last} AS __l{number}"]
    if question.follows:
        assert span.first is not None
        is_new = f"{TICK} >= {span.first - window.slide_ticks}L OR {ROUND} > {span.seen}"
        selected.append(f"({is_new}) AS __n{number}")
    text = f"SELECT {', '.join(selected)} FROM {question.view(strand, begin, end)} WHERE {' AND '.join(conditions)}"
    if window.slide_ticks > window.range_ticks:
        more = (*more, f"__f{number} <= __l{number}")  # other tuples lie in a gap between windows
    return f"SELECT * FROM ({text}) WHERE {' AND '.join(more)}" if more else text


def aliased(selection: Selection, number: int, text: str) -> str:
    """Return a strand under the name by which expressions know it."""
    alias = selection.strands[number].alias if len(selection.strands) > 1 else f"__s{number}"
    return f"({text}) AS {Expression.of_column(alias).sql}"


def within_sql(selection: Selection, left: int, right: int) -> list[str]:
    """Return conditions on how far apart the tuples of two strands may lie."""
    ticks = selection.attached[max(left, right) - 1].within_ticks
    if ticks is None:
        return []
    return [f"__t{left} < __t{right} + {ticks}L", f"__t{right} < __t{left} + {ticks}L"]


def extreme(function: str, operands: list[str]) -> str:
    """Return `greatest` or `least` of one or more operands."""
    return operands[0] if len(operands) == 1 else f"{function}({', '.join(operands)})"


def ends_sql(question: RowQuestion, orders: Sequence[Sequence[int]]) -> str:
    """Return the SQL of `window_start`, `window_end`, and the columns of the rows as `c0, c1, …`."""
    rows_text = _body(question, question.rows.body, iter(orders))
    if question.rows.reports is Reports.STANDING:
        text = rows_text
    else:
        first, last, slide = question.span.first, question.span.last, question.rows.window.slide_ticks
        columns = ", ".join(question.columns)
        now = f"SELECT __end, {columns} FROM __made" + ("" if first is None else f" WHERE __end >= {first}L")
        before = f"SELECT __end + {slide}L AS __end, {columns} FROM __made"
        before += "" if last is None else f" WHERE __end + {slide}L <= {last}L"
        more, less = (now, before) if question.rows.reports is Reports.ENTERING else (before, now)
        text = f"WITH __made AS ({rows_text}) ({more}) EXCEPT ALL ({less})"
    return f"SELECT {', '.join([*question.edges('__end'), *question.columns])} FROM ({text})"


def _body(question: RowQuestion, body: Body, orders: Iterator[Sequence[int]]) -> str:
    """Return the rows of a body: `__end` and the columns."""
    if isinstance(body, Selection):
        columns = [f"{row_column.expression.sql} AS c{index}" for index, row_column in enumerate(body.columns)]
        order = next(orders)
        distinct = "DISTINCT " if body.is_distinct else ""
        selected = ", ".join([f"__e{order[0]} AS __end", *columns])
        return f"SELECT {distinct}{selected} FROM {joined_sql(question, body, order)}"
    left, right = _body(question, body.left, orders), _body(question, body.right, orders)
    return f"({left}) {body.kind} ({right})"


def joined_sql(question: RowQuestion, selection: Selection, order: Sequence[int]) -> str:
    """Return the text after FROM: the tuples of rows side by side, and conditions; `__e{i}` is the end."""
    text, done = _strand(question, selection, order[0]), [order[0]]
    has_left = any(attached.kind is JoinKind.LEFT for attached in selection.attached)
    for number in order[1:]:
        attached = selection.attached[number - 1]
        conditions = [f"__e{order[0]} = __e{number}"]
        if not has_left:
            conditions += [
                f"({condition.expression.sql})"
                for condition in selection.conditions
                if len(condition.strands) > 1 and number in condition.strands
                if set(condition.strands) <= {*done, number}
            ]
        for other in done:
            conditions += within_sql(selection, other, number)
        conditions += [f"({condition.expression.sql})" for condition in attached.on]
        how = "LEFT" if attached.kind is JoinKind.LEFT else "INNER"
        text = f"{text} {how} JOIN {_strand(question, selection, number)} ON {' AND '.join(conditions)}"
        done.append(number)
    for looked in selection.looked:
        first, *others = looked.strands
        rows_text = _strand(question, selection, first)
        for number in others:
            rows_text += f" INNER JOIN {_strand(question, selection, number)} ON __e{first} = __e{number}"
        conditions = [f"__e{order[0]} = __e{first}", *(f"({condition.expression.sql})" for condition in looked.on)]
        how = "LEFT SEMI" if looked.kind is JoinKind.SEMI else "LEFT ANTI"
        text += f" {how} JOIN {f'({rows_text})' if others else rows_text} ON {' AND '.join(conditions)}"
    late = [condition for condition in selection.conditions if has_left or len(condition.strands) < 2]
    where = " AND ".join(f"CAST(({condition.expression.sql}) AS BOOLEAN)" for condition in late)
    return f"{text} WHERE {where}" if where else text


def _strand(question: RowQuestion, selection: Selection, number: int) -> str:
    """Return the tuples of a strand, once for each end at which they count."""
    strand = selection.strands[number]
    first, last, slide = question.span.first, question.span.last, strand.window.slide_ticks
    begin = f"__f{number}"
    if first is not None:
        least = f"{first}L"
        if question.follows and question.rows.reports is not Reports.STANDING:
            # The window before is made again as it was reported: without tuples that came later.
            least = f"if(__n{number}, {first}L, {first - slide}L)"
        begin = f"greatest(__f{number}, {least})"
    until = f"__l{number}" if last is None else f"least(__l{number}, {last}L)"
    bounded = f"SELECT *, {begin} AS __b, {until} AS __u FROM ({strand_sql(question, strand, number)})"
    every = f"SELECT *, explode(sequence(__b, __u, {slide}L)) AS __e{number} FROM ({bounded}) WHERE __b <= __u"
    return aliased(selection, number, every)
