"""kill -9 at named fault points and at random instants: the answers are those of an undisturbed run.

Every kill costs a start of Spark. WINDLOOM_KILLS says how many there are on each placement; with 30 or more every fault
point is among them, and `make kill` is that run.
"""

from __future__ import annotations

import datetime
import os
import random
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import stream_program
from support.files import put
from support.places import Places, in_parquet
from support.postgres import Server
from support.reader import Reader, shown
from support.receiver import Receiver
from windloom.checkpoint.storage import EMITTED_FAULT_POINTS, FAULT_POINTS, TUPLE_FAULT_POINTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = int(os.environ.get("WINDLOOM_KILLS", "1"))
TESTS = Path(__file__).resolve().parents[1]
#: Fault points that are not passed by every round.
_RARE = ("plan", "snapshot", "retain")
_MIDNIGHT = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)


def files(rng: random.Random) -> Iterator[list[tuple[Any, ...]]]:
    """Half a minute of trades a file, in disorder within the delay, and now and then one that is too late.

    Late ones come when the query that is added while the stream runs is there for certain: what it answers from
    history holds all tuples that have come by then.
    """
    for number in range(10_000):
        rows = []
        for i in range(12):
            late = 300 if number >= 12 and rng.random() < 0.05 else 0
            second = number * 30 + rng.randrange(30) - rng.randrange(25) * (i % 3 == 0) - late
            rows.append(
                (
                    _MIDNIGHT + datetime.timedelta(seconds=second),
                    rng.choice("ABC"),
                    rng.randrange(1000) / 8,
                    rng.randrange(1, 100),
                )
            )
        yield rows


