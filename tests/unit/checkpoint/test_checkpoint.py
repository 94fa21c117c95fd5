"""The checkpoint: plans are pinned before a round runs, little is kept, and what cannot be trusted is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.catalogs import STREAM, make_query
from support.durable import STREAMS as DELAYED
from support.durable import make_batches, plan_of_record, run_stream
from support.frames_on_disk import of_version
from support.native import taken_of_plan
from support.rounds import plan_of
from windloom.checkpoint.checkpoint import Checkpoint, RoundStart
from windloom.checkpoint.frames import DamagedError
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.recovery import recover
from windloom.checkpoint.storage import LocalStorage
from windloom.errors import WindloomError
from windloom.model import Aggregate, DataType, TimeWindow
from windloom.model.time import TICK_MIN
from windloom.optimizer.stages import PlanOptions
from windloom.plan.costs import Choices, TreeChoice
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

STREAMS = {"s": STREAM}
CHOICES = Choices.of([TreeChoice(("a",)), TreeChoice(("b",))], {})
PLAN = plan_of({"q": make_query("q", TimeWindow(4, 2), [Aggregate("count")], ("k",), where="b")}, PlanOptions())
#: Two cells, one of them of a tuple that came late.
TAKEN = taken_of_plan(
    PLAN, [{"tick": 1, "k": "a", "b": True}, {"tick": 9, "k": None, "b": True}], State(frontiers={"s": 7})
)


@contextmanager
def opened(folder: Path, streams: dict[str, Any] | None = None) -> Iterator[Checkpoint]:
    checkpoint = Checkpoint.open(LocalStorage(folder), streams or STREAMS)
    try:
        yield checkpoint
    finally:
        checkpoint.close()


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_round_keeps_the_plan_it_began_with(tmp_path: Path) -> None:
    with opened(tmp_path) as checkpoint:
        assert checkpoint.newest_plan() is None
        checkpoint.record_plan(PlanRecord(0, 0, {"a": "x"}))
        assert checkpoint.begin(0).version == 0
        checkpoint.record_plan(PlanRecord(1, 1, {"a": "y", "b": "x"}, {"history_ticks": "7"}, CHOICES))
        checkpoint.record_plan(PlanRecord(2, 0, {"c": "x"}))
        assert checkpoint.begin(0).version == 0
        checkpoint.write_log(RoundLog(0, 0, RoundInput()))
    with opened(tmp_path) as checkpoint:
        assert checkpoint.begin(0).version == 0
        assert checkpoint.begin(1).version == 2
        assert [plan.version for plan in checkpoint.plans()] == [0, 1, 2]
        second = checkpoint.plan(1)
        assert second == PlanRecord(1, 1, {"a": "y", "b": "x"}, {"history_ticks": "7"}, CHOICES)
        assert second.history_ticks == 7


@pytest.mark.parametrize("batch", [0, None])
def test_a_round_that_was_not_logged_begins_anew_at_the_next_start(tmp_path: Path, batch: int | None) -> None:
    with opened(tmp_path) as checkpoint:
        checkpoint.record_plan(PlanRecord(0, 0, {"a": "x"}))
        assert checkpoint.begin(0, batch).version == 0
        assert checkpoint.first_free_round == 1, "while it runs"
    with opened(tmp_path) as checkpoint:
        assert checkpoint.first_free_round == 0
        checkpoint.record_plan(PlanRecord(1, 0, {"b": "x"}))
        assert checkpoint.begin(0, batch).version == 1


def test_a_round_that_ends_a_stream_stays_begun(tmp_path: Path) -> None:
    with opened(tmp_path) as checkpoint:
        checkpoint.record_plan(PlanRecord(0, 0, {"a": "x"}))
        checkpoint.begin(0, 0)
        checkpoint.commit(0, {})
        checkpoint.begin(1)
    with opened(tmp_path) as checkpoint:
        begun = checkpoint.begun(1)
        assert begun is not None
        assert begun.batch is None


def test_only_a_round_that_is_logged_and_not_committed_is_noted_as_failed(tmp_path: Path) -> None:
    with opened(tmp_path) as checkpoint:
        checkpoint.record_plan(PlanRecord(0, 0, {"a": "x"}))
        checkpoint.begin(0, 0)
        checkpoint.note_failure(0)
        assert not checkpoint.has_failed(0)
        checkpoint.write_log(RoundLog(0, 0, RoundInput()))
        checkpoint.note_failure(0)
        assert checkpoint.has_failed(0)
    with opened(tmp_path) as checkpoint:
        assert checkpoint.has_failed(0)
        assert checkpoint.begun(0) == RoundStart(0, 0, has_failed=True)
        checkpoint.commit(0, {})
        checkpoint.begin(1, 1)
        assert not checkpoint.has_failed(1)


def test_a_plan_holds_from_its_round_on(tmp_path: Path) -> None:
    with opened(tmp_path) as checkpoint:
        checkpoint.record_plan(PlanRecord(0, 0, {"a": "x"}))
        checkpoint.record_plan(PlanRecord(1, 2, {"b": "x"}))
        assert [checkpoint.begin(round).version for round in range(4)] == [0, 0, 1, 1]


def test_a_round_without_any_plan_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as checkpoint, pytest.raises(WindloomError, match="round 0 has no plan"):
        checkpoint.begin(0)


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    given = RoundInput(TAKEN, {"s": 7, "t": TICK_MIN}, {"s": 11, "t": -4}, {"s": 3}, idle=frozenset({"t"}))
    table = pa.table({"tick": [1, 2], "s0": pa.array([3, 0]), "x0": pa.chunked_array([["a"], [None]])})
    log = RoundLog(5, 3, given, {"s": 2}, tuples={4: table, 6: table.slice(0, 0)})
    with opened(tmp_path) as checkpoint:
        assert checkpoint.read_log(5) is None
        checkpoint.write_log(log)
        found = checkpoint.read_log(5)
    assert found is not None
    assert found.to_bytes() == log.to_bytes()
    assert (found.round, found.plan_version, found.untimed, found.tuples) == (5, 3, {"s": 2}, log.tuples)
    assert found.tuples[6].schema == table.schema
    assert replace(found.input, taken=TAKEN) == given
    assert found.input.taken.cells[0].keys == TAKEN.cells[0].keys
    behind, expected = found.input.taken.behind[0], TAKEN.behind[0]
    assert (behind.starts.tolist(), behind.tuples.tolist()) == (expected.starts.tolist(), expected.tuples.tolist())
    assert [word.tolist() for word in behind.words] == [word.tolist() for word in expected.words]


def test_progress_is_kept_by_round(tmp_path: Path) -> None:
    with opened(tmp_path) as checkpoint:
        assert checkpoint.last_committed == -1
        for round in range(3):
            checkpoint.commit(round, {"round": round, "seconds": {"step": 0.1}})
        assert checkpoint.last_committed == 2
        assert checkpoint.progress(1) == {"round": 1, "seconds": {"step": 0.1}}
        (tmp_path / "commits" / "000000001.json").write_bytes(b"")
        assert [progress["round"] for progress in checkpoint.recent_progress(2)] == [2]


def test_only_what_recovery_may_need_is_kept(tmp_path: Path) -> None:
    run_stream(tmp_path, make_batches(3, 40), snapshot_rounds=5)
    kept = names(tmp_path / "checkpoint")
    assert {name for name in kept if name.startswith("snapshots")} == {
        "snapshots/000000034.state",
        "snapshots/000000039.state",
    }
    assert {name for name in kept if name.startswith("log")} == {f"log/{i:09}.arrow" for i in range(35, 40)}
    assert {name for name in kept if name.startswith("commits")} == {f"commits/{i:09}.json" for i in range(8, 40)}
    assert {name for name in kept if name.startswith("begun")} == {f"begun/{i:09}.json" for i in range(34, 40)}
    with opened(tmp_path / "checkpoint", DELAYED) as checkpoint:
        oldest = checkpoint.read_snapshot(34).plan_version
        assert checkpoint.plans()[0].version == oldest
        checkpoint.retain(keep_rounds=2)
        assert names(tmp_path / "checkpoint") == kept


def test_logs_of_the_newest_rounds_can_be_kept_longer(tmp_path: Path) -> None:
    with opened(tmp_path) as checkpoint:
        checkpoint.record_plan(PlanRecord(0, 0, {}))
        for round in range(10):
            checkpoint.begin(round)
            checkpoint.write_log(RoundLog(round, 0, RoundInput()))
            checkpoint.commit(round, {})
            checkpoint.snapshot(round, State())
            checkpoint.retain(keep_rounds=4, keep_snapshots=3)
        assert checkpoint.snapshots() == [7, 8, 9]
        assert len(checkpoint.recent_progress(99)) == 10, "commits hold what rounds have observed"
        assert [checkpoint.read_log(round) is not None for round in (5, 6)] == [False, True]


def test_a_damaged_snapshot_falls_back_to_the_one_before(tmp_path: Path) -> None:
    expected = run_stream(tmp_path, make_batches(4, 20), snapshot_rounds=5)
    newest = tmp_path / "checkpoint" / "snapshots" / "000000019.state"
    data = newest.read_bytes()
    newest.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with opened(tmp_path / "checkpoint", DELAYED) as checkpoint:
        found = recover(checkpoint, plan_of_record)
    assert found.next_round == 20
    assert found.state.frontiers == expected.frontiers
    assert found.state.nbytes == expected.nbytes


def flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 8]) + data[middle + 1 :]


@pytest.mark.parametrize("damage", [flip, lambda data: data[: len(data) // 2], lambda data: b""])
@pytest.mark.parametrize(
    "name", ["windloom.json", "plans/000000000.json", "log/000000001.arrow", "snapshots/000000001.state"]
)
def test_a_damaged_file_is_refused_by_name_with_what_to_do(tmp_path: Path, name: str, damage: Any) -> None:
    committed(tmp_path)
    path = tmp_path / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(WindloomError, match=f"'{name}' is damaged") as error, opened(tmp_path) as checkpoint:
        read(checkpoint, name)
    assert error.value.hint


def committed(folder: Path) -> None:
    with opened(folder) as checkpoint:
        checkpoint.record_plan(PlanRecord(0, 0, {"a": next(iter(make_batches(1, 1)[0].queries))}))
        for round in range(2):
            checkpoint.begin(round)
            checkpoint.write_log(RoundLog(round, 0, RoundInput(TAKEN, seen={"s": 1})))
            checkpoint.commit(round, {})
        checkpoint.snapshot(1, State({}, {"s": 3}))


def read(checkpoint: Checkpoint, name: str) -> None:
    if name.startswith("plans"):
        checkpoint.newest_plan()
    if name.startswith("log"):
        checkpoint.read_log(1)
    if name.startswith("snapshots"):
        checkpoint.read_snapshot(1)
    if name.startswith("begun"):
        checkpoint.begin(1)


@pytest.mark.parametrize(
    "name",
    [
        "windloom.json",
        "plans/000000000.json",
        "begun/000000001.json",
        "log/000000001.arrow",
        "snapshots/000000001.state",
    ],
)
@pytest.mark.parametrize(("version", "way_on"), [(99, "or a newer one"), (0, "start with a new checkpoint")])
def test_a_file_of_another_version_is_refused_by_name(tmp_path: Path, name: str, version: int, way_on: str) -> None:
    committed(tmp_path)
    path = tmp_path / name
    path.write_bytes(of_version(path.read_bytes(), version))
    told = f"'{name}' is of version {version}"
    with pytest.raises(WindloomError, match=told) as error, opened(tmp_path) as checkpoint:
        read(checkpoint, name)
    assert "version" in error.value.detail
    assert way_on in error.value.hint


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("windloom.json", b'{\n "windloom": "checkpoint",\n "version": 2,'),
        ("plans/000000000.json", b'{\n "windloom": "plan",\n "version": 2,'),
        ("log/000000001.arrow", b"WLOOMLOG\x05\x00\x00\x00"),
        ("snapshots/000000001.state", b"WLOOMSNP\x01\x00\x00\x00"),
    ],
)
def test_a_file_from_before_there_was_one_format_is_refused_by_name(tmp_path: Path, name: str, begins: bytes) -> None:
    """A snapshot is not passed over for the log, as a damaged one is: the log is of that format too."""
    committed(tmp_path)
    (tmp_path / name).write_bytes(begins + (tmp_path / name).read_bytes())
    told = f"'{name}' is of an older format"
    with pytest.raises(WindloomError, match=told) as error, opened(tmp_path) as checkpoint:
        read(checkpoint, name)
    assert not isinstance(error.value, DamagedError)
    assert "start with a new checkpoint" in error.value.hint


def test_a_missing_log_is_told_by_its_round(tmp_path: Path) -> None:
    run_stream(tmp_path, make_batches(4, 6), snapshot_rounds=99)
    (tmp_path / "checkpoint" / "log" / "000000003.arrow").unlink()
    with (
        opened(tmp_path / "checkpoint", DELAYED) as checkpoint,
        pytest.raises(WindloomError, match="the log of round 3 is missing"),
    ):
        recover(checkpoint, plan_of_record)


def test_a_checkpoint_without_its_identity_is_refused(tmp_path: Path) -> None:
    committed(tmp_path)
    (tmp_path / "windloom.json").unlink()
    with pytest.raises(WindloomError, match=r"'windloom.json' is missing"), opened(tmp_path):
        pass


def test_columns_may_come_and_delays_may_change(tmp_path: Path) -> None:
    first = list(STREAM.columns)
    with opened(tmp_path) as checkpoint:
        assert (checkpoint.changes, checkpoint.columns) == ([], {"s": first})
    columns = {"new": DataType.parse("int"), **STREAM.columns}
    changed = {"s": replace(STREAM, delay_ticks=5_000_000, columns=columns)}
    for changes in (
        ["stream 's': column 'new' (int) is new", "stream 's': its delay is 5 seconds from now on, and was 0 seconds"],
        [],
    ):
        with opened(tmp_path, changed) as checkpoint:
            assert checkpoint.changes == changes
            assert checkpoint.columns == {"s": [*first, "new"]}, "behind those that were there"
    with pytest.raises(WindloomError, match="another catalog") as error, opened(tmp_path):
        pass
    assert error.value.detail == "stream 's': column 'new' is missing here and int in the checkpoint"
    assert error.value.hint.startswith("add it: df.withColumn('new', lit(None).cast('int'))")


@pytest.mark.parametrize(
    ("streams", "difference"),
    [
        ({"s": replace(STREAM, time="n")}, "stream 's': its time is 'n in us' here and 'tick in us' in"),
        (
            {"s": replace(STREAM, columns={**STREAM.columns, "x": DataType.parse("int"), "z": DataType.parse("int")})},
            "column 'x' is int here and double in the checkpoint",
        ),
        ({"s": STREAM, "t": STREAM}, "stream 't' is not in the checkpoint"),
        ({"t": STREAM}, "stream 's' of the checkpoint is not in this catalog"),
    ],
)
def test_the_checkpoint_of_another_catalog_is_refused_with_the_difference(
    tmp_path: Path, streams: dict[str, Any], difference: str
) -> None:
    with opened(tmp_path):
        pass
    with pytest.raises(WindloomError, match="belongs to another catalog") as error, opened(tmp_path, streams):
        pass
    assert difference in error.value.detail
    assert error.value.hint.endswith("; or give this catalog a checkpoint of its own"), "there is another way out"
    with opened(tmp_path, {"s": replace(STREAM, events_per_second=3.0)}):
        pass  # a rate is no part of what a stream is, and the refused one holds no lock
