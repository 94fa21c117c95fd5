"""DataFrames of a Spark Connect session are read and answered; what a remote session cannot do is refused by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What the program says; `spark` is not used, but these tests belong to those that need Java."""
    if find_spec("grpc") is None:
        pytest.skip("Spark Connect is not installed: pip install 'pyspark[connect]'")
    paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "support.connect_program", str(tmp_path_factory.mktemp("connect"))],
        # As Spark's own tests do, the server takes any free port: another program may have the usual one.
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_TESTING": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_sixty_dataframes_of_a_remote_session_are_answered_with_their_own_schemas_and_rows(
    told: list[dict[str, Any]],
) -> None:
    jobs = [each for each in told if "job" in each]
    assert len(jobs) >= 60
    assert [each for each in jobs if not (each["schema"] and each["rows"])] == []


def test_executors_of_a_remote_session_give_the_rows_of_a_run_on_the_driver(told: list[dict[str, Any]]) -> None:
    found = [each for each in told if "operator" in each]
    assert [(each["rows"], each["placement"]) for each in found] == [(True, "executors")] * 4


def test_the_texts_of_spark_sql_in_a_remote_session_are_answered_with_their_schemas_and_rows(
    told: list[dict[str, Any]],
) -> None:
    texts = [each for each in told if "text" in each and "live" not in each]
    assert len(texts) >= 60
    assert [each for each in texts if not (each["schema"] and each["rows"])] == []
    assert {each["streams"] for each in texts} == {1}


def test_streaming_dataframes_of_a_remote_session_share_a_stream_and_are_answered_by_the_operator(
    told: list[dict[str, Any]],
) -> None:
    live = [each for each in told if "live" in each]
    assert len(live) == 20
    assert {each["streams"] for each in live} == {1}
    assert all("GROUP BY" in each["text"] for each in live)
    assert [each for each in live if not each["schema"]] == []
    answered = [each for each in told if "answered" in each]
    assert len(answered) == 3
    assert [each for each in answered if not (each["rows"] and each["count"])] == []


def test_what_a_remote_session_cannot_do_is_refused_by_name(told: list[dict[str, Any]]) -> None:
    refused = {each["refused"]: each["says"] for each in told if "refused" in each}
    assert "a stream needs a classic Spark session" in refused["stream"]
    assert "the DataFrame has no window" in refused["no window"]
    assert "the query has no FROM" in refused["no table"]
    for what in ("frames", "arguments", "above a text"):
        assert "spark.sql() cannot be read in a remote session" in refused[what]
    assert "give the text itself" in refused["above a text"]
    assert "cannot run as a Spark operator yet" in refused["sessions"]
    for what, node, works in (("limit", "Limit", ".limit("), ("join", "Join", ".join("), ("union", "", ".union(")):
        assert f"{node}' cannot stand above a window" in refused[what]
        assert works in refused[what]
    assert "the DataFrame has no window" in refused["tables"]
    assert "belongs to another Spark session" in refused["session"]
    assert "cannot be read" in refused["udf"]
