"""Window queries of the tests of Flink, Spark, RisingWave, Arroyo and Nexmark have the rows that those expect.

They are among the recorded data; `peers.json` holds our own texts for some of them, by case. `WINDLOOM_PEERS=1` runs
all 400 instead of a few, and `WINDLOOM_PEERS=3` those without rounds as streams of three.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS = int(os.environ.get("WINDLOOM_PEERS", "0"))
_TEXTS: dict[str, str] = json.loads(Path(__file__).with_name("peers.json").read_text(encoding="utf-8"))
#: What is run otherwise: of every system something.
_FEW = (
    "spark.simple tumbling",
    "spark.sql12",
    "spark.session one distinct",
    "flink.over.testProcTimeBoundedPartitionedRowsOver",
    "flink.over.testProcTimeDistinctBoundedPartitionedRowsOver",
    "flink.interval.testRowTimeFullOuterJoin",
    "rw.mv_window_join",
    "rw.watermark.mv2",
)
#: Cases that answer something else, with the reason; docs/semantics.md has them among known limits.
_OTHERWISE = {
    "rw.over_window.first ties": "values decide between rows of one time, not arrival: docs/semantics.md#values",
    "arroyo.every_aggregate": "the case lists no columns to compare",
}


@pytest.fixture(scope="module")
def suite(shared_data: Path) -> Any:
    path = shared_data / "peer_windows" / "suite.py"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    spec = importlib.util.spec_from_file_location("peer_windows_suite", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::windloom.errors.WindloomWarning")
def test_queries_of_other_systems_have_the_rows_that_those_expect(
    spark: SparkSession, suite: Any, shared_data: Path
) -> None:
    data = json.loads((shared_data / "peer_windows" / "cases.json").read_text(encoding="utf-8"))
    cases = [case | {"text": _TEXTS.get(case["name"], case["text"])} for case in data["cases"]]
    if not _ROUNDS:
        cases = [case for case in cases if case["name"] in _FEW]
    if _ROUNDS > 1:
        cases = as_streams([case for case in cases if case["mode"] == "batch" and case["text"]], data, suite)
    groups = defaultdict(list)
    results: dict[str, Any] = {}
    for number, case in enumerate(cases):
        if case["text"] is not None:
            groups[case["mode"], tuple(sorted(case["streams"].items()))].append(case | {"id": f"q{number}"})
    for key, group in groups.items():
        suite.run_group(Loom, WindloomError, spark, key, group, data["datasets"], results)
    wrong = {name: result for name, result in results.items() if result["status"] in ("DIFFERENT", "CRASHED")}
    assert wrong.keys() <= _OTHERWISE.keys(), wrong
    refused = {case["name"] for case in cases if case["status"] == "must refuse"}
    assert all(results[name]["status"] == "REFUSED" for name in refused & results.keys())
    assert all(results[name]["status"] == "EQUAL" for name in _TEXTS if name in results)
    if _ROUNDS == 1:
        of_case = Counter(
            results[case["name"]]["status"] for case in cases if not case.get("variation") and case["text"]
        )
        assert of_case["EQUAL"] + len(refused & results.keys()) >= 255, of_case


def as_streams(cases: list[Any], data: Any, suite: Any) -> list[Any]:
    """The cases as streams of some rounds, with the delay at which no tuple is late."""
    for dataset in data["datasets"].values():
        place = [name for name, _ in suite.columns_of(dataset["schema"])].index(dataset["time"])
        times = [datetime.fromisoformat(row[place]) for row in dataset["rows"] if isinstance(row[place], str)]
        behind = (latest - time for latest, time in zip(accumulate(times, max), times, strict=True))
        dataset["delay"] = f"{int(max(behind, default=timedelta()).total_seconds() * 1000) + 1} milliseconds"
        count = len(dataset["rows"])
        dataset["cuts"] = sorted({count * part // _ROUNDS for part in range(1, _ROUNDS)} - {0, count})
    return [case | {"mode": "stream"} for case in cases]
