"""HAVING and expressions over aggregates that only Spark can evaluate: many tables of many shapes in one job."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from windloom.plan.physical import Shape
from windloom.spark.frames import arrow_frame, ddl_of, finish
from windloom.spark.unions import unite

#: Settings that change the meaning of expressions, and the values under which expressions have their usual meaning.
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
}


def has_usual_meaning(spark: SparkSession) -> bool:
    """Whether expressions mean in this session what they mean in Spark by default."""
    return all(str(spark.conf.get(name, usual)).lower() == usual for name, usual in _MEANING.items())


def finish_together(
    spark: SparkSession, parts: Sequence[tuple[Shape, pa.Table]], *, with_query: bool = False
) -> list[pa.Table]:
    """The finished rows of each table, from one Spark job for all; `with_query`: the first column is `query`."""
    keep = ("query",) if with_query else ()
    done = [
        finish(arrow_frame(spark, table, ddl_of(shape, with_query=with_query)), shape, keep) for shape, table in parts
    ]
    if len(done) == 1:
        return [done[0].toArrow()]
    united, slots = unite(done, "part")
    rows = united.toArrow()
    found = []
    for number, data_frame in enumerate(done):
        mine = rows.filter(pc.equal(rows["part"], number)).select(list(slots[number]))
        found.append(mine.rename_columns(data_frame.columns))
    return found
