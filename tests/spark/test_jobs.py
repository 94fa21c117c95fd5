"""How many jobs Spark runs for a round: each costs a tenth of a second before it does anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.files import follow, put
from support.trades import ROWS, trades
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW = "FROM trades [RANGE 30 seconds SLIDE 10 seconds]"
#: Unlike groupings, conditions, lists, an expression over aggregates and HAVING; one query wants every tuple.
EVERY = {
    "all": f"SELECT count(*) AS n, sum(volume) AS v {WINDOW}",
    "by": f"SELECT symbol, avg(price) AS p, max(volume) - min(volume) AS d {WINDOW} GROUP BY symbol "
    "HAVING count(*) > 1",
    "some": f"SELECT symbol, count(DISTINCT volume) AS n, median(price) AS m {WINDOW} WHERE volume > 5 GROUP BY symbol",
}


def jobs(spark: SparkSession) -> int:
    """How many Spark has begun in this session; it forgets about those of long ago, but goes on counting."""
    newest = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()
    return int(newest)


def loom_of(frame: DataFrame, names: list[str]) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, time="ts", delay="10 seconds")
    for name in names:
        loom.query(name, EVERY[name])
    return loom


@pytest.mark.parametrize(
    ("names", "events"),
    [
        pytest.param(list(EVERY), [10, 10, 10], id="a query wants every tuple"),
        # The frontier is that of all tuples: their ticks are observed by the same job.
        pytest.param(["some"], [5, 10, 10], id="no query does"),
    ],
)
def test_a_round_of_the_woven_intake_is_one_job(
    spark: SparkSession, tmp_path: Path, names: list[str], events: list[int]
) -> None:
    for number in range(3):
        put(tmp_path / "in", f"{number:03d}", ROWS[10 * number : 10 * number + 10])
    loom = loom_of(follow(spark, tmp_path / "in"), names)
    before = jobs(spark)
    handle = loom.start(
        path=tmp_path / "out", checkpoint=tmp_path / "c", trigger={"availableNow": True}, finish=True, intake="woven"
    )
    assert handle.await_termination(120)
    assert [progress.events for progress in handle.recent_progress][:3] == events
    assert jobs(spark) - before == 3


def test_a_batch_of_the_woven_intake_is_one_job_answers_included(spark: SparkSession) -> None:
    loom, before = loom_of(trades(spark), list(EVERY)), jobs(spark)
    results = loom.run(intake="woven", placement="driver")
    assert all(results.arrow(name).num_rows for name in EVERY)
    assert jobs(spark) - before == 1
