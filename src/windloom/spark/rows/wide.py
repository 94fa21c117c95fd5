"""Row queries of a batch run on executors: Spark makes their rows and holds them with all other answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from windloom.plan.physical import Plan
from windloom.rounds.rows.spans import AskedRows, RowSpan
from windloom.spark.answers.executors import WideAnswers
from windloom.spark.rows.batch import batch_views
from windloom.spark.rows.job import TupleViews, rows_sql


def with_rows(wide: WideAnswers, plan: Plan, frames: Mapping[str, DataFrame]) -> WideAnswers:
    """Return all answers, including those of row queries, which one more job makes and counts."""
    if not plan.rows:
        return wide
    asked = [AskedRows(planned, RowSpan()) for planned in plan.rows]
    views = batch_views({stream.name: stream for stream in plan.streams}, frames, asked)
    rows = views.analysed(" UNION ALL ".join(_wide_sql(wide, asked_rows, views) for asked_rows in asked)).persist()
    totals = replace(wide.totals, rows=wide.totals.rows + rows.count())
    return replace(wide, frame=wide.frame.unionAll(rows), persisted=(*wide.persisted, rows), totals=totals)


def _wide_sql(wide: WideAnswers, asked: AskedRows, views: TupleViews) -> str:
    """Return the rows of one query, with the columns of the frame of all answers."""
    planned = asked.planned
    sql_by_name = {slot: f"c{index}" for index, slot in enumerate(wide.slots[planned.shape])}
    sql_by_name |= {"shape": str(planned.shape), "query": str(wide.queries.index(planned.name))}
    sql_by_name |= {edge: edge for edge in ("window_start", "window_end")}
    selected = (f"CAST({sql_by_name.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind in wide.frame.dtypes)
    return f"(SELECT {', '.join(selected)} FROM ({rows_sql(asked, views, None)}))"
