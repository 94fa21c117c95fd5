"""Workloads of the state in process: what a round costs as state, ranges and rounds grow, and what it writes."""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np

from bench.measure import Outcome
from bench.operator import followed, write_readings
from bench.sessions import session
from bench.streams import NOW
from windloom import Loom
from windloom.checkpoint.storage import sync_file
from windloom.engine.handle import Handle
from windloom.engine.progress import RoundProgress
from windloom.state.cells import Cells
from windloom.state.held import every

#: Rounds that are not counted, once the state is there: kernels compile, and memory is mapped.
WARM = 4
#: Rounds until the first snapshot is there, which also writes what came before the rounds that are measured.
SETTLED = 12
ROUND = 10_000
AGGREGATES = "key, count(*) AS n, sum(value) AS s, max(value) AS m"
HOUR, MINUTE = 3600, 60


def closes_nothing(repeats: int, *, events: int = 2_000_000, hours: int = 10, rounds: int = 16) -> Outcome:
    """Rounds of 10,000 events that close nothing, over `events` cells (a cell per key and hour), and over none."""
    keys = events // hours
    texts = [
        f"SELECT {AGGREGATES} FROM readings [RANGE {range} hours SLIDE 1 hour] GROUP BY key HAVING count(*) > 1000"
        for range in (24, 12)
    ]
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as place:
        full, empty = Path(place, "full"), Path(place, "empty")
        for hour in range(hours):
            write_readings(full, hour, np.arange(keys), hour * HOUR)
        for number in range(rounds):
            for folder in (full, empty):
                chosen = np.arange(ROUND) * (keys // ROUND)
                write_readings(folder, hours + number, chosen, hours * HOUR + 60 * number)
        over_full, over_empty = run(full, texts), run(empty, texts)
    with_state = statistics.median(seconds(over_full[hours + WARM :]))
    without = statistics.median(seconds(over_empty[WARM:]))
    size = over_full[-1].state_bytes / 2**20
    note = f"{with_state:.3f} s per round over {size:.0f} MiB, {without:.3f} s over none"
    details = stages(over_full[hours + WARM :], over_empty[WARM:])
    return Outcome("closes nothing: full / empty", with_state / without, "ratio", 1.3, "<=", note, details)


def closing_range(repeats: int, *, events: int = 3_000, rounds: int = 12) -> Outcome:
    """Rounds that each close one window, over a minute of `events` keys: windows of a day, and of an hour."""
    medians, measured = [], []
    for hours in (24, 1):
        text = f"SELECT {AGGREGATES} FROM readings [RANGE {hours} hours SLIDE 1 minute] GROUP BY key"
        with tempfile.TemporaryDirectory(prefix="windloom-bench-") as place:
            for hour in range(hours):
                write_minutes(Path(place), hour, events, range(60 * hour, 60 * (hour + 1)))
            for number in range(rounds):
                write_minutes(Path(place), hours + number, events, range(60 * hours + number, 60 * hours + number + 1))
            found = run(Path(place), [text])[hours + WARM :]
        measured.append(found)
        medians.append(statistics.median(seconds(found)))
    note = f"{medians[0]:.3f} s per round over a day, {medians[1]:.3f} s over an hour; {events:,} keys"
    details = stages(*measured)
    return Outcome("closing round: 24 hours / 1 hour", medians[0] / medians[1], "ratio", 1.5, "<=", note, details)


def longest_round(repeats: int, *, events: int = 60) -> Outcome:
    """So many rounds, each a minute of 10,000 keys: windows close, slices expire and snapshots are taken meanwhile."""
    found, _, _ = rounds_of_minutes(events)
    every = seconds(found)
    longest, median = max(every), statistics.median(every)
    note = f"longest {longest:.3f} s, median {median:.3f} s; {found[-1].state_bytes / 2**20:.0f} MiB kept"
    return Outcome("longest / median round", longest / median, "ratio", 2.5, "<=", note, {"seconds": every})


def written(repeats: int, *, events: int = 60) -> Outcome:
    """The bytes of all files that the same rounds write, against those of the cells that they bring."""
    found, wrote, per_cell = rounds_of_minutes(events)
    brought = sum(progress.partials for progress in found) * per_cell
    parts = ", ".join(f"{size / brought:.2f} {folder}" for folder, size in wrote.most_common() if size > brought / 100)
    note = f"{wrote.total() / 2**20:.0f} MiB written, {brought / 2**20:.0f} MiB brought: {parts}"
    return Outcome("bytes written / bytes brought", wrote.total() / brought, "ratio", 4, "<=", note, dict(wrote))


def restart(repeats: int, *, events: int = 2_000_000, hours: int = 10) -> Outcome:
    """From a start with a checkpoint of `events` cells, and of none, to the end of its first round, which is small."""
    keys = events // hours
    text = f"SELECT {AGGREGATES} FROM readings [RANGE 24 hours SLIDE 1 hour] GROUP BY key HAVING count(*) > 1000"
    took: list[float] = []
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as place:
        for name, filled in (("full", hours), ("empty", 0)):
            folder, checkpoint = Path(place, name), Path(place, f"{name} checkpoint")
            for hour in range(filled):
                write_readings(folder, hour, np.arange(keys), hour * HOUR)
            for number in range(SETTLED):
                write_readings(folder, filled + number, np.arange(ROUND), hours * HOUR + 60 * number)
            run(folder, [text], checkpoint=checkpoint)
            again = []
            for number in range(SETTLED, SETTLED + max(3, repeats)):
                write_readings(folder, filled + number, np.arange(ROUND), hours * HOUR + 60 * number)
                begun = time.perf_counter()
                run(folder, [text], checkpoint=checkpoint)
                again.append(time.perf_counter() - begun)
            took.append(statistics.median(again))
    note = f"{took[0]:.2f} s with {events / 1e6:.0f}M cells, {took[1]:.2f} s with none"
    return Outcome("restart to the first round: full / empty", took[0] / took[1], "ratio", 2, "<=", note)


def rounds_of_minutes(rounds: int, hours: int = 2) -> tuple[list[RoundProgress], Counter[str], float]:
    """Return the rounds behind the hours that a window covers, the bytes they wrote by folder, those of a cell."""
    text = f"SELECT {AGGREGATES} FROM readings [RANGE {hours} hours SLIDE 1 minute] GROUP BY key"
    wrote: list[Counter[str]] = []
    per_cell: list[float] = []
    written = Counter[str]()

    def watch(progress: RoundProgress, cells: Mapping[int, Cells]) -> None:
        wrote.append(written.copy())
        fine = [each for each in every(cells) if each.level == 0]
        per_cell.append(sum(each.size for each in fine) / max(1, sum(each.cells for each in fine)))

    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as place:
        for hour in range(hours):
            write_minutes(Path(place), hour, ROUND, range(60 * hour, 60 * (hour + 1)))
        for number in range(SETTLED + rounds):
            minute = 60 * hours + number
            write_minutes(Path(place), hours + number, ROUND, range(minute, minute + 1))
        with files_written(written):
            found = run(Path(place), [text], watch)
    return found[hours + SETTLED :], wrote[-1] - wrote[hours + SETTLED - 1], per_cell[-1]


def seconds(rounds: Sequence[RoundProgress]) -> list[float]:
    """Return how long each took, with the snapshot that it waited for."""
    return [progress.total_seconds for progress in rounds]


def stages(*runs: Sequence[RoundProgress]) -> dict[str, object]:
    """Return the median milliseconds of each stage of a round, for each run."""
    names = dict.fromkeys(name for run in runs for progress in run for name in progress.seconds)

    def median(run: Sequence[RoundProgress], name: str) -> float:
        return round(1000 * statistics.median(progress.seconds.get(name, 0.0) for progress in run), 1)

    return {name: [median(run, name) for run in runs] for name in names}


def write_minutes(folder: Path, number: int, keys: int, minutes: range) -> None:
    seconds_of_rows = np.repeat(np.fromiter(minutes, np.int64) * MINUTE, keys)
    write_readings(folder, number, np.tile(np.arange(keys), len(minutes)), seconds_of_rows)


@contextmanager
def files_written(written: Counter[str]) -> Iterator[None]:
    """Count the bytes of every durable file, by its folder."""

    def counting(path: str | os.PathLike[str]) -> None:
        if os.path.isfile(path):
            written[Path(path).parent.name] += os.path.getsize(path)
        sync_file(path)

    with patch("windloom.checkpoint.storage.sync_file", counting):
        yield


def run(
    folder: Path,
    texts: Sequence[str],
    watch: Callable[[RoundProgress, Mapping[int, Cells]], None] = lambda progress, cells: None,
    checkpoint: Path | None = None,
) -> list[RoundProgress]:
    """Return the rounds of a stream over the files of a folder; `watch` is called after each, with what is kept."""
    spark, rounds = session(), list[RoundProgress]()
    loom = Loom(spark)
    loom.stream("readings", followed(spark, folder), time="ts", rate=ROUND)
    for number, text in enumerate(texts):
        loom.query(f"q{number}", text)

    started, handles = threading.Event(), list[Handle]()

    def done(progress: RoundProgress) -> None:
        started.wait()  # a round may be done before there is a handle
        watch(progress, handles[0]._loop.state.cells)
        rounds.append(progress)

    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as own:
        handles.append(loom.start("memory", checkpoint=checkpoint or own, trigger=NOW, progress=done, adapt=False))
        started.set()
        handles[0].await_termination()
    return rounds


STATE_WORKLOADS = {
    "state_closes_nothing": closes_nothing,
    "state_closing_range": closing_range,
    "state_longest_round": longest_round,
    "state_written": written,
    "state_restart": restart,
}
