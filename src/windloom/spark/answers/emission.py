"""EMIT CHANGES, EMIT EMPTY and EMIT EARLY by Spark itself, over answers of a batch run that Spark holds.

Edges of windows are ticks here; `until` is the end of the last window that is reported.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from windloom.model.emission import AS_OF, CHANGE, REPORT
from windloom.model.query import Query
from windloom.plan.physical import Planned, Shape
from windloom.spark.frames import quoted

#: Aggregates that are 0 over no rows.
_COUNTS = ("count", "approx_count_distinct")


def filled(rows: DataFrame, planned: Planned, shape: Shape, until: int) -> DataFrame:
    """The rows of a query as the step made them, with a row for every window of a group from its first one on."""
    window, keys = planned.query.window, [quoted(name) for name, _ in shape.groups]
    slide = window.slide_ticks
    first = rows.groupBy(*keys).agg(F.min("window_end").alias("__first"))
    last = F.expr(f"__first + ({until}L - __first) DIV {slide}L * {slide}L")
    ends = first.select(*keys, F.explode(F.sequence("__first", last, F.lit(slide).cast("long"))).alias("__end"))
    same = [F.col(f"__e.{key}").eqNullSafe(F.col(f"__r.{key}")) for key in keys]
    by = reduce(and_, same, F.col("__e.__end") == F.col("__r.window_end"))
    joined = ends.alias("__e").join(rows.alias("__r"), by, "left")
    columns = [
        F.expr(f"__e.__end - {window.range_ticks}L").alias("window_start"),
        F.col("__e.__end").alias("window_end"),
    ]
    columns += [F.col(f"__e.{key}") for key in keys]
    for place, (name, kind) in enumerate(shape.columns):
        is_count = planned.query.aggregates[planned.columns[place]].function in _COUNTS
        value = F.col(f"__r.{quoted(name)}")
        columns.append((F.coalesce(value, F.lit(0).cast(kind.name)) if is_count else value).alias(name))
    return joined.select(*columns)


def all_final(rows: DataFrame) -> DataFrame:
    """The finished rows of a query that may report early rows, marked as final, because all windows are closed."""
    return rows.withColumns({REPORT: F.lit("final"), AS_OF: F.lit(None).cast(rows.schema["window_end"].dataType)})


def changed(rows: DataFrame, query: Query, until: int) -> DataFrame:
    """The changes from window to window of the finished rows of a query."""
    window, names = query.window, rows.columns[2:]
    keys = [quoted(grouping.name) for grouping in query.group_by]
    values = [quoted(name) for name in names[len(keys) :]]
    ordered = Window.partitionBy(*keys).orderBy("window_end")
    slide, value = window.slide_ticks, F.struct(*values)
    compared = rows.select(
        "*",
        (F.lag("window_end").over(ordered) + slide).eqNullSafe(F.col("window_end")).alias("__follows"),
        F.lag(value).over(ordered).eqNullSafe(value).alias("__same"),
        F.lead("window_end").over(ordered).eqNullSafe(F.col("window_end") + slide).alias("__goes_on"),
    )
    kind = F.when(F.col("__follows"), "update").otherwise("insert").alias(CHANGE)
    told = compared.where("NOT (__follows AND __same)").select(*rows.columns, kind)
    gone = compared.where(f"NOT __goes_on AND window_end + {slide}L <= {until}L")
    moved = 0 if window.extent_ticks is None else slide
    columns: list[Column] = [F.expr(f"window_start + {moved}L"), F.expr(f"window_end + {slide}L"), *map(F.col, keys)]
    columns += [F.lit(None) for _ in values]
    return told.union(gone.select(*columns, F.lit("delete")))
