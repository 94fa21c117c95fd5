"""One strand as SQL: its tuples, with the ends between which each is in the window of its strand.

Strand i adds the columns `__t{i}` (the tick of the tuple), `__f{i}` and `__l{i}` (the first and the last end at which
it is in the window). If a window before was reported, it also adds `__n{i}`: whether the tuple is new, that is, whether
this round reports its first end, or the window before was reported without it.

A job is one SQL text, so that Spark analyses it once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windloom.durable.tuples import ROUND, TICK
from windloom.model.expression import Expression
from windloom.model.rows import Rows, Selection, Strand
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import Window
from windloom.rounds.rows.spans import RowSpan, needed_from, needed_until


@dataclass(frozen=True, slots=True)
class Asking:
    """A row query and the span that is asked of it.

    `view` returns the name of a view with the tuples of a strand with ticks in `[begin, end)`, and perhaps more; it has
    the columns of the stream and `__tick`, in a stream also `__round`. `instant` makes the SQL of a window column from
    the SQL of ticks. `follows`: the window before was reported, and `__round` shows which tuples it had.
    """

    rows: Rows
    span: RowSpan
    view: Callable[[Strand, int, int], str]
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


def first_sql(window: Window, tick: str) -> str:
    """Return the first end after a tick."""
    return f"({last_sql(window, tick)} + {window.slide_ticks}L)"


def last_sql(window: Window, tick: str) -> str:
    """Return the last end at or before a tick."""
    if window.slide_ticks == 1:
        return f"({tick})"
    return f"({tick} - pmod({tick} - {window.end_ticks}L, {window.slide_ticks}L))"


def strand_sql(asking: Asking, strand: Strand, number: int, more: tuple[str, ...] = ()) -> str:
    """Return the tuples of a strand that a span needs; `more` are further conditions on what is selected."""
    window, span = strand.window, asking.span
    begin, end = needed_from(asking.rows, window, span), needed_until(span)
    conditions = [f"{TICK} IS NOT NULL"]
    # In this form, Spark pushes the conditions down to files.
    conditions += [] if begin == TICK_MIN else [f"{TICK} >= {begin}L"]
    conditions += [] if end == TICK_MAX else [f"{TICK} < {end}L"]
    if strand.where is not None:
        conditions.append(f"CAST(({strand.where.sql}) AS BOOLEAN)")
    last = last_sql(window, f"({TICK} + {window.range_ticks}L)")
    selected = [Expression.of_column(name).sql for name in strand.columns]
    selected += [f"{TICK} AS __t{number}", f"{first_sql(window, TICK)} AS __f{number}", f"{last} AS __l{number}"]
    if asking.follows:
        assert span.first is not None
        is_new = f"{TICK} >= {span.first - window.slide_ticks}L OR {ROUND} > {span.seen}"
        selected.append(f"({is_new}) AS __n{number}")
    text = f"SELECT {', '.join(selected)} FROM {asking.view(strand, begin, end)} WHERE {' AND '.join(conditions)}"
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
