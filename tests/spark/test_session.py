from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windloom.errors import WindloomError
from windloom.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_local_session_counts_in_utc_and_keeps_to_this_machine(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "4"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.range(10).selectExpr("sum(id) AS total").toArrow().to_pydict() == {"total": [45]}


def test_workers_run_the_python_of_the_driver(spark: SparkSession) -> None:
    executables = spark.sparkContext.range(2, numSlices=2).map(lambda _: sys.executable).distinct().collect()
    assert executables == [sys.executable]


def test_starting_a_session_leaves_the_environment_as_it_was(spark: SparkSession) -> None:
    before = dict(os.environ)
    assert local_session(cores=2).sparkContext is spark.sparkContext
    assert dict(os.environ) == before


@pytest.mark.parametrize("cores", [0, -1, "many"])
def test_a_meaningless_number_of_cores_is_refused(cores: int | str) -> None:
    with pytest.raises(WindloomError, match="cores cannot be"):
        local_session(cores=cores)


STREAM_STOPPED_AMID_A_BATCH = """
import sys
from windloom.spark.session import local_session

def work(batch, batch_id):
    batch.sparkSession.range(10**13).selectExpr("max(hash(id))").collect()

spark = local_session(cores=1)
spark.sql("SELECT 1").collect()
print("ready", file=sys.stderr, flush=True)
running = spark.sparkContext.statusTracker().getActiveJobsIds
stream = spark.readStream.format("rate").load().writeStream.foreachBatch(work)
query = stream.option("checkpointLocation", "checkpoint").start()
while not running() and query.isActive:
    query.awaitTermination(1)
query.stop()
print("stopped", query.exception())
"""


@pytest.mark.spark
def test_a_session_starts_in_silence_and_its_streams_stop_in_peace(tmp_path: Path) -> None:
    # A process of its own, since this one's session is shared and started long ago.
    script = [sys.executable, "-c", STREAM_STOPPED_AMID_A_BATCH]
    answer = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.stderr.partition("ready\n")[0] == ""
    assert "StackOverflowError" not in answer.stderr
    assert answer.stdout == "stopped None\n"
    assert [left.name for left in tmp_path.iterdir()] == ["checkpoint"]
