"""Sessions for the jobs of row queries: few tuples are joined by one task, without generated code.

For a round of a few thousand tuples, Spark takes longer to plan, compile and shuffle than to compute. So if few tuples
are read, every strand is one partition, nothing is shuffled or broadcast, and expressions are interpreted: bounds of
windows differ in every round, and code for them would be compiled each time. Answers do not depend on this.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

#: Up to this number, the tuples of all strands together count as few.
FEW_TUPLES = 200_000
_SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
}
#: Listing files must not become a separate job, however many there are.
_LARGE = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "10000"}


class JobSessions:
    """Sessions with the functions, views and settings of the user's session, and further settings of their own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._made: dict[bool, SparkSession] = {}

    def of(self, *, is_few: bool) -> SparkSession:
        """Return the session for a job that reads few tuples, or many."""
        if is_few not in self._made:
            self._made[is_few] = _cloned(self._spark, _SMALL if is_few else _LARGE)
        return self._made[is_few]

    def forget(self) -> None:
        """Forget the sessions, so that the next job sees what the user has registered since."""
        self._made = {}


def _cloned(spark: SparkSession, settings: dict[str, str]) -> SparkSession:
    try:
        java: Any = spark._jsparkSession
        session = SparkSession(spark.sparkContext, java.cloneSession())
    except Exception:  # a remote session cannot be cloned
        return spark
    for name, value in settings.items():
        session.conf.set(name, value)
    return session
