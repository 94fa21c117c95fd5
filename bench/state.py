"""Workloads of the state in process: what a round costs as state, ranges and rounds grow, and what it writes."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.measure import Outcome
from bench.operator import followed, write_readings
from bench.sessions import session
from bench.streams import NOW
from windloom import Loom
from windloom.engine.progress import RoundProgress

#: Rounds that are not counted, once the state is there: kernels compile, and memory is mapped.
WARM = 4
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
    """The bytes that the same rounds write, logs and commits included, against those of the cells that they bring."""
    found, wrote, per_cell = rounds_of_minutes(events)
    brought = sum(progress.partials for progress in found) * per_cell
    note = f"{wrote / 2**20:.0f} MiB written, {brought / 2**20:.0f} MiB brought"
    return Outcome("bytes written / bytes brought", wrote / brought, "ratio", 4, "<=", note)


def rounds_of_minutes(rounds: int, hours: int = 2) -> tuple[list[RoundProgress], int, float]:
    """Return the rounds behind the hours that a window covers, what they wrote, and the bytes of a cell."""
    text = f"SELECT {AGGREGATES} FROM readings [RANGE {hours} hours SLIDE 1 minute] GROUP BY key"
    wrote: list[int] = []
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as place:
        for hour in range(hours):
            write_minutes(Path(place), hour, ROUND, range(60 * hour, 60 * (hour + 1)))
        for number in range(WARM + rounds):
            minute = 60 * hours + number
            write_minutes(Path(place), hours + number, ROUND, range(minute, minute + 1))
        found = run(Path(place), [text], lambda progress: wrote.append(written_bytes()))
    kept = found[-1]
    per_cell = kept.state_bytes / max(1, sum(kept.cells.values()))
    return found[hours + WARM :], wrote[-1] - wrote[hours + WARM - 1], per_cell


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


def written_bytes() -> int:
    """Return what this process has written so far, to files and to Spark."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar:"))


def run(
    folder: Path, texts: Sequence[str], watch: Callable[[RoundProgress], None] = lambda progress: None
) -> list[RoundProgress]:
    """Return the rounds of a stream over the files of a folder, one after another."""
    spark, rounds = session(), list[RoundProgress]()
    loom = Loom(spark)
    loom.stream("readings", followed(spark, folder), time="ts", rate=ROUND)
    for number, text in enumerate(texts):
        loom.query(f"q{number}", text)

    def done(progress: RoundProgress) -> None:
        watch(progress)
        rounds.append(progress)

    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as checkpoint:
        loom.start("memory", checkpoint=checkpoint, trigger=NOW, progress=done, adapt=False).await_termination()
    return rounds


STATE_WORKLOADS = {
    "state_closes_nothing": closes_nothing,
    "state_closing_range": closing_range,
    "state_longest_round": longest_round,
    "state_written": written,
}
