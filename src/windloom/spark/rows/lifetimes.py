"""Rows that are made of tuples: each is made once, with the ends between which it stands.

The first end of a row is the latest first end of its tuples, the last one their earliest last end. A row is reported
where it enters, where it leaves, or at every end between. If only rows that enter are asked for, a round joins what is
new of each strand with what is there of the others: new ⋈ (kept ∪ new) ∪ kept ⋈ new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.model.rows import Reports, Rows, Selection
from windloom.rounds.rows.spans import RowSpan
from windloom.spark.rows.strands import StrandTuples, follows, strand_frame, window_columns
from windloom.spark.unions import union_all

#: Which tuples of a strand take part.
_ALL, _NEW, _KEPT = "all", "new", "kept"


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Makes the rows of one query for one span; `instant` turns SQL of ticks into SQL of window columns."""

    rows: Rows
    tuples: StrandTuples
    span: RowSpan
    instant: Callable[[str], str]

    def frame(self, orders: Sequence[Sequence[int]]) -> DataFrame:
        """`window_start`, `window_end`, and the columns of the rows as `c0, c1, …`."""
        parts = [self._reported(self._made(*pair)) for pair in zip(self.rows.selections, orders, strict=True)]
        return union_all(parts)

    def _made(self, selection: Selection, order: Sequence[int]) -> DataFrame:
        """Rows with `__first`, `__last`, `__is_new` (some tuple is new) and columns."""
        is_told = follows(self.tuples, self.span)
        if is_told and self.rows.reports is Reports.ENTERING and selection.joined > 1:
            made = union_all([self._joined(selection, self._probing(order, first)) for first in order])
        else:
            made = self._joined(selection, [(number, _ALL) for number in order])
            if is_told and self.rows.reports is Reports.ENTERING:
                made = made.where("__is_new")
        return made.where("__first <= __last") if selection.joined > 1 else made

    def _probing(self, order: Sequence[int], first: int) -> list[tuple[int, str]]:
        """New tuples of one strand look up the others in order; pairs of new ones are found by the first of them."""
        place = order.index(first)
        others = [(number, _KEPT if order.index(number) < place else _ALL) for number in order if number != first]
        return [(first, _NEW), *others]

    def _joined(self, selection: Selection, parts: Sequence[tuple[int, str]]) -> DataFrame:
        done: list[int] = []
        frame: DataFrame | None = None
        for number, which in parts:
            own = self._strand(selection, number, which)
            if frame is None:
                frame = own
            else:
                frame = frame.join(own, F.expr(" AND ".join(self._conditions(selection, done, number))), "inner")
            done.append(number)
        assert frame is not None
        return frame.selectExpr(*self._lifetime(selection, done), *self._columns(selection, done))

    def _strand(self, selection: Selection, number: int, which: str) -> DataFrame:
        strand = selection.strands[number]
        alias = strand.alias if selection.joined > 1 else None
        frame = strand_frame(self.rows, strand, number, self.tuples, self.span, alias)
        if which == _NEW:
            return frame.where(f"__n{number}")
        return frame.where(f"NOT __n{number}") if which == _KEPT else frame

    def _conditions(self, selection: Selection, done: Sequence[int], number: int) -> list[str]:
        """All that is decided when a strand is joined to those before it."""
        known = {*done, number}
        found = [
            f"({one.expression.sql})"
            for one in selection.conditions
            if set(one.strands) <= known and (number in one.strands or len(done) == 1)
        ]
        for other in done:
            found += [f"__f{other} <= __l{number}", f"__f{number} <= __l{other}"]
            within = selection.attached[max(other, number) - 1].within_ticks
            if within is not None:
                found += [f"__t{other} < __t{number} + {within}L", f"__t{number} < __t{other} + {within}L"]
        return found

    def _lifetime(self, selection: Selection, done: Sequence[int]) -> list[str]:
        firsts, lasts = [f"__f{i}" for i in done], [f"__l{i}" for i in done]
        found = [f"{_of('greatest', firsts)} AS __first", f"{_of('least', lasts)} AS __last"]
        if follows(self.tuples, self.span):
            found.append(f"({' OR '.join(f'__n{i}' for i in done)}) AS __is_new")
        return found

    def _columns(self, selection: Selection, done: Sequence[int]) -> list[str]:
        found = [f"{one.expression.sql} AS c{place}" for place, one in enumerate(selection.columns)]
        if self.rows.within:
            ticks = [f"__t{i}" for i in done]
            found += [f"{_of('least', ticks)} AS __from", f"{_of('greatest', ticks)} AS __to"]
        return found

    # ---- reporting ----------------------------------------------------------------------------------------------

    def _reported(self, made: DataFrame) -> DataFrame:
        match self.rows.reports:
            case Reports.STANDING:
                found = self._standing(made)
            case Reports.ENTERING:
                found = self._entering(made)
            case Reports.LEAVING:
                found = self._leaving(made)
        columns = [f"c{place}" for place in range(len(self.rows.columns))]
        if self.rows.within:
            edges = [f"{self.instant('__from')} AS window_start", f"{self.instant('__to')} AS window_end"]
        else:
            edges = window_columns(self.rows, "__end", self.instant)
        return found.selectExpr(*edges, *columns)

    def _standing(self, made: DataFrame) -> DataFrame:
        first, last, slide = self.span.first, self.span.last, self.rows.window.slide_ticks
        begin = "__first" if first is None else f"greatest(__first, {first}L)"
        end = "__last" if last is None else f"least(__last, {last}L)"
        made = made.withColumn("__begin", F.expr(begin)).withColumn("__until", F.expr(end))
        made = made.where("__begin <= __until")  # a sequence would go backwards
        return made.withColumn("__end", F.expr(f"explode(sequence(__begin, __until, {slide}L))"))

    def _entering(self, made: DataFrame) -> DataFrame:
        first, last = self.span.first, self.span.last
        made = made.withColumn("__end", F.expr("__first" if first is None else f"greatest(__first, {first}L)"))
        made = made.where("__end <= __last")
        return made if last is None else made.where(f"__end <= {last}L")

    def _leaving(self, made: DataFrame) -> DataFrame:
        """A row that the window before had: not one that came too late for it."""
        first, last, slide = self.span.first, self.span.last, self.rows.window.slide_ticks
        made = made.withColumn("__end", F.expr(f"__last + {slide}L"))
        if first is not None:
            had = f"__end = {first}L AND NOT __late" if follows(self.tuples, self.span) else "FALSE"
            if follows(self.tuples, self.span):
                made = made.withColumnRenamed("__is_new", "__late")
            made = made.where(f"__end > {first}L OR ({had})")
        return made if last is None else made.where(f"__end <= {last}L")


def _of(function: str, operands: Sequence[str]) -> str:
    return operands[0] if len(operands) == 1 else f"{function}({', '.join(operands)})"
