"""Workloads of the first seconds: whole processes, from the shell's point of view."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.measure import Outcome, seconds

EXAMPLES = Path(__file__).parents[1] / "examples"
CATALOG, DATA = str(EXAMPLES / "trades.cql"), str(EXAMPLES / "trades.csv")
#: Timings of which the best counts: a process that starts is at the mercy of all others.
TIMINGS = 3

#: A session with nothing but what reading a file takes; neither Windloom nor its archive of classes.
BARE = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
print(spark.read.csv({DATA!r}, header=True).count())
"""


def explain(repeats: int) -> Outcome:
    """Seconds to the plan of a small catalog."""
    timings = [_timed("-m", "windloom", "explain", CATALOG) for _ in range(TIMINGS + 1)][1:]
    return Outcome("windloom explain examples/trades.cql", min(timings), "s", 2.0, "<=", "", {"seconds": timings})


def run(repeats: int) -> Outcome:
    """A small catalog answered, the first time left out, over a bare session that reads and counts its file."""
    ours = partial(_timed, "-m", "windloom", "run", CATALOG, "--stream", f"trades={DATA}")
    bare = partial(_timed, "-c", BARE)
    first = ours()
    pairs = [(bare(), ours()) for _ in range(TIMINGS)]
    best = [min(times) for times in zip(*pairs, strict=True)]
    details = {
        "first_seconds": first,
        "bare_seconds": [bare_seconds for bare_seconds, _ in pairs],
        "our_seconds": [our_seconds for _, our_seconds in pairs],
    }
    note = f"{best[1]:.1f} s, a bare session {best[0]:.1f} s; the first time {first:.1f} s"
    return Outcome("windloom run / a bare session that counts", best[1] / best[0], "ratio", 1.6, "<=", note, details)


def _timed(*arguments: str) -> float:
    command = [sys.executable, *arguments]
    return seconds(lambda: subprocess.run(command, check=True, capture_output=True))


COLD_WORKLOADS = {"cold_explain": explain, "cold_run": run}
