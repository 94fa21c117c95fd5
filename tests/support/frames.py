"""Small frames of rows written in Python, held by the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, rows: Sequence[tuple[Any, ...]], ddl: str) -> DataFrame:
    """Taken over as Arrow: a frame of Python rows is asked of Python workers anew by every job that reads it."""
    return spark.createDataFrame(table_of(rows, ddl), ddl)


def table_of(rows: Sequence[tuple[Any, ...]], ddl: str) -> pa.Table:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    fields = to_arrow_schema(StructType.fromDDL(ddl), timezone="UTC")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)], fields)
