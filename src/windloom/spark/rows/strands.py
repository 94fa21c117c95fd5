"""The tuples of one strand as a frame, with the ends between which each is in the window of its strand.

Strand i adds the columns `__t{i}` (the tick of the tuple), `__f{i}` and `__l{i}` (the first and the last end at which it
is in the window), and in a stream `__n{i}`: whether it is new, that is, whether its first end is one that this round
reports, or the window before was reported without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.durable.tuples import ROUND, TICK
from windloom.model.expression import Expression
from windloom.model.rows import Reports, Rows, Strand
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import Window
from windloom.rounds.rows.spans import RowSpan, needed_from, needed_until


@dataclass(frozen=True, slots=True)
class StrandTuples:
    """Gives tuples of a strand whose ticks are in `[from, until)`: its columns, `__tick`, and in a stream `__round`."""

    frame: Callable[[Strand, int, int], DataFrame]
    has_rounds: bool


def first_sql(window: Window, tick: str) -> str:
    """The first end behind a tick."""
    return f"({last_sql(window, tick)} + {window.slide_ticks}L)"


def last_sql(window: Window, tick: str) -> str:
    """The last end at or before a tick."""
    if window.slide_ticks == 1:
        return f"({tick})"
    return f"({tick} - pmod({tick} - {window.end_ticks}L, {window.slide_ticks}L))"


def strand_frame(
    rows: Rows, strand: Strand, number: int, tuples: StrandTuples, span: RowSpan, alias: str | None
) -> DataFrame:
    """The tuples of a strand that a span needs, under its alias."""
    window = strand.window
    begin, end = needed_from(rows, window, span), needed_until(span)
    frame = tuples.frame(strand, begin, end)
    if strand.where is not None:
        frame = frame.where(f"CAST({strand.where.sql} AS BOOLEAN)")
    # In this form Spark pushes them down to files.
    if begin != TICK_MIN:
        frame = frame.where(f"{TICK} >= {begin}L")
    if end != TICK_MAX:
        frame = frame.where(f"{TICK} < {end}L")
    own = [Expression.of_column(name).sql for name in strand.columns]
    last = last_sql(window, f"({TICK} + {window.range_ticks}L)")
    added = [f"{TICK} AS __t{number}", f"{first_sql(window, TICK)} AS __f{number}", f"{last} AS __l{number}"]
    if tuples.has_rounds and span.follows:
        is_new = f"{TICK} >= {_before(span, window)}L OR {ROUND} > {span.seen}"
        added.append(f"({is_new}) AS __n{number}")
    frame = frame.selectExpr(*own, *added)
    if window.slide_ticks > window.range_ticks:
        frame = frame.where(f"__f{number} <= __l{number}")  # others lie in a gap between windows
    return frame if alias is None else frame.alias(alias)


def _before(span: RowSpan, window: Window) -> int:
    """The end before the first that is reported: tuples behind it have their first end in the span."""
    assert span.first is not None
    return span.first - window.slide_ticks


def follows(tuples: StrandTuples, span: RowSpan) -> bool:
    """Whether tuples are told apart by whether they are new."""
    return tuples.has_rounds and span.follows


def window_columns(rows: Rows, end: str, instant: Callable[[str], str]) -> list[str]:
    """`window_start` and `window_end` of rows whose window ends at a tick."""
    start = f"({end} - {rows.window.range_ticks}L)"
    return [f"{instant(start)} AS window_start", f"{instant(end)} AS window_end"]


def reports_entering(rows: Rows) -> bool:
    return rows.reports is Reports.ENTERING


def no_rows(frame: DataFrame) -> DataFrame:
    return frame.where(F.lit(False))
