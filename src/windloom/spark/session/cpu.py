"""The processor time of Spark's Java process, which depends less on other load than elapsed time does."""

from __future__ import annotations

from pyspark.sql import SparkSession


def java_cpu_seconds(spark: SparkSession) -> float | None:
    """Return CPU seconds of all threads of the JVM since it started, or None if they are unknown, as in a remote
    session."""
    try:
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        duration = jvm.java.lang.ProcessHandle.current().info().totalCpuDuration()
        return float(duration.get().toMillis()) / 1e3 if duration.isPresent() else None
    except Exception:  # whatever the reason, elapsed time can be used instead
        return None
