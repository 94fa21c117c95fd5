"""Processor time of Spark's Java process, which a busy machine does not change as it changes elapsed time."""

from __future__ import annotations

from pyspark.sql import SparkSession


def java_cpu_seconds(spark: SparkSession) -> float | None:
    """All threads together, since it started; None where it cannot be had, as from a remote session."""
    try:
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        found = jvm.java.lang.ProcessHandle.current().info().totalCpuDuration()
        return float(found.get().toMillis()) / 1e3 if found.isPresent() else None
    except Exception:  # whatever the reason, elapsed time is there to be used instead
        return None
