"""Sinks that others read, under crashes at any fault point and under kill -9: no row is lost, none is there twice."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.durable import STREAMS, Batch, make_batches, run_killed, run_stream
from support.lives import whole_life
from support.micro_batches import CrashError, answers_in, crash_after
from support.places import Places, Rows, row
from support.postgres import Server
from support.receiver import Receiver
from windloom.checkpoint.storage import watched
from windloom.language.select import parse_query

ROUNDS = 12
#: Of the fault points of two rounds, with three sinks some 140, every so manieth; `WINDLOOM_SINK_STRIDE=1` for all.
STRIDE = int(os.environ.get("WINDLOOM_SINK_STRIDE", "11"))


@lru_cache(maxsize=32)
def expected(seed: int, rounds: int = ROUNDS) -> tuple[Rows, Rows]:
    """Of an undisturbed run all rows; and the last one of each window and group, which is what an upsert leaves."""
    return left_by(make_batches(seed, rounds))


def left_by(batches: Sequence[Batch]) -> tuple[Rows, Rows]:
    with tempfile.TemporaryDirectory() as name:
        run_stream(Path(name), batches)
        done = sorted(answers_in(Path(name)).items())
    every: Rows = Counter()
    last: dict[Any, dict[str, Any]] = {}
    for _, found in done:
        for query, rows in found.items():
            for values in rows:
                every[row(query, values)] += 1
                key = (query, tuple(values), values["window_start"], values["window_end"], values.get("k"))
                last[key] = values
                if values.get("report") == "withdrawn":
                    del last[key]
    return every, Counter(row(key[0], values) for key, values in last.items())


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 3),
    crashes=st.lists(st.integers(0, 150), min_size=1, max_size=5),
)
def test_any_crashes_leave_every_row_once(postgres: Server, receiver: Receiver, seed: int, crashes: list[int]) -> None:
    batches = make_batches(seed, ROUNDS)
    with tempfile.TemporaryDirectory() as name:
        places = Places(Path(name), postgres, receiver)
        with patch("windloom.sinks.delivery._FIRST_PAUSE", 0.001):
            for crash in crashes:
                try:
                    with crash_after(crash):
                        run_stream(Path(name), batches, sinks=places.targets)
                except CrashError:
                    pass
            run_stream(Path(name), batches, sinks=places.targets)
        places.check(*expected(seed))


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 9),
    crashes=st.lists(st.integers(0, 90), min_size=1, max_size=4),
)
def test_early_rows_are_there_once_and_replaced_where_rows_have_keys(
    postgres: Server, receiver: Receiver, seed: int, crashes: list[int]
) -> None:
    text = "SELECT k, count(*) AS n FROM s [RANGE 8 us SLIDE 4 us] GROUP BY k HAVING count(*) < 4 EMIT EARLY EVERY 3 us"
    queries = {"a": parse_query("a", text, STREAMS), "b": parse_query("b", text.partition(" EMIT")[0], STREAMS)}
    batches = [batch._replace(queries=queries) for batch in make_batches(seed, 5)]
    with tempfile.TemporaryDirectory() as name:
        places = Places(Path(name), postgres, receiver)
        with patch("windloom.sinks.delivery._FIRST_PAUSE", 0.001):
            for crash in crashes:
                with suppress(CrashError), crash_after(crash):
                    run_stream(Path(name), batches, sinks=places.targets)
            run_stream(Path(name), batches, sinks=places.targets)
        every, last = left_by(batches)
        assert any(("report", "withdrawn") in values for _, values in every)
        places.check(every, last)


def test_a_crash_between_any_two_writes_leaves_every_row_once(
    tmp_path: Path, postgres: Server, receiver: Receiver
) -> None:
    """Two rounds, interrupted at one fault point after the other: the first makes all tables, the second finds them."""
    batches = make_batches(7, 2)
    passed: list[str] = []
    with patch("windloom.sinks.delivery._FIRST_PAUSE", 0.001):
        places = Places(tmp_path / "undisturbed", postgres, receiver)
        receiver.posts = 0
        with watched(passed.append):
            run_stream(tmp_path / "undisturbed", batches, sinks=places.targets)
        assert passed.count("before sink") > 30
        for crash in range(0, len(passed), STRIDE):
            folder = tmp_path / str(crash)
            places = Places(folder, postgres, receiver)
            receiver.posts = 0  # it misbehaves by their number: so it does at the same points
            with pytest.raises(CrashError), crash_after(crash):
                run_stream(folder, batches, sinks=places.targets)
            run_stream(folder, batches, sinks=places.targets)
            places.check(*expected(7, len(batches)))
            shutil.rmtree(folder)


def test_a_process_killed_between_writes_to_sinks_leaves_every_row_once(
    tmp_path: Path, postgres: Server, receiver: Receiver
) -> None:
    places = Places(tmp_path, postgres, receiver)
    faults = ["before sink:5", "after sink:9", "before sink:16", "after sink:23", "before commit:1"]
    for fault in faults:
        assert whole_life(run_killed, tmp_path, places.targets, fault=fault) == -signal.SIGKILL, fault
    assert whole_life(run_killed, tmp_path, places.targets) == 0
    places.check(*expected(7))
