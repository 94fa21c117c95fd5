"""The Spark session that workloads run in."""

from __future__ import annotations

from pyspark.sql import SparkSession

from windloom.spark.session import local_session


def session() -> SparkSession:
    return local_session(cores=2, memory="6g", app="windloom bench")
