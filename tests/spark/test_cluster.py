"""Executor placement on a real cluster, master and workers as processes: a task is killed, others run twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster import UnavailableError, cluster
from support.sharded import SHARDS, two_lives

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


def test_a_cluster_gives_the_rows_of_the_driver_placement(spark: SparkSession, tmp_path: Path) -> None:
    try:
        with cluster(tmp_path / "processes") as master:
            found = on_cluster(master, tmp_path / "cluster")
    except UnavailableError as error:
        pytest.skip(f"no cluster can be started on loopback here: {error}")
    assert found["answers"] == two_lives(spark, tmp_path / "local", "driver")
    assert all(found["answers"].values())
    assert len(set(found["written"])) > SHARDS, "shards wrote rows of several rounds"
    # The killed attempt had written its state; no log knows of it, and the file is gone.
    assert found["attempts"]["000000001-0000"] >= 2
    assert [name.rpartition("-")[0] for name in found["left"]] == [f"000000002-{shard:04d}" for shard in range(SHARDS)]
