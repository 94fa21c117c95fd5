"""Every workload of unlike queries runs, on few queries and events; what it measures is not asserted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench import unlike
from bench.bids import write_bids
from bench.measure import Outcome
from bench.unlike_streams import stream_rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW = 2_000
WORKLOADS: dict[str, Callable[[], Outcome]] = {
    "plain 4 / DuckDB": lambda: unlike.against_duckdb(4, False, 1, 1, events=FEW),
    "mixed 4 / DuckDB": lambda: unlike.against_duckdb(4, True, 1, 1, events=FEW),
    "mixed 4 / Spark": lambda: unlike.against_spark(1, queries=4, events=FEW, sampled=2),
    "plain 20 / plain 2": lambda: unlike.thousand(1, queries=2, events=FEW),
    "plain 2, 16,000 events / 2,000": lambda: unlike.many_events(1, queries=2, events=8 * FEW),
    "round of 2,000, mixed 2": lambda: stream_rounds(2, True, 1, 1, rounds=3, warm=1, size=FEW),
}


@pytest.mark.parametrize("named", WORKLOADS)
def test_a_workload_gives_a_ratio(spark: SparkSession, named: str) -> None:
    outcome = WORKLOADS[named]()
    assert outcome.workload.startswith(named)
    assert outcome.unit == "ratio"
    assert outcome.figure > 0
    assert f"{outcome.figure:.3g}" in outcome.line()


def test_what_fresh_processes_measure(spark: SparkSession, tmp_path: Path) -> None:
    write_bids(tmp_path, events=FEW)
    assert all(took > 0 for took in unlike.first_and_warm(tmp_path, 2, 1))
    peak, rows = unlike.peak_and_rows(tmp_path, 2)
    assert peak > 0
    assert rows > 0
