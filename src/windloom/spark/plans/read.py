"""Reads the plan of a DataFrame, whichever session made it."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from windloom.errors import WindloomError
from windloom.spark.plans.classic import read_classic
from windloom.spark.plans.connect import read_connect
from windloom.spark.plans.written import RefusedPlanError, WrittenQuery, WrittenText


def read_frame(
    name: str, frame: DataFrame, spark: SparkSession, registered: Iterable[DataFrame] = (), *, deep: bool = True
) -> WrittenQuery | WrittenText:
    """Return the query that a DataFrame stands for, to be registered under this name.

    What it reads of the `registered` streams is read as it is. Without `deep`, everything below the window is left to
    Spark, which computes it before tuples are read.
    """
    if frame.sparkSession is not spark and not _is_same(frame.sparkSession, spark):
        raise WindloomError(
            f"query '{name}': the DataFrame belongs to another Spark session",
            "a loom runs on one session, which has the views and settings of its DataFrames",
            "make the loom with it: Loom(df.sparkSession)",
        )
    try:
        if not hasattr(frame, "_jdf"):
            return read_connect(frame, deep=deep)
        return read_classic(frame, registered, deep=deep)
    except RefusedPlanError as refused:
        raise refused.named(name) from None


def _is_same(one: SparkSession, other: SparkSession) -> bool:
    if not (hasattr(one, "_jsparkSession") and hasattr(other, "_jsparkSession")):
        return False
    return bool(one._jsparkSession.equals(other._jsparkSession))
