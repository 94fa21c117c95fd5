"""The Spark operator on a real cluster, master and workers as processes: a worker is killed, tasks run twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster import UnavailableError, cluster
from support.cluster_program import answers_over
from support.files import put
from support.many_groups import random_trades

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = Path(__file__).resolve().parents[1]


def on_cluster(master: str, folder: Path) -> dict[str, Any]:
    paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "support.cluster_program", master, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_cluster_gives_the_rows_of_the_driver_also_if_a_worker_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    made = random_trades(5, 60)
    for number in range(3):
        put(tmp_path / "in", f"{number:03d}", made[20 * number : 20 * (number + 1)])
    try:
        with cluster(tmp_path / "processes") as master:
            found = on_cluster(master, tmp_path)
    except UnavailableError as error:
        pytest.skip(f"no cluster can be started on loopback here: {error}")
    assert (tmp_path / "killed").exists()
    assert found == answers_over(spark.read.parquet(str(tmp_path / "in")), "driver")
    assert all(found.values())
