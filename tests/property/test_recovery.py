"""Crashes at any fault point, and files that were torn: what is reported is what an undisturbed run reports."""

from __future__ import annotations

import signal
import tempfile
from functools import lru_cache
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.durable import make_batches, reported, run_killed, run_stream
from support.lives import whole_life
from support.micro_batches import CrashError, crash_after, crash_at
from windloom.checkpoint.state_codec import encode
from windloom.checkpoint.storage import FAULT_POINTS, watched

ROUNDS = 12


@lru_cache(maxsize=32)
def undisturbed(seed: int) -> tuple[dict[int, dict[str, list[str]]], bytes]:
    with tempfile.TemporaryDirectory() as folder:
        state = run_stream(Path(folder), make_batches(seed, ROUNDS))
        return reported(Path(folder)), encode(state)


@settings(max_examples=examples(25), deadline=None)
@example(0, [0, 14, 24, 40, 0], ["begun", "begun", "begun", "snapshots", "snapshots"], 0)
@given(
    seed=st.integers(0, 5),
    crashes=st.lists(st.integers(0, 60), min_size=1, max_size=8),
    torn=st.lists(st.sampled_from(["begun", "log", "commits", "snapshots", ""]), max_size=8),
    cut=st.integers(0, 40),
)
def test_any_crashes_and_torn_last_files_change_no_answer(
    seed: int, crashes: list[int], torn: list[str], cut: int
) -> None:
    rounds = make_batches(seed, ROUNDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for crash, tear in zip(crashes, torn + [""] * len(crashes), strict=False):
            before = set((folder / "checkpoint").rglob("*"))
            try:
                with crash_after(crash):
                    run_stream(folder, rounds)
            except CrashError:
                tear_last(folder / "checkpoint", tear, cut, before)
        state = run_stream(folder, rounds)
        answers, bytes_ = undisturbed(seed)
        assert reported(folder) == answers
        assert encode(state) == bytes_


def tear_last(checkpoint: Path, folder: str, cut: int, before: set[Path]) -> None:
    """Leave the first bytes of what was written last: a log or a begun only while its round is not committed.

    Nor a snapshot that another life has left, or after which a round was committed: a crash does not tear what was
    complete before.
    """
    files = sorted((checkpoint / folder).glob("[0-9]*")) if folder else []
    committed = max([-1, *(int(path.stem) for path in (checkpoint / "commits").glob("[0-9]*"))])
    if folder == "snapshots" and files and (files[-1] in before or int(files[-1].stem) < committed):
        return
    if files and (folder in ("commits", "snapshots") or int(files[-1].stem) > committed):
        files[-1].write_bytes(files[-1].read_bytes()[:cut])


def test_every_fault_point_is_passed_and_survived(tmp_path: Path) -> None:
    rounds, passed = make_batches(1, ROUNDS), list[str]()
    with watched(passed.append):
        run_stream(tmp_path / "whole", rounds)
    assert set(passed) == set(FAULT_POINTS)
    for point in FAULT_POINTS:
        folder = tmp_path / point
        # Once a start, until it comes no further.
        for _ in range(2):
            try:
                with crash_at(point):
                    run_stream(folder, rounds)
            except CrashError:
                pass
        run_stream(folder, rounds)
        assert reported(folder) == undisturbed(1)[0]


def test_a_killed_process_goes_on_where_it_was(tmp_path: Path) -> None:
    faults = ["before rename:9", "after log:2", "before sink:1", "after commit:3"]
    for fault in faults:
        assert whole_life(run_killed, tmp_path, fault=fault) == -signal.SIGKILL
    assert whole_life(run_killed, tmp_path) == 0
    assert reported(tmp_path) == undisturbed(7)[0]
