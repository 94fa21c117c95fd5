"""Positions: the place of a tuple among all tuples of its stream, or of its key, in order of event time.

Tuples of equal time are ordered by their values, column by column; no query can distinguish tuples that are equal in
all columns. So positions do not depend on partitions, files, or the rounds in which tuples came.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window as Over

from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.spark.intake.native import tick_sql

#: The name of the column of positions.
POSITION = "__position"


def with_positions(frame: DataFrame, stream: Stream, keys: Sequence[Expression]) -> DataFrame:
    """The frame with a column of positions from 0 on; NULL for tuples without a usable time, which are not counted."""
    tick = tick_sql(stream)
    order = [F.expr(tick).asc_nulls_last(), *(F.expr(sql) for sql in order_sql(stream))]
    counted = Over.partitionBy(*(F.expr(key.sql) for key in keys)).orderBy(*order)
    position = F.when(F.expr(f"{tick} IS NOT NULL"), F.row_number().over(counted).cast("bigint") - 1)
    return frame.withColumn(POSITION, position)


def order_sql(stream: Stream) -> list[str]:
    """The order of tuples of equal time: by every other column; as text, if Spark has no order for its type."""
    return [
        _ordered(Expression.of_column(name).sql, kind) for name, kind in stream.columns.items() if name != stream.time
    ]


def _ordered(sql: str, kind: DataType) -> str:
    has_order = not any(word in kind.name for word in ("map<", "variant", "interval"))
    return sql if has_order else f"CAST({sql} AS STRING)"
