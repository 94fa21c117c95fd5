"""Spark's own answers to the queries of a loom, which the loom's answers are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import pyarrow as pa

from support.trades import settings
from windloom import Loom
from windloom.spark.verify.verify import spark_window_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def interpreted(spark: SparkSession) -> AbstractContextManager[None]:
    """Settings for Spark's own answers: compiling them takes longer than interpreting them for a few hundred tuples."""
    return settings(
        spark,
        spark__sql__codegen__wholeStage="false",
        spark__sql__codegen__factoryMode="NO_CODEGEN",
        spark__sql__shuffle__partitions="1",
    )


def spark_truth(loom: Loom, frames: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
    """What Spark answers to each query of the loom over these frames, which are those of its streams and relations."""
    sources = {**loom.streams, **loom.relations}
    with interpreted(loom.spark):
        return {name: spark_window_frame(query, sources, frames).toArrow() for name, query in loom.queries.items()}