def plan_of_kills(rng: random.Random, count: int) -> list[str | None]:
    """Fault points (with which passing), and None for a random instant; a third of all are random."""
    every = (*FAULT_POINTS, *TUPLE_FAULT_POINTS, *EMITTED_FAULT_POINTS)
    points: list[str | None] = [f"{point}:{1 if point.endswith(_RARE) else rng.randint(1, 3)}" for point in every]
    rng.shuffle(points)
    chosen = (points * (1 + count // len(points)))[: count - count // 3]
    chosen += [None] * (count - len(chosen))
    rng.shuffle(chosen)
    return chosen


def run_until_killed(folder: Path, options: Mapping[str, str], fault: str | None, rng: random.Random) -> bool:
    """Was the process killed; it may also have come to the end of its files first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])}
    if fault is not None:
        environment["WINDLOOM_FAULT"] = fault
    before = len(list((folder / "checkpoint" / "begun").glob("*")))
    command = [sys.executable, "-m", "support.stream_program", str(folder)]
    command += [f"{name}={value}" for name, value in options.items()]
    process = subprocess.Popen(command, env=environment)
    moments = rng.randrange(40)
    deadline = time.monotonic() + 600
    while fault is None and process.poll() is None and time.monotonic() < deadline:
        if len(list((folder / "checkpoint" / "begun").glob("*"))) > before:
            moments -= 1
        if moments < 0:
            process.kill()
        time.sleep(0.02)
    code = process.wait(timeout=600)
    assert code in (0, -signal.SIGKILL), code
    return code != 0


#: Rows of each query, by the round that reported them; a row that was written twice is there twice.
Reported = dict[str, dict[int, list[tuple[Any, ...]]]]


def reported(folder: Path) -> Reported:
    found: Reported = {}
    for file in (folder / "out").glob("*/*.parquet"):
        table: pa.Table = pq.read_table(file)
        for row in table.to_pylist():
            own = found.setdefault(row.pop("query"), {})
            own.setdefault(int(file.stem.split("-")[1]), []).append(tuple(row.values()))
    return found


def rows_of(rounds: dict[int, list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    return sorted((row for rows in rounds.values() for row in rows), key=repr)


def check_guests(found: Reported) -> int:
    """Queries that came and went report what "avg" does, round by round; how many they were.

    Not so in their first round: what they answer from history holds tuples that were too late for "avg".
    """
    guests = [rounds for name, rounds in found.items() if name.startswith("guest_")]
    for rounds in guests:
        windows = [row[:3] for row in rows_of(rounds)]
        assert len(set(windows)) == len(windows)
        for number in range(min(rounds) + 1, max(rounds) + 1):
            own = sorted(row[:-1] for row in rounds.get(number, []))
            assert own == sorted(found["avg"].get(number, [])), number
    return len(guests)


#: A stream is killed at most so many times, then another one with other tuples. Every other stream has the sink
#: `current` besides Parquet, and keeps all tuples, so that queries that are added begin with the past. The others have
#: sinks outside.
_MOST = 6
#: Seconds until a stream that is to end must have ended, on a machine with much else to do.
_PATIENCE = 1200
RUNS = [(part, is_current) for part in range(-(-KILLS // _MOST)) for is_current in (False, True)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be killed")
@pytest.mark.parametrize(("part", "is_current"), RUNS)
def test_killed_at_any_instant_the_stream_gives_the_rows_of_an_undisturbed_run(
    spark: SparkSession,
    postgres: Server,
    receiver: Receiver,
    tmp_path: Path,
    part: int,
    is_current: bool,
) -> None:
    """Of aggregates, joins, rows and changes; a reader of what is present sees only states that existed."""
    rng = random.Random(20_260_105 + part)
    coming = files(random.Random(7 + part))
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    places = Places(tmp_path, postgres, receiver)
    is_outside = not is_current
    sinks = {"current": str(disturbed / "current")} if is_current else places.targets if is_outside else {}
    alone = {"current": str(undisturbed / "current")} if is_current else {}
    names = stream_program.staying(alone)
    kept = "1 day" if is_current else None
    options = {**sinks, **({} if kept is None else {"keep_tuples": kept})}
    number = kills = missed = 0

    def more(count: int) -> None:
        nonlocal number
        for _ in range(count):
            rows = next(coming)
            put(disturbed / "in", f"{number:04d}", rows)
            put(undisturbed / "in", f"{number:04d}", rows)
            number += 1

    some = 2 if KILLS == 1 else 3  # files: every one costs a round, twice
    more(some)
    planned = deque(plan_of_kills(random.Random(20_260_105), KILLS)[part * _MOST :][:_MOST])
    with Reader(disturbed / "current", names) as reader:
        while planned:
            more(some)
            fault = planned.popleft()
            if run_until_killed(disturbed, options, fault, rng):
                kills += 1
            else:  # its files ended before it came there: again, with the next ones
                missed += 1
                planned.append(fault)
            assert missed <= 5, "fault points are not passed"
        more(some + 1)
        last = stream_program.start(spark, disturbed, sinks, finish=True, keep_tuples=kept)
        assert last.await_termination(_PATIENCE), "the stream does not end"
    existing = Reader(undisturbed / "current", names)
    alike = stream_program.start(
        spark, undisturbed, alone, finish=True, keep_tuples=kept, done=lambda _: existing.poll()
    )
    assert alike.await_termination(_PATIENCE), "the undisturbed stream does not end"
    left, right = reported(disturbed), reported(undisturbed)
    for name in (*names, "added"):
        assert rows_of(left[name]) == rows_of(right[name]), name
        assert left[name], name
    # When a query goes depends on the round its removal was recorded in: no row twice, none that differs.
    shorter, longer = sorted((rows_of(left["gone"]), rows_of(right["gone"])), key=len)
    assert len(set(rows_of(left["gone"]))) == len(rows_of(left["gone"]))
    assert set(shorter) <= set(longer)
    guests = check_guests(left)
    assert guests > 0
    if is_outside:
        places.check(in_parquet(disturbed / "out"))
    states = 0
    for name in names if is_current else ():
        assert reader.seen[name] <= existing.seen[name] | {frozenset()}, name
        assert shown(disturbed / "current" / name) == shown(undisturbed / "current" / name), name
        states += len(reader.seen[name])
    rows = sum(len(rows_of(place)) for place in left.values())
    print(
        f"{part}: {kills} kills, {number} files, {rows} rows, {guests} queries that came and went;"
        f" {reader.reads} reads of current tables meanwhile, which saw {states} states"
    )
