"""What runs and rounds on Spark observe, and where users see it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.files import follow, put
from support.trades import ROWS, WINDOW, trades
from windloom import Loom
from windloom.statistics.estimates import estimates_of
from windloom.statistics.set_statistics import SetIdentity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "every": f"SELECT symbol, count(*) AS n, sum(volume) FILTER (WHERE price > 11) AS v {WINDOW} GROUP BY symbol",
    "large": f"SELECT symbol, count(*) AS n {WINDOW} WHERE volume > 20 GROUP BY symbol",
}


def asking(loom: Loom, names: list[str]) -> Loom:
    for name in names:
        loom.query(name, QUERIES[name])
    return loom


@pytest.mark.parametrize("intake", ["native", "woven"])
@pytest.mark.parametrize("names", [["every", "large"], ["large"]])
def test_a_batch_run_observes_the_same_on_executors(spark: SparkSession, names: list[str], intake: str) -> None:
    loom = Loom(spark)
    loom.stream("trades", trades(spark), time="ts")
    asking(loom, names)
    found = [loom.run(placement=placement, intake=intake).observed for placement in ("driver", "executors")]
    large = sum(row[3] > 20 for row in ROWS)
    for seen in found:
        of_large = seen.sets[SetIdentity.of_query(loom.queries["large"])]
        assert (of_large.tuples, of_large.groups) == (large, len({row[1] for row in ROWS if row[3] > 20}))
        if "every" in names:
            assert seen.streams["trades"].tuples == len(ROWS)
            dear = sum(row[2] is not None and row[2] > 11 for row in ROWS)
            assert seen.streams["trades"].conditions["price > 11"] == dear
    if intake == "woven" and "every" in names:  # a native scan of a batch run looks for no ticks
        span = ROWS[-1][0] - ROWS[0][0]
        assert {seen.streams["trades"].seconds for seen in found} == {span.total_seconds()}
    shares = [estimates_of(seen).sets[SetIdentity.of_query(loom.queries["large"])].selectivity.value for seen in found]
    assert shares[1] == pytest.approx(large / len(ROWS))  # tasks of the operator see all tuples
    if "every" in names:
        assert shares[0] == pytest.approx(shares[1])
    assert "(observed in 1 round)" in loom.explain()


def test_a_stream_observes_all_tuples_even_if_no_query_wants_them(spark: SparkSession, tmp_path: Path) -> None:
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    asking(loom, ["large"])
    put(tmp_path / "in", "0", ROWS[:20])
    places = {"path": tmp_path / "out", "checkpoint": tmp_path / "checkpoint"}
    handle = loom.start("parquet", **places)
    try:
        handle.process_all_available()
        assert "events/s (observed in 1 round)" in handle.explain()
        put(tmp_path / "in", "1", ROWS[20:])
        handle.process_all_available()
        text = handle.explain()
    finally:
        handle.stop()
    assert "events/s (observed in 2 rounds" in text
    # None of the first 20 tuples, which weigh less, and all of the last 10.
    part = 10 / (10 + 20 * math.exp(-0.5))
    assert f"{round(100 * part)} % of the stream (observed in 2 rounds)" in text.replace("\n                ", " ")
    again = loom.start("parquet", **places)
    try:
        assert "events/s (observed in 2 rounds" in again.explain(), "what was observed survives a restart"
        again.add("every", QUERIES["every"])
        record = again._newest
    finally:
        again.stop()
    assert record.estimates.streams["trades"].rate.rounds == 2
    looking = Loom(spark)
    looking.stream("trades", trades(spark), time="ts")
    asking(looking, ["large"]).learn(tmp_path / "checkpoint")
    assert "events/s (observed in 2 rounds" in looking.explain()
