"""Row queries by Spark alone: every tuple once for each of its windows, as Spark's own `window()` makes them.

Rows are joined, compared and combined window by window. A row that consists of tuples is identified by their numbers:
it enters with the first of its windows, and leaves with the end that follows its last window. The pairs of an interval
join are a plain join with a condition on times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.model.query import Query
from windloom.model.rows import Body, Condition, Reports, RowInput, RowQuery, Selection, SetKind
from windloom.model.stream import JoinKind, Stream
from windloom.spark.native import instant_sql, tick_sql
from windloom.spark.verify.windows import WindowedFrame, windowed

_END = "__end"


def row_frame(query: Query, streams: Mapping[str, Stream], frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of a query: `window_start`, `window_end`, and its columns."""
    rows = query.rows
    assert rows is not None
    row_frames = _RowFrames(rows, streams, frames)
    return row_frames.near() if rows.within else row_frames.reported()


def aggregated(query: Query, streams: Mapping[str, Stream], frames: Mapping[str, DataFrame]) -> WindowedFrame:
    """Return the rows that a query aggregates, with their windows; `__w` is the tick at which a window ends."""
    rows = query.rows
    assert rows is not None
    (selection,) = rows.selections
    frame = _RowFrames(rows, streams, frames).joined(selection).withColumn("__w", F.col("__e0"))
    kind = streams[query.streams[0]].window_type
    start = F.expr(instant_sql(f"(__w - {rows.window.range_ticks}L)", kind))
    return WindowedFrame(frame, F.col("__w"), start, F.expr(instant_sql("__w", kind)))


def pair_tick(query: Query, columns: tuple[str, ...]) -> str:
    """Return the event time that FIRST and LAST compare: the latest of the tuples whose columns they take."""
    rows = query.rows
    assert rows is not None
    (selection,) = rows.selections
    every = range(selection.joined)
    numbers = [i for i in every if any(name.startswith(f"{selection.strands[i].alias}.") for name in columns)]
    ticks = [f"__t{i}" for i in numbers or every]
    return ticks[0] if len(ticks) == 1 else f"greatest({', '.join(ticks)})"


@dataclass(frozen=True, slots=True)
class _RowFrames:
    rows: RowQuery
    streams: Mapping[str, Stream]
    frames: Mapping[str, DataFrame]

    # ---- what is reported ---------------------------------------------------------------------------------------

    def reported(self) -> DataFrame:
        names = [f"c{i}" for i in range(len(self.rows.columns))]
        rows = self._by_tuples(names) if self.rows.has_lifetimes else self._by_values(names)
        kind = self.streams[self.rows.streams[0]].window_type
        edges = [f"({_END} - {self.rows.window.range_ticks}L)", _END]
        shown = [F.expr(instant_sql(edge, kind)) for edge in edges]
        return rows.select(*shown, *names).toDF("window_start", "window_end", *self._names)

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self.rows.columns]

    def _by_tuples(self, names: list[str]) -> DataFrame:
        slide = self.rows.window.slide_ticks
        parts = []
        for selection in self.rows.selections:
            ids = [f"__i{i}" for i in range(selection.joined)]
            rows = self.selected(selection, ids)
            if self.rows.reports is not Reports.STANDING:
                entering = self.rows.reports is Reports.ENTERING
                end = F.min(_END) if entering else F.max(_END) + slide
                # Rows of the same tuples are equal, so any of them will do.
                row = F.element_at(F.collect_list(F.struct(*names)), 1).alias("__row")
                rows = rows.groupBy(*ids).agg(end.alias(_END), row).select(_END, "__row.*")
            parts.append(rows.select(_END, *names))
        together = parts[0]
        for part in parts[1:]:
            together = together.unionAll(part)
        return together

    def _by_values(self, names: list[str]) -> DataFrame:
        rows = self._body(self.rows.body).select(_END, *names)
        if self.rows.reports is Reports.STANDING:
            return rows
        shifted = rows.withColumn(_END, F.col(_END) + self.rows.window.slide_ticks)
        return rows.exceptAll(shifted) if self.rows.reports is Reports.ENTERING else shifted.exceptAll(rows)

    def _body(self, body: Body) -> DataFrame:
        if isinstance(body, Selection):
            return self.selected(body, [])
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

    # ---- rows of every window -----------------------------------------------------------------------------------

    def selected(self, selection: Selection, more: list[str]) -> DataFrame:
        columns = [F.expr(row_column.expression.sql).alias(f"c{i}") for i, row_column in enumerate(selection.columns)]
        rows = self.joined(selection).select(F.col("__e0").alias(_END), *columns, *more)
        return rows.distinct() if selection.is_distinct else rows

    def joined(self, selection: Selection) -> DataFrame:
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

    # ---- interval joins -----------------------------------------------------------------------------------------

    def near(self) -> DataFrame:
        (selection,) = self.rows.selections
        rows = self._passing(selection, 0)
        for number, attached in enumerate(selection.attached, 1):
            near = [f"abs(__t{other} - __t{number}) < {attached.within_ticks}L" for other in range(number)]
            rows = rows.join(self._passing(selection, number), F.expr(" AND ".join(near)), "inner")
        for condition in _texts(selection.conditions):
            rows = rows.where(f"CAST({condition} AS BOOLEAN)")
        kind = self.streams[self.rows.streams[0]].window_type
        ticks = ", ".join(f"__t{number}" for number in range(selection.joined))
        edges = [F.expr(instant_sql(f"{which}({ticks})", kind)) for which in ("least", "greatest")]
        columns = [F.expr(row_column.expression.sql) for row_column in selection.columns]
        return rows.select(*edges, *columns).toDF("window_start", "window_end", *self._names)

    def _passing(self, selection: Selection, number: int) -> DataFrame:
        strand = selection.strands[number]
        frame = self._numbered(strand, number)
        if strand.where is not None:
            frame = frame.where(f"CAST({strand.where.sql} AS BOOLEAN)")
        return frame.alias(strand.alias)


def _texts(conditions: tuple[Condition, ...]) -> list[str]:
    return [f"({condition.expression.sql})" for condition in conditions]
