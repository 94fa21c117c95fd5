"""Joins as the SQL that a Spark user would write, from the description of a test; nothing of the engine is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from support.frames import frame_of
from support.join_catalogs import COLUMNS, STREAMS
from support.join_texts import Asked, Read
from windloom.model import Aggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Any]
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())

#: What Spark has no function for; the oracle alone tells.
WITHOUT_EQUAL = ("top",)
_PICKS = {"min_by": "min", "first": "min", "max_by": "max", "last": "max"}


VERSION_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items() if name != "tick")


def frames_of(spark: SparkSession, rows: Mapping[str, Sequence[Row]]) -> dict[str, DataFrame]:
    """A frame and a view for each stream and relation."""
    frames = {
        name: frame_of(spark, [tuple(row.values()) for row in own], SCHEMA if name in STREAMS else VERSION_SCHEMA)
        for name, own in rows.items()
    }
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    return frames


def spark_rows(spark: SparkSession, asked: Asked, rows: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """`window_end`, groups and outputs of the join, by Spark's SQL over the views of `frames_of`."""
    ticks = {name: [row["tick"] for row in own] for name, own in rows.items() if name in STREAMS}
    return list(spark.sql(spark_join_sql(asked, ticks)).toArrow().to_pylist())


def spark_join_sql(asked: Asked, ticks: Mapping[str, Sequence[int]]) -> str:
    """`ticks` are those of each stream, which decide where landmark windows end."""
    items = [f"{asked.first.alias}.__e AS window_end"]
    items += [f"{alias}.{column} AS g{i}" for i, (alias, column) in enumerate(asked.groups)]
    items += [f"{_aggregate(aggregate)} AS o{i}" for i, aggregate in enumerate(asked.aggregates)]
    by = [f"{asked.first.alias}.__e", *(f"{alias}.{column}" for alias, column in asked.groups)]
    having = "" if asked.having is None else f" HAVING count(*) {asked.having[0]} {asked.having[1]}"
    source = asked.from_sql(lambda read: _source(asked, read, ticks))
    return f"SELECT {', '.join(items)} {source} GROUP BY {', '.join(by)}{having}"


def _source(asked: Asked, read: Read, ticks: Mapping[str, Sequence[int]]) -> str:
    if read.is_relation:
        return read.stream
    last = max((tick for joined in asked.reads if not joined.is_relation for tick in ticks[joined.stream]), default=0)
    last_end = last - (last - asked.end_residue) % asked.slide + asked.slide
    if read.length is None:
        own = f"tick - pmod(tick - {asked.end_residue}, {asked.slide}) + {asked.slide}"
        return f"(SELECT *, explode(sequence({own}, {last_end}L, {asked.slide}L)) AS __e FROM {read.stream})"
    window = asked.window(read)
    where, length = "", window.range_ticks
    if window.slide_ticks > window.range_ticks:  # window() does not know gaps
        within = f"pmod(tick - {window.offset_ticks}, {window.slide_ticks})"
        where, length = f" WHERE {within} < {window.range_ticks}", window.slide_ticks
    texts = (f"'{duration} microseconds'" for duration in (length, window.slide_ticks, window.offset_ticks))
    end = f"unix_micros(window(timestamp_micros(tick), {', '.join(texts)}).start) + {window.range_ticks}"
    source = f"SELECT *, {end} AS __e FROM {read.stream}{where}"
    return f"(SELECT * FROM ({source}) WHERE __e <= {last_end})" if asked.is_landmark else f"({source})"


def _aggregate(aggregate: Aggregate) -> str:
    where = "" if aggregate.where is None else f" FILTER (WHERE {aggregate.where})"
    argument = "*" if aggregate.argument is None else aggregate.argument.sql
    match aggregate.function:
        case function if function in WITHOUT_EQUAL:
            return "NULL"
        case "count_distinct":
            return f"count(DISTINCT {argument}){where}"
        case "quantile":
            return f"percentile({argument}, {aggregate.parameters[0]}){where}"
        case "min_by" | "max_by" | "first" | "last":
            by = f"{argument.split('.')[0]}.tick" if aggregate.by is None else aggregate.by.sql
            values = [each.sql for each in aggregate.picked] or [argument]
            fields = ", ".join(f"{value} AS x{i}" for i, value in enumerate(values))
            ordered = f"CASE WHEN {by} IS NOT NULL THEN struct({by} AS y, {fields}) END"
            return f"({_PICKS[aggregate.function]}({ordered}){where}).x{values.index(argument)}"
        case function:
            return f"{function}({argument}){where}"
