"""Rows that depend on what else is in a window: made anew at every end.

Every tuple comes once for each end at which it is in the window of its strand, and everything is joined, compared and
combined end by end. Such rows are values: what enters is what a window has more of than the one before, and what
leaves is what it has less of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.model.join import JoinKind
from windloom.model.rows import Body, Condition, Reports, Rows, Selection, SetKind
from windloom.rounds.rows.spans import RowSpan
from windloom.spark.rows.strands import StrandTuples, follows, strand_frame, window_columns

END = "__end"


@dataclass(frozen=True, slots=True)
class ByEnds:
    """Makes the rows of one query for one span."""

    rows: Rows
    tuples: StrandTuples
    span: RowSpan
    instant: Callable[[str], str]

    def frame(self, orders: Sequence[Sequence[int]]) -> DataFrame:
        """`window_start`, `window_end`, and the columns of the rows as `c0, c1, …`."""
        left = iter(orders)
        found = self._reported(self._body(self.rows.body, lambda: next(left)))
        columns = [f"c{place}" for place in range(len(self.rows.columns))]
        return found.selectExpr(*window_columns(self.rows, END, self.instant), *columns)

    # ---- rows at every end --------------------------------------------------------------------------------------

    def _body(self, body: Body, order: Callable[[], Sequence[int]]) -> DataFrame:
        """`__end` and the columns."""
        if isinstance(body, Selection):
            return self.selection(body, order())
        left, right = self._body(body.left, order), self._body(body.right, order)
        match body.kind:
            case SetKind.UNION_ALL:
                return left.unionAll(right)
            case SetKind.UNION:
                return left.unionAll(right).distinct()
            case SetKind.EXCEPT_ALL:
                return left.exceptAll(right)
            case SetKind.EXCEPT:
                return left.subtract(right)
            case SetKind.INTERSECT_ALL:
                return left.intersectAll(right)
            case SetKind.INTERSECT:
                return left.intersect(right)

    def selection(self, selection: Selection, order: Sequence[int]) -> DataFrame:
        made = self.joined(selection, order)
        columns = [f"{one.expression.sql} AS c{place}" for place, one in enumerate(selection.columns)]
        found = made.selectExpr(f"__e{order[0]} AS {END}", *columns)
        return found.distinct() if selection.is_distinct else found

    def joined(self, selection: Selection, order: Sequence[int]) -> DataFrame:
        """The tuples that rows are made of, side by side; `__e{i}` is the end."""
        frame, done = self._strand(selection, order[0]), [order[0]]
        for number in order[1:]:
            attached = selection.attached[number - 1]
            conditions = [f"__e{order[0]} = __e{number}", *self._decided(selection, done, number)]
            conditions += [f"({one.expression.sql})" for one in attached.on]
            how = "left" if attached.kind is JoinKind.LEFT else "inner"
            frame = frame.join(self._strand(selection, number), F.expr(" AND ".join(conditions)), how)
            done.append(number)
        late = [one for one in selection.conditions if not self._is_decided(selection, one)]
        for one in late:
            frame = frame.where(f"CAST({one.expression.sql} AS BOOLEAN)")
        for looked in selection.looked:
            conditions = [f"__e{order[0]} = __e{looked.strands[0]}"]
            other = self._strand(selection, looked.strands[0])
            for number in looked.strands[1:]:
                other = other.join(
                    self._strand(selection, number), F.expr(f"__e{looked.strands[0]} = __e{number}"), "inner"
                )
            conditions += [f"({one.expression.sql})" for one in looked.on]
            how = "left_semi" if looked.kind is JoinKind.SEMI else "left_anti"
            frame = frame.join(other, F.expr(" AND ".join(conditions)), how)
        return frame

    def _is_decided(self, selection: Selection, one: Condition) -> bool:
        """Whether a condition is part of joins; not where a strand of it may be absent from a row."""
        has_left = any(each.kind is JoinKind.LEFT for each in selection.attached)
        return not has_left and len(one.strands) > 1

    def _decided(self, selection: Selection, done: Sequence[int], number: int) -> list[str]:
        known = {*done, number}
        found = [
            f"({one.expression.sql})"
            for one in selection.conditions
            if self._is_decided(selection, one) and number in one.strands and set(one.strands) <= known
        ]
        for other in done:
            within = selection.attached[max(other, number) - 1].within_ticks
            if within is not None:
                found += [f"__t{other} < __t{number} + {within}L", f"__t{number} < __t{other} + {within}L"]
        return found

    def _strand(self, selection: Selection, number: int) -> DataFrame:
        """The tuples of a strand, once for each end at which they count."""
        strand = selection.strands[number]
        frame = strand_frame(self.rows, strand, number, self.tuples, self.span, None)
        first, last, slide = self.span.first, self.span.last, strand.window.slide_ticks
        begin = f"__f{number}"
        if first is not None:
            least = f"{first}L"
            if self._looks_back:
                # The window before is made again as it was reported: without what came later.
                least = f"if({self._is_late(number)}, {first}L, {first - slide}L)"
            begin = f"greatest(__f{number}, {least})"
        end = f"__l{number}" if last is None else f"least(__l{number}, {last}L)"
        frame = frame.withColumn("__b", F.expr(begin)).withColumn("__u", F.expr(end)).where("__b <= __u")
        frame = frame.withColumn(f"__e{number}", F.expr(f"explode(sequence(__b, __u, {slide}L))"))
        frame = frame.drop("__b", "__u", f"__f{number}", f"__l{number}", f"__n{number}")
        return frame if len(selection.strands) == 1 else frame.alias(strand.alias)

    def _is_late(self, number: int) -> str:
        """Tuples whose first end is before the span and that are new all the same have missed the window before."""
        return f"__n{number}"

    @property
    def _looks_back(self) -> bool:
        return self.rows.reports is not Reports.STANDING and follows(self.tuples, self.span)

    # ---- reporting ----------------------------------------------------------------------------------------------

    def _reported(self, made: DataFrame) -> DataFrame:
        if self.rows.reports is Reports.STANDING:
            return made
        first, last, slide = self.span.first, self.span.last, self.rows.window.slide_ticks
        columns = [f"c{place}" for place in range(len(self.rows.columns))]
        now = made if first is None else made.where(f"{END} >= {first}L")
        before = made.selectExpr(f"{END} + {slide}L AS {END}", *columns)
        if last is not None:
            before = before.where(f"{END} <= {last}L")
        entering = self.rows.reports is Reports.ENTERING
        return now.exceptAll(before) if entering else before.exceptAll(now)
