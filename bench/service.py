"""The service under watch: rounds with 200 event streams open and queries that come and go, against rounds without."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
from pyspark.sql import SparkSession

from bench.measure import Outcome
from bench.sessions import session
from bench.streams import NOW, WARM, followed, round_files
from bench.workloads import PER_SECOND, SELECT, divisor_queries
from windloom import Loom
from windloom.service.app import serving
from windloom.service.server import Place
from windloom.service.service import Limits, Relay

ROUNDS = 30
QUERIES = 100
WATCHERS = 200
#: Fifty queries per minute are added, and as many removed.
CHANGE_SECONDS = 1.2
_TEXT = "SELECT sum(price) AS s, max(price) AS m FROM trades [RANGE {range} seconds SLIDE {slide} seconds]"


def _rounds(spark: SparkSession, place: Path, *, watched: bool) -> tuple[list[float], dict[str, Any]]:
    """Seconds of each round, and what watchers and changes came to."""
    loom = Loom(spark)
    loom.stream("trades", followed(spark, place), time="ts", rate=PER_SECOND)
    for name, text in divisor_queries(QUERIES, SELECT, "trades", ""):
        loom.query(name, text)
    here, rounds = Place(port=0), Relay()
    with tempfile.TemporaryDirectory() as folder, here.open() as listening:
        port = int(listening.getsockname()[1])
        out = Path(folder) / "answers"
        handle = loom.start(path=out, checkpoint=f"{folder}/checkpoint", trigger=NOW, progress=rounds)
        with (
            _crowd(port) if watched else _nobody() as told,
            serving(handle, loom.streams, out, rounds, here, listening, None, Limits()),
        ):
            handle.await_termination()
        done = handle.recent_progress
        progress = handle.spark_query.recentProgress
    seen = [
        told_batch["durationMs"]["triggerExecution"] / 1000 for told_batch in progress if told_batch["numInputRows"]
    ]
    told["events"] = sum(progress_round.events for progress_round in done)
    return seen[WARM:], told


@contextmanager
def _nobody() -> Iterator[dict[str, Any]]:
    yield {}


@contextmanager
def _crowd(port: int) -> Iterator[dict[str, Any]]:
    """Watchers in a process of their own, and a thread that adds and removes queries."""
    command = [sys.executable, "-m", "bench.watchers", str(port), str(WATCHERS)]
    told: dict[str, Any] = {}
    ended = threading.Event()
    changing = threading.Thread(target=_change, args=(port, ended, told), daemon=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        changing.start()
        try:
            yield told
        finally:
            ended.set()
            changing.join(30)
            said, _ = process.communicate(timeout=60)
    told.update(json.loads(said))


def _change(port: int, ended: threading.Event, told: dict[str, Any]) -> None:
    told["added"] = told["removed"] = told["refused"] = 0
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=30) as client:
        number, begun = 0, perf_counter()
        while not ended.wait(max(0.0, begun + (number + 1) * CHANGE_SECONDS - perf_counter())):
            number += 1
            told["per_minute"] = 60 * number / (perf_counter() - begun)
            text = _TEXT.format(range=60 * (1 + number % 7), slide=5 * (1 + number % 4))
            try:
                added = client.post("/queries", json={"name": f"guest_{number}", "text": text})
                told["added" if added.status_code == 201 else "refused"] += 1
                if number > 1 and client.delete(f"/queries/guest_{number - 1}").status_code == 200:
                    told["removed"] += 1
            except httpx.TransportError:
                return  # the service has ended


def service_watched(repeats: int) -> Outcome:
    """The median round watched against the median round unwatched, in turn; of the ratios the median."""
    spark = session()
    pairs: list[tuple[float, float]] = []
    last: dict[str, float] = {}
    with round_files(spark, 1, ROUNDS) as place:
        for _ in range(max(1, min(repeats, 3))):
            alone, first = _rounds(spark, place, watched=False)
            watched, last = _rounds(spark, place, watched=True)
            pairs.append((statistics.median(alone), statistics.median(watched)))
            if last["complete"] < WATCHERS or last["events"] != first["events"]:
                raise RuntimeError(f"something was lost: {last} against {first}")
    ratio = statistics.median(watched / alone for alone, watched in pairs)
    note = (
        f"{pairs[-1][1]:.3f} s against {pairs[-1][0]:.3f} s; {last['watchers']} event streams each told"
        f" {last['rounds']} rounds, {last['added']} queries added and {last['removed']} removed,"
        f" {last['per_minute']:.0f} of each per minute"
    )
    return Outcome("service_watched", ratio, "×", 1.1, "<=", note, {"pairs": pairs, **last})


SERVICE_WORKLOADS = {"service_watched": service_watched}
