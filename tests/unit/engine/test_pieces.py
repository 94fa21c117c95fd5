"""Rows that shards write to where the Parquet sink keeps them: shown once, by the round that is logged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support.catalogs import STREAMS, make_query
from support.micro_batches import CrashError, Frames, MicroBatches, answers_in, crash_at, pieces_of
from windloom.answers.blocks import Block
from windloom.checkpoint.shards.pieces import FOLDER, Piece, PieceFolder, PieceWriter
from windloom.errors import WindloomError
from windloom.model import Aggregate, TimeWindow
from windloom.sinks.memory import MemorySink
from windloom.sinks.tables import AnswerTables

DELAYED = {"s": replace(STREAMS["s"], delay_ticks=5)}
QUERIES = {
    "many": make_query("many", TimeWindow(10, 2), [Aggregate("count")], ("k",)),
    "few": make_query("few", TimeWindow(50, 50), [Aggregate("count")]),
}
ROUNDS = [[1, 2, 13, 27], [40, 41, 52, 55], [90, 104, 130]]


def frames(ticks: list[int]) -> Frames:
    return {"s": [{"tick": tick, "k": "abcd"[tick % 4]} for tick in ticks]}


def live(folder: Path, placement: str = "executors", sinks: dict[str, MemorySink] | None = None) -> list[int]:
    """From where the checkpoint is to the end; how many rows each round told of."""
    with MicroBatches(folder, DELAYED, placement=placement, sinks=sinks) as life:
        for ticks in ROUNDS[life.loop.next_round :]:
            life.change(QUERIES)
            life.round(frames(ticks))
        return [done.results for done in life.done]


def in_order(folder: Path) -> dict[int, dict[str, list[str]]]:
    return {
        round: {name: sorted(map(repr, rows)) for name, rows in found.items()}
        for round, found in answers_in(folder).items()
    }


def shown(folder: Path) -> set[str]:
    return {path.name for path in (folder / "answers").glob("*/*.parquet")}


def test_tables_with_many_rows_are_written_by_shards_and_others_by_the_driver(tmp_path: Path) -> None:
    told = live(tmp_path / "driver", "driver")
    with pieces_of(2):
        assert live(tmp_path / "executors") == told
    assert in_order(tmp_path / "executors") == in_order(tmp_path / "driver")
    assert "round-000000001.parquet" in shown(tmp_path / "executors"), "rows of few, for the driver to put together"
    assert any(name.startswith("round-000000001-shard-0") for name in shown(tmp_path / "executors"))
    assert not list((tmp_path / "executors" / "answers" / FOLDER).glob("*.piece"))


def test_no_piece_is_written_where_another_sink_needs_the_rows(tmp_path: Path) -> None:
    memory = MemorySink()
    with pieces_of(1):
        live(tmp_path, sinks={"memory": memory})
    assert shown(tmp_path) == {f"round-{round:09d}.parquet" for round in range(3)}
    assert not (tmp_path / "answers" / FOLDER).exists()


def test_a_directory_that_executors_see_otherwise_is_written_by_the_driver(tmp_path: Path) -> None:
    (tmp_path / "answers" / FOLDER).mkdir(parents=True)
    (tmp_path / "answers" / FOLDER / "owner").write_text("another machine's")
    with pieces_of(1):
        live(tmp_path)
    live(tmp_path / "driver", "driver")
    assert in_order(tmp_path) == in_order(tmp_path / "driver")
    assert not [name for name in shown(tmp_path) if "shard" in name]


def test_a_round_that_is_logged_gives_the_rows_of_its_pieces_to_sinks_that_came_since(tmp_path: Path) -> None:
    with pytest.raises(CrashError), crash_at("after log", 2), pieces_of(1):
        live(tmp_path)
    assert list((tmp_path / "answers" / FOLDER).glob("000000001-*.piece"))
    assert not [name for name in shown(tmp_path) if name.startswith("round-000000001")]
    memory = MemorySink()
    with pieces_of(1):
        live(tmp_path, sinks={"memory": memory})
    live(tmp_path / "driver", "driver")
    assert in_order(tmp_path) == in_order(tmp_path / "driver")
    tables = [path.name.removeprefix("table=") for path in (tmp_path / "answers").glob("table=*")]
    held = [memory.rows(name) for name in tables]
    rows = sum(table.num_rows for table in held if table is not None)
    assert rows == sum(len(rows) for round in (1, 2) for rows in answers_in(tmp_path).get(round, {}).values())


def test_what_failed_attempts_left_is_never_shown_and_goes_with_the_next_round(tmp_path: Path) -> None:
    with pytest.raises(CrashError), crash_at("before log"), pieces_of(1):
        live(tmp_path)
    left = set((tmp_path / "answers" / FOLDER).glob("*.piece"))
    assert left
    assert not shown(tmp_path)
    with pieces_of(1):
        live(tmp_path)
    assert not left & set((tmp_path / "answers" / FOLDER).glob("*.piece"))
    live(tmp_path / "driver", "driver")
    assert in_order(tmp_path) == in_order(tmp_path / "driver")


def test_a_piece_is_shown_once_or_again_and_one_that_is_lost_is_told_by_name(tmp_path: Path) -> None:
    folder = PieceFolder(tmp_path, "c1")
    outlet = folder.outlet(("t",))
    assert outlet.is_reached
    piece = Piece("t", "000000042-0003-abc-0.piece", 1)
    (tmp_path / FOLDER / piece.file).write_bytes(b"rows")
    for _ in range(2):
        folder.show([piece])
        assert (tmp_path / "table=t" / "round-000000042-shard-0003.parquet").read_bytes() == b"rows"
    (tmp_path / piece.shown).unlink()
    with pytest.raises(WindloomError, match=r"the rows '000000042-0003-abc-0\.piece' of table 't' are missing"):
        folder.show([piece])


def test_blocks_that_only_spark_can_finish_are_handed_back(tmp_path: Path) -> None:
    with MicroBatches(tmp_path, DELAYED) as life:
        life.change(QUERIES)
        life.round(frames(ROUNDS[0]))
        plan = life.loop.plan
    assert plan is not None
    names = AnswerTables(None).without_spark(plan)
    with pieces_of(1):
        outlet = PieceFolder(tmp_path / "out", "c1").outlet((None, *names[1:]))
    writer = PieceWriter(outlet, 0, 0)
    block = Block(0, ("q",), np.array([0, 1]), pa.table({"window_start": [0], "window_end": [10]}))
    assert list(writer.take(plan, [block])) == [block]
    assert writer.finish() == ()
