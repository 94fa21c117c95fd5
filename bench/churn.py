"""Memory over many rounds of a stream whose queries come and go: what grows with rounds is a leak."""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.measure import Outcome, resident_bytes
from windloom import Loom
from windloom.engine.progress import RoundProgress
from windloom.spark.session import local_session

#: Rounds for each of the repeats that are asked for: a thousand by default.
ROUNDS = 200
#: Seconds of event time, and events, of a round.
SECONDS, EVENTS = 10, 200
GUESTS = 10
WINDOWS = [(60, 10), (90, 30), (120, 20), (45, 15), (100, 25), (300, 60), (70, 7), (80, 40), (110, 11)]
MIDNIGHT = 1_767_571_200
MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    """After a round: bytes of the state, of the Python process, of Spark's JVM; files of the checkpoint; seconds."""

    state: int
    python: int
    jvm: int
    files: int
    seconds: float


def churn(repeats: int) -> Outcome:
    """In every round a query comes and another goes; the last fifth of the rounds against the second fifth."""
    rounds = ROUNDS * repeats
    spark = local_session(cores=2, memory="512m", app="windloom churn")
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as folder:
        samples = _run(spark, Path(folder), rounds)
    fifth = len(samples) // 5
    early, late = samples[fifth : 2 * fifth], samples[-fifth:]
    growth = {
        name: max(getattr(sample, name) for sample in late) / max(getattr(sample, name) for sample in early)
        for name in ("state", "python", "jvm", "files")
    }
    marks = [samples[fifth], samples[len(samples) // 2], samples[-1]]
    note = (
        f"{len(samples):,} rounds in {sum(sample.seconds for sample in samples):.0f} s; after a fifth, a half and all: "
        + (
            "; ".join(
                f"{what} {', '.join(f'{getattr(sample, name) / unit:,.{digits}f}' for sample in marks)}{ending}"
                for what, name, unit, digits, ending in (
                    ("state", "state", 1024, 0, " KiB"),
                    ("Python", "python", MIB, 0, " MiB"),
                    ("JVM", "jvm", MIB, 0, " MiB"),
                    ("checkpoint", "files", 1, 0, " files"),
                )
            )
        )
    )
    figure = max(growth["state"], growth["python"])
    return Outcome("memory, last fifth / second fifth of rounds", figure, "ratio", 1.1, "<=", note, growth)


def _run(spark: SparkSession, folder: Path, rounds: int) -> list[Sample]:
    _write_files(folder / "in", rounds)
    schema = "ts timestamp, symbol string, price double"
    trades = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    loom = Loom(spark)
    loom.stream("trades", trades, time="ts", delay="5 seconds", rate=EVENTS / SECONDS)
    for i, (length, slide) in enumerate(WINDOWS):
        loom.query(f"stays_{i}", _text("avg(price) AS p", length, slide))
    samples: list[Sample] = []
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    rng = random.Random(5)
    last = time.perf_counter()

    ready = threading.Event()

    def watch(done: RoundProgress) -> None:
        nonlocal last
        ready.wait()  # rounds may run before there is a handle to change queries with
        now = time.perf_counter()
        files = sum(1 for file in (folder / "checkpoint").glob("*/*") if file.parent.name != "spark")
        samples.append(Sample(done.state_bytes, resident_bytes(), resident_bytes(jvm), files, now - last))
        last = now
        length, slide = rng.choice(WINDOWS)
        aggregate = rng.choice(["max(price) AS p", "sum(price) AS p", "count(*) AS n"])
        handle.add(f"guest_{done.round}", _text(aggregate, length, slide))
        if done.round >= GUESTS:
            handle.remove(f"guest_{done.round - GUESTS}")

    handle = loom.start(
        "parquet",
        path=folder / "out",
        checkpoint=folder / "checkpoint",
        trigger={"availableNow": True},
        progress=watch,
    )
    ready.set()
    handle.await_termination()
    return samples


def _text(aggregate: str, length: int, slide: int) -> str:
    return f"SELECT symbol, {aggregate} FROM trades [RANGE {length} s SLIDE {slide} s] GROUP BY symbol"


def _write_files(folder: Path, rounds: int) -> None:
    folder.mkdir()
    rng = random.Random(1)
    for number in range(rounds):
        micros = [(MIDNIGHT + SECONDS * number) * 1_000_000 + rng.randrange(SECONDS * 1_000_000) for _ in range(EVENTS)]
        columns = {
            "ts": pa.array(micros, pa.timestamp("us", "UTC")),
            "symbol": [f"S{rng.randrange(20)}" for _ in range(EVENTS)],
            "price": [rng.randrange(1000) / 8 for _ in range(EVENTS)],
        }
        file = folder / f"{number:05d}.parquet"
        pq.write_table(pa.table(columns), file)
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
