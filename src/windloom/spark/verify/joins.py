"""A join by Spark alone: every side's tuples once for each end of a window, joined on ends and keys, pair by pair.

A relation has no ends: its rows are joined on keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.aggregates.aggregator import EXACT
from windloom.model.aggregate import Aggregate
from windloom.model.join import Join, Link, Side, SumOfProducts
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.model.windows import LandmarkWindow
from windloom.spark.native import instant_sql, tick_sql
from windloom.spark.verify.windows import Bounds, WindowedFrame, windowed

_HOW = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}


def joined(query: Query, streams: Mapping[str, Stream], frames: Mapping[str, DataFrame]) -> WindowedFrame:
    """Return the rows of a join with their windows; `__w` is the tick at which a window ends."""
    join = query.join
    assert join is not None
    bounds = _bounds(join, streams, frames)
    frame = _Frames(join, streams, frames, bounds).below(0).withColumn("__w", F.col("__e0"))
    starts = [side_start for side in join.sides if (side_start := _start(side, bounds)) is not None]
    kind = streams[join.streams[0]].window_type
    start = starts[0] if len(starts) == 1 else f"least({', '.join(starts)})"
    return WindowedFrame(frame, F.col("__w"), F.expr(instant_sql(start, kind)), F.expr(instant_sql("__w", kind)))


def size_of(aggregate: Aggregate, query: Query) -> str | None:
    """Return the sum of the magnitudes of the terms of a sum over pairs; None if the aggregate is not such a sum.

    A sum of differences is answered as a difference of sums, so its error is relative to their terms.
    """
    join = query.join
    if join is None or aggregate.function not in ("sum", "avg"):
        return None
    index = query.components.index(aggregate.components[0])
    folded = join.folded[index] if index < len(join.folded) else None
    if not isinstance(folded, SumOfProducts):
        return None
    terms = []
    for product in folded.products:
        sides = enumerate(zip(join.sides, product.factors, strict=True))
        sums = [(number, factor) for number, (side, factor) in sides if side.components[factor].kind == "sum"]
        terms.append(" * ".join(f"coalesce(__m{number}_{factor}, 0D)" for number, factor in sums) or "1D")
    size = " + ".join(terms)
    if aggregate.where is not None:
        size = f"CASE WHEN CAST({aggregate.where.sql} AS BOOLEAN) THEN {size} END"
    return f"{aggregate.function}({size})" if folded.products else EXACT


def _bounds(join: Join, streams: Mapping[str, Stream], frames: Mapping[str, DataFrame]) -> dict[str, Bounds]:
    """Return, for landmark windows, the first tick of each stream and the last tick of all streams."""
    if not any(isinstance(side.window, LandmarkWindow) for side in join.sides):
        return {}
    ticks_by_stream = {}
    for name in join.streams:
        tick = tick_sql(streams[name])
        ticks_by_stream[name] = frames[name].selectExpr(f"min({tick}) AS first", f"max({tick}) AS last").collect()[0]
    last = max((row["last"] for row in ticks_by_stream.values() if row["last"] is not None), default=None)
    return {name: Bounds(row["first"], last) for name, row in ticks_by_stream.items()}


def _start(side: Side, bounds: Mapping[str, Bounds]) -> str | None:
    """Return the tick at which the window of a side begins; None if it has none."""
    if side.is_relation:
        return None
    if not isinstance(side.window, LandmarkWindow):
        return f"__w - {side.window.range_ticks}L"
    first = bounds[side.source.streams[0]].first
    return None if first is None else f"{side.window.last_start(first)}L"


@dataclass(frozen=True, slots=True)
class _Frames:
    join: Join
    streams: Mapping[str, Stream]
    frames: Mapping[str, DataFrame]
    bounds: Mapping[str, Bounds]

    def below(self, number: int) -> DataFrame:
        """Return a side, joined with its children and everything below them."""
        frame = self._own(number)
        for link in self.join.links:
            if link.parent == number:
                frame = self._linked(frame, link)
        return frame

    def _own(self, number: int) -> DataFrame:
        """Return the tuples of one side under its alias, once for each of their ends; side i adds columns `__…i`.

        `__e` is the end, `__t` the tick of the tuple, `__k` are its grouping columns and `__m` magnitudes of sums.
        """
        side = self.join.sides[number]
        if side.is_relation:
            return self._version(number)
        stream, frame = self.streams[side.source.stream], self.frames[side.source.stream]
        bounds = self.bounds.get(side.source.streams[0])
        source = windowed(Query("", side.source, side.where, (), (), (), None, ""), stream, frame, bounds)
        rows = source.frame.select("*", source.window).withColumn("__end", source.end)
        ended = tick_sql(Stream("", {"__end": stream.window_type}, "__end"))
        added = {f"__e{number}": ended, f"__t{number}": tick_sql(stream), **_read(number, side)}
        rows = rows.withColumns({name: F.expr(sql) for name, sql in added.items()})
        if bounds is not None and bounds.last is not None:
            last = self.join.window.last_start(bounds.last) + self.join.window.slide_ticks
            rows = rows.where(f"__e{number} <= {last}L")
        return rows.drop("__w", "__end").alias(side.alias)

    def _version(self, number: int) -> DataFrame:
        """Return all rows of a relation; once for each end if there are streams below it."""
        side = self.join.sides[number]
        rows = self.frames[side.source.stream]
        rows = rows if side.where is None else rows.where(side.where.sql)
        rows = rows.withColumns({name: F.expr(sql) for name, sql in _read(number, side).items()})
        if self._has_ends(number):
            ends = self._own(0).select(F.col("__e0").alias(f"__e{number}")).distinct()
            rows = rows.crossJoin(ends)
        return rows.alias(side.alias)

    def _has_ends(self, number: int) -> bool:
        """Return whether a side, or a side below it, is a stream."""
        below = (link.child for link in self.join.links if link.parent == number)
        return not self.join.sides[number].is_relation or any(map(self._has_ends, below))

    def _linked(self, frame: DataFrame, link: Link) -> DataFrame:
        parent, child = link.parent, link.child
        conditions = [f"__e{parent} = __e{child}"] if self._has_ends(child) else []
        for pair in link.keys:
            sign = "<=>" if pair.null_safe else "="
            conditions.append(f"__k{parent}_{pair.parent} {sign} __k{child}_{pair.child}")
        other = self.below(child)
        if link.residual is not None:
            # Grouping columns also have the names that residual conditions use.
            numbers = range(len(self.join.sides[parent].group_by)), range(len(self.join.sides[child].group_by))
            frame = frame.withColumns({f"__p{i}": F.col(f"__k{parent}_{i}") for i in numbers[0]})
            other = other.withColumns({f"__c{i}": F.col(f"__k{child}_{i}") for i in numbers[1]})
            conditions.append(f"CAST({link.residual.sql} AS BOOLEAN)")
        on = " AND ".join(f"({condition})" for condition in conditions)
        linked = frame.join(other, F.expr(on), _HOW[link.kind])
        names = [name for name in linked.columns if name.startswith(("__p", "__c"))]
        return linked.drop(*names)


def _read(number: int, side: Side) -> dict[str, str]:
    """Return the grouping columns of a side, and the magnitudes of what it sums."""
    columns = {f"__k{number}_{i}": expression.sql for i, expression in enumerate(side.group_by)}
    for i, component in enumerate(side.components):
        if component.kind == "sum" and component.argument is not None:
            columns[f"__m{number}_{i}"] = f"abs(CAST({component.argument.sql} AS DOUBLE))"
    return columns


def with_enriched(
    query: Query, streams: Mapping[str, Stream], frames: Mapping[str, DataFrame]
) -> tuple[dict[str, Stream], dict[str, DataFrame]]:
    """Return streams and frames by name, including enriched streams, joined as a Spark user would write it."""
    every, frames_by_name = dict(streams), dict(frames)
    for stream in query.enriched:
        frame = frames[stream.base]
        for enrichment in stream.enrichments:
            other = frames[enrichment.relation]
            other = other.toDF(*(f"{enrichment.label}.{name}" for name in other.columns))
            frame = frame.join(other, on=F.expr(enrichment.on.sql), how=_HOW[enrichment.kind])
        every[stream.name], frames_by_name[stream.name] = stream, frame
    return every, frames_by_name
