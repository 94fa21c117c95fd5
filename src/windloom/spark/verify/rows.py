"""Row queries by Spark alone: every tuple once for each of its windows, as Spark's own `window()` makes them.

Rows are joined, compared and combined window by window. A row that consists of tuples is identified by their numbers:
it enters with the first of its windows, and leaves with the end that follows its last window. The pairs of an interval
join are a plain join with a condition on times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.model.query import Query
from windloom.model.rows import Body, Condition, Reports, RowInput, RowQuery, Selection, SetKind
from windloom.model.stream import JoinKind, Stream
from windloom.model.types import DataType
from windloom.spark.native import instant_sql, tick_sql
from windloom.spark.verify.windows import WindowedFrame, windowed

_END = "__end"


@dataclass(frozen=True, slots=True)
class RowFrames:
    """The rows of a query, from the frames of its streams."""

    rows: RowQuery
    streams: Mapping[str, Stream]
    frames: Mapping[str, DataFrame]

    @property
    def _kind(self) -> DataType:
        return self.streams[self.rows.streams[0]].window_type

    def aggregated(self) -> WindowedFrame:
        """Return the rows that a query aggregates, with their windows; `__w` is the tick at which a window ends."""
        (selection,) = self.rows.selections
        frame = self._joined(selection).withColumn("__w", F.col("__e0"))
        start = F.expr(instant_sql(f"(__w - {self.rows.window.range_ticks}L)", self._kind))
        return WindowedFrame(frame, F.col("__w"), start, F.expr(instant_sql("__w", self._kind)))

    def reported(self) -> DataFrame:
        """Return `window_start`, `window_end` and the columns of rows that stand in, enter or leave windows."""
        names = [f"c{i}" for i in range(len(self.rows.columns))]
        slide, entering = self.rows.window.slide_ticks, self.rows.reports is Reports.ENTERING
        if self.rows.has_lifetimes:
            parts = []
            for selection in self.rows.selections:
                ids = [f"__i{i}" for i in range(selection.joined)]
                part = self._selected(selection, ids)
                if self.rows.reports is not Reports.STANDING:
                    end = F.min(_END) if entering else F.max(_END) + slide
                    # Rows of the same tuples are equal, so any of them will do.
                    row = F.element_at(F.collect_list(F.struct(*names)), 1).alias("__row")
                    part = part.groupBy(*ids).agg(end.alias(_END), row).select(_END, "__row.*")
                parts.append(part.select(_END, *names))
            rows = reduce(DataFrame.unionAll, parts)
        else:
            rows = self._body(self.rows.body).select(_END, *names)
            if self.rows.reports is not Reports.STANDING:
                shifted = rows.withColumn(_END, F.col(_END) + slide)
                rows = rows.exceptAll(shifted) if entering else shifted.exceptAll(rows)
        edges = [f"({_END} - {self.rows.window.range_ticks}L)", _END]
        shown = [F.expr(instant_sql(edge, self._kind)) for edge in edges]
        columns = (column.name for column in self.rows.columns)
        return rows.select(*shown, *names).toDF("window_start", "window_end", *columns)

    def _body(self, body: Body) -> DataFrame:
        if isinstance(body, Selection):
            return self._selected(body, [])
        left, right = self._body(body.left), self._body(body.right)
        combine = {
            SetKind.UNION_ALL: lambda: left.unionAll(right),
            SetKind.UNION: lambda: left.unionAll(right).distinct(),
            SetKind.EXCEPT_ALL: lambda: left.exceptAll(right),
            SetKind.EXCEPT: lambda: left.subtract(right),
            SetKind.INTERSECT_ALL: lambda: left.intersectAll(right),
            SetKind.INTERSECT: lambda: left.intersect(right),
        }
        return combine[body.kind]()

    def _selected(self, selection: Selection, more: list[str]) -> DataFrame:
        columns = [F.expr(row_column.expression.sql).alias(f"c{i}") for i, row_column in enumerate(selection.columns)]
        rows = self._joined(selection).select(F.col("__e0").alias(_END), *columns, *more)
        return rows.distinct() if selection.is_distinct else rows

    def _joined(self, selection: Selection) -> DataFrame:
        """Return tuples side by side, in the order of the query's text; `__e{i}` is the end, `__t{i}` the tick."""
        rows = self._windowed(selection, 0)
        for number, attached in enumerate(selection.attached, 1):
            conditions = [f"__e0 = __e{number}", *_texts(attached.on)]
            if attached.within_ticks is not None:
                conditions += [f"abs(__t{other} - __t{number}) < {attached.within_ticks}L" for other in range(number)]
            how = "left" if attached.kind is JoinKind.LEFT else "inner"
            rows = rows.join(self._windowed(selection, number), F.expr(" AND ".join(conditions)), how)
        for condition in _texts(selection.conditions):
            rows = rows.where(f"CAST({condition} AS BOOLEAN)")
        for looked in selection.looked:
            first, *others = looked.strands
            other = self._windowed(selection, first)
            for number in others:
                other = other.join(self._windowed(selection, number), F.expr(f"__e{first} = __e{number}"), "inner")
            how = "left_semi" if looked.kind is JoinKind.SEMI else "left_anti"
            conditions = [f"__e0 = __e{first}", *_texts(looked.on)]
            rows = rows.join(other, F.expr(" AND ".join(conditions)), how)
        return rows

    def _windowed(self, selection: Selection, number: int) -> DataFrame:
        strand = selection.strands[number]
        stream = self.streams[strand.stream]
        source = windowed(
            Query("", strand.source, strand.where, (), (), (), None, ""), stream, self._numbered(strand, number)
        )
        rows = source.frame.select("*", source.window).withColumn("__last", source.end)
        ended = tick_sql(Stream("", {"__last": stream.window_type}, "__last"))
        rows = rows.withColumn(f"__e{number}", F.expr(ended)).drop("__w", "__last")
        return rows if len(selection.strands) == 1 else rows.alias(strand.alias)

    def _numbered(self, strand: RowInput, number: int) -> DataFrame:
        tick = tick_sql(self.streams[strand.stream])
        frame = self.frames[strand.stream].withColumn(f"__t{number}", F.expr(tick))
        return frame.withColumn(f"__i{number}", F.monotonically_increasing_id())

    def near(self) -> DataFrame:
        """Return the rows of an interval join, between the earliest and the latest time of their tuples."""
        (selection,) = self.rows.selections
        rows = self._passing(selection, 0)
        for number, attached in enumerate(selection.attached, 1):
            near = [f"abs(__t{other} - __t{number}) < {attached.within_ticks}L" for other in range(number)]
            rows = rows.join(self._passing(selection, number), F.expr(" AND ".join(near)), "inner")
        for condition in _texts(selection.conditions):
            rows = rows.where(f"CAST({condition} AS BOOLEAN)")
        ticks = ", ".join(f"__t{number}" for number in range(selection.joined))
        edges = [F.expr(instant_sql(f"{which}({ticks})", self._kind)) for which in ("least", "greatest")]
        columns = [F.expr(row_column.expression.sql) for row_column in selection.columns]
        names = (column.name for column in self.rows.columns)
        return rows.select(*edges, *columns).toDF("window_start", "window_end", *names)

    def _passing(self, selection: Selection, number: int) -> DataFrame:
        strand = selection.strands[number]
        frame = self._numbered(strand, number)
        if strand.where is not None:
            frame = frame.where(f"CAST({strand.where.sql} AS BOOLEAN)")
        return frame.alias(strand.alias)


def _texts(conditions: tuple[Condition, ...]) -> list[str]:
    return [f"({condition.expression.sql})" for condition in conditions]
