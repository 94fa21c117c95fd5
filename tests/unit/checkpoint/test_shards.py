"""Shards' files: names nobody else has, nothing but the recorded ones kept, and what cannot be trusted refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support.catalogs import STREAM
from support.frames_on_disk import of_version
from windloom.answers.blocks import Block
from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.recovery import settle_shards
from windloom.checkpoint.shards.blocks import joined, read_blocks, write_blocks
from windloom.checkpoint.shards.files import ShardFiles
from windloom.checkpoint.shards.notes import ShardNote, counts_of, kept_from_of
from windloom.checkpoint.shards.run import shard_state
from windloom.checkpoint.storage import LocalStorage
from windloom.errors import WindloomError
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.rounds.lateness import LateCount, Lateness
from windloom.rounds.step import StepCounts
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

NOTHING = make_plan({}, [], {}, PlanOptions(), PlanningFacts())
BLOCK = Block(
    3,
    ("a", "ä"),
    np.array([0, 1, 3]),
    pa.table({"k": pa.array(["x", None, "x"]).dictionary_encode(), "n": pa.array([1, 2, None])}),
)


def note(shard: int, kept_from: dict[int, int]) -> ShardNote:
    counts = StepCounts({0: 5, 1: shard}, {0: 2})
    return ShardNote(shard, f"{shard}.state", 100, f"{shard}.answers" if shard else None, counts, kept_from)


def test_files_are_kept_by_name_and_travel_by_place(tmp_path: Path) -> None:
    files = ShardFiles(str(tmp_path))
    (first, _, _), (second, answers, _) = files.new_names(7, 2), files.new_names(7, 2)
    assert first != second
    assert first.startswith("000000007-0002-")
    files.keep_only([])  # before anything is written
    for name in (first, second, answers):
        files.write(name, [b"one ", b"two"])
    elsewhere = pickle.loads(pickle.dumps(files))
    assert elsewhere.read(second) == b"one two"
    elsewhere.keep_only({second})
    assert [path.name for path in (tmp_path / "shards").iterdir()] == [second]
    with pytest.raises(WindloomError, match=f"'{first}' is missing"):
        files.read(first)


def test_a_url_is_opened_by_pyarrow_or_refused(tmp_path: Path) -> None:
    files = ShardFiles(f"file://{tmp_path}")
    files.write("a.state", [b"x"])
    assert ShardFiles(str(tmp_path)).read("a.state") == b"x"
    with pytest.raises(WindloomError, match="shards cannot be kept at 'nowhere://a/b'"):
        ShardFiles("nowhere://a/b")


def test_files_that_are_pinned_stay_until_nobody_reads_them(tmp_path: Path) -> None:
    files = ShardFiles(str(tmp_path))

    def held() -> set[str]:
        return {path.name for path in (tmp_path / "shards").iterdir()}

    for name in "abcd":
        files.write(name, [b"x"])
    with files.pinned(["a", "b"]):
        with files.pinned(["b", "c"]):
            files.keep_only({"c", "d"})
            assert held() == {"a", "b", "c", "d"}
            files.write("e", [b"of a round that runs"])
        assert held() == {"a", "b", "c", "d", "e"}, "b is read still, c is wanted"
        files.keep_only({"e"})
        assert held() == {"a", "b", "e"}
    assert held() == {"e"}


def test_a_pin_deletes_nothing_that_no_round_has_spoken_of(tmp_path: Path) -> None:
    files = ShardFiles(str(tmp_path))
    files.write("a", [b"x"])
    with files.pinned(["a"]):
        pass
    assert files.read("a") == b"x"


def test_blocks_of_answers_come_back_one_by_one() -> None:
    data = b"".join(bytes(piece) for piece in write_blocks([BLOCK, BLOCK]))
    found = list(read_blocks("f", data))
    assert len(found) == 2
    assert found[1].table == BLOCK.table
    assert (found[1].shape, found[1].queries, found[1].bounds.tolist()) == (3, ("a", "ä"), [0, 1, 3])
    assert list(write_blocks([])) == []


def test_blocks_of_a_shape_are_joined_up_to_a_size() -> None:
    other = Block(1, ("b",), np.array([0, 1]), BLOCK.table.slice(0, 1))
    found = list(joined([BLOCK, other, BLOCK, BLOCK, other], rows=5))
    assert [(block.shape, block.queries, block.bounds.tolist()) for block in found] == [
        (3, ("a", "ä", "a", "ä"), [0, 1, 3, 4, 6]),
        (1, ("b", "b"), [0, 1, 2]),
        (3, ("a", "ä"), [0, 1, 3]),
    ]
    assert found[0].table.to_pylist() == 2 * BLOCK.table.to_pylist()


@pytest.mark.parametrize("cut", [5, 30, -1])
def test_answers_that_are_cut_short_are_refused_by_name(cut: int) -> None:
    data = b"".join(bytes(piece) for piece in write_blocks([BLOCK]))
    with pytest.raises(WindloomError, match=r"file 'f\.answers' is damaged"):
        list(read_blocks("f.answers", data[:cut]))


def test_answers_of_another_version_are_refused() -> None:
    data = b"".join(bytes(piece) for piece in write_blocks([BLOCK]))
    with pytest.raises(WindloomError, match="is of version 9"):
        list(read_blocks("f", of_version(data, 9)))


def test_a_damaged_state_is_refused_by_name(tmp_path: Path) -> None:
    files = ShardFiles(str(tmp_path))
    files.write("a.state", [b"WINDLOOM and nothing more"])
    with pytest.raises(WindloomError, match=r"the shard file 'a\.state'"):
        shard_state(files, "a.state", State(), NOTHING)


def test_notes_add_up_and_stay_in_the_log() -> None:
    notes = (note(0, {}), note(1, {0: 40}), note(2, {0: 30, 1: 7}))
    log = RoundLog(4, 1, RoundInput(frontiers={"s": 99}, seen={"s": 120}), {"s": 2}, notes)
    assert RoundLog.from_bytes("log", log.to_bytes()) == log
    late = Lateness({"s": LateCount(3, 1)})
    assert counts_of(notes, late) == StepCounts({0: 15, 1: 3}, {0: 6}, late)
    assert kept_from_of(notes) == {0: 40, 1: 7}
    state = State().forgetting(kept_from_of(notes))
    assert {number: history.kept_from for number, history in state.history.items()} == {0: 40, 1: 7}
    assert notes[0].files == ["0.state"]
    assert notes[1].files == ["1.state", "1.answers"]


def test_shards_are_settled_once(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    checkpoint = Checkpoint.open(storage, {"s": STREAM})
    try:
        assert settle_shards(storage, checkpoint, "driver", None, 8) is None
        assert settle_shards(storage, checkpoint, "executors", None, 8) == 8
        assert settle_shards(storage, checkpoint, "executors", None, 99) == 8
        assert settle_shards(storage, checkpoint, "executors", 8, 99) == 8
        with pytest.raises(WindloomError, match="state is in 8 shards"):
            settle_shards(storage, checkpoint, "executors", 4, 99)
        with pytest.raises(WindloomError, match="state is on executors"):
            settle_shards(storage, checkpoint, "driver", None, 99)
    finally:
        checkpoint.close()
