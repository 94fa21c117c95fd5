"""HAVING and expressions over aggregates that only Spark knows: many tables of many shapes in one job."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from windloom.plan.physical import Shape
from windloom.spark.frames import arrow_frame, ddl_of, finish
from windloom.spark.unions import unite

#: Settings of a session under which Spark means something else by an expression than in a session without settings.
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
}


def has_usual_meaning(spark: SparkSession) -> bool:
    """Do expressions mean in this session what they mean in Spark by default."""
    return all(str(spark.conf.get(name, usual)).lower() == usual for name, usual in _MEANING.items())


def finish_together(
    spark: SparkSession, parts: Sequence[tuple[Shape, pa.Table]], *, with_query: bool = False
) -> list[pa.Table]:
    """The finished rows of each table, by one Spark job for all of them; `with_query`: the first column is `query`."""
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
