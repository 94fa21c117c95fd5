"""Segments of a state as files of its checkpoint: written once, verified, named by errors, and never left behind."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support.disks import fill, small_disk
from support.durable import make_batches, reported, run_killed_in_segments, run_stream, small_segments
from support.lives import whole_life
from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.state_codec import encode
from windloom.checkpoint.storage import LocalStorage, watched
from windloom.errors import WindloomError

BATCHES = make_batches(7, 12)


def files(folder: Path) -> dict[str, int]:
    """The files of segments, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "checkpoint" / "segments").glob("*.arrow")}


def test_each_segment_is_written_once_and_those_that_no_snapshot_names_are_removed(tmp_path: Path) -> None:
    written: list[str] = []
    with small_segments():
        run_stream(tmp_path, BATCHES[:6])
        before = files(tmp_path)
        with watched(written.append):
            run_stream(tmp_path, BATCHES)
        run_stream(tmp_path, BATCHES)
    after = files(tmp_path)
    assert before
    assert after
    assert all(after[name] == before[name] for name in before.keys() & after.keys())
    assert written.count("after segment") >= len(after.keys() - before.keys())
    checkpoint = Checkpoint.read_only(LocalStorage(tmp_path / "checkpoint"), "here")
    states = [checkpoint.read_snapshot(round).state for round in checkpoint.snapshots()]
    named = {
        f"{each.name}.arrow" for state in states for held in state.cells.segments.values() for each in held.segments
    }
    assert named == after.keys()


def test_a_segment_that_is_changed_cut_short_or_gone_is_named_and_never_answered_from(tmp_path: Path) -> None:
    with small_segments():
        run_stream(tmp_path, BATCHES)
        whole = encode(run_stream(tmp_path, BATCHES))  # a start drops what the last snapshot has replaced
        for name in files(tmp_path):
            path = tmp_path / "checkpoint" / "segments" / name
            data = path.read_bytes()
            # Of a version that is not read yet, changed, cut short, and gone.
            newer = data.replace(b'"segment", "version": 1', b'"segment", "version": 9', 1)
            for damaged in (newer, data[:-9] + bytes([data[-9] ^ 4]) + data[-8:], data[:-1], None):
                path.unlink()
                if damaged is not None:
                    path.write_bytes(damaged)
                if not _is_named(tmp_path, name):
                    continue  # only the older snapshot has it
                with pytest.raises(WindloomError, match=f"segments/{name}") as error:
                    encode(run_stream(tmp_path, BATCHES))
                assert error.value.hint
            path.write_bytes(data)
        assert encode(run_stream(tmp_path, BATCHES)) == whole, "nothing was lost"


def _is_named(folder: Path, name: str) -> bool:
    newest = max((folder / "checkpoint" / "snapshots").glob("*.state"))
    return name.removesuffix(".arrow").encode() in newest.read_bytes()


def test_a_disk_that_is_full_ends_the_stream_with_its_rounds_intact(tmp_path: Path) -> None:
    with small_segments(), small_disk(tmp_path / "full" / "checkpoint" / "segments") as disk:
        ballast = fill(disk)
        with pytest.raises(WindloomError, match=r"the disk is full: cannot write '.*segments/.*arrow'"):
            run_stream(tmp_path / "full", BATCHES)
        committed = len(list((tmp_path / "full" / "checkpoint" / "commits").glob("*.json")))
        assert committed >= 3, "the snapshot after three rounds fails, and the rounds stay"
        ballast.unlink()
        state = run_stream(tmp_path / "full", BATCHES)
        assert encode(state) == encode(run_stream(tmp_path / "whole", BATCHES))
    assert reported(tmp_path / "full") == reported(tmp_path / "whole")


def test_a_process_that_is_killed_while_a_thread_writes_segments_goes_on_where_it_was(tmp_path: Path) -> None:
    for fault in ("before rename:20", "before segment:1", "after segment:2", "before snapshot:1", "after snapshot:1"):
        assert whole_life(run_killed_in_segments, tmp_path / "killed", fault=fault) == -signal.SIGKILL
    assert whole_life(run_killed_in_segments, tmp_path / "killed") == 0
    run_stream(tmp_path / "tables", BATCHES)
    assert reported(tmp_path / "killed") == reported(tmp_path / "tables")
