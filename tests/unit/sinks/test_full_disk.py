"""A disk that is really full is named, with what to do; nothing half-written shows, and the round can be repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.answers import TABLES, Given, piece, place
from support.disks import fill, small_disk
from support.durable import make_batches, reported, run_stream
from windloom.checkpoint.storage import LocalStorage, StorageError
from windloom.errors import WindloomError
from windloom.sinks.registry import choose_sinks, sink

ROUNDS = 4


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as found:
        yield found


def check(error: WindloomError, disk: Path) -> None:
    assert error.message.startswith(f"the disk is full: cannot write '{disk}")
    assert error.detail.startswith("No space left on device: 0.0 MiB of 1 MiB are free where '")
    assert error.hint == "make room, then start again with the same checkpoint: nothing is lost"


def test_a_file_is_whole_or_not_there(disk: Path) -> None:
    storage = LocalStorage(disk)
    storage.write("a", b"before")
    ballast = fill(disk)
    with pytest.raises(StorageError) as caught:
        storage.write("a", b"y" * 100_000)
    check(caught.value, disk)
    assert storage.read("a") == b"before"
    assert [path.name for path in disk.iterdir()] in (["ballast", "a"], ["a", "ballast"])
    ballast.unlink()
    storage.write("a", b"y" * 100_000)


@pytest.mark.parametrize("name", ["parquet", "delta", "live"])
def test_a_sink_says_so_and_takes_the_round_when_there_is_room(disk: Path, name: str) -> None:
    path = None if name == "live" else disk / "out"
    (opener,) = choose_sinks(sink(name, path), None, "c").values()
    opened = opener(place(disk))
    opened.write(0, Given([piece(("a", 10, "x", 1))], TABLES))
    many = Given([piece(*(("a", 20, f"{i:099}", i) for i in range(2_000)))], TABLES)
    ballast = fill(disk)
    with pytest.raises(WindloomError) as caught:
        opened.write(1, many)
    check(caught.value, disk)
    ballast.unlink()
    opened.write(1, many)
    rows = opened.rows("t")
    assert rows is not None
    assert rows.num_rows == 2_001


def test_a_stream_that_stopped_for_room_goes_on(tmp_path: Path, disk: Path) -> None:
    batches = make_batches(3, ROUNDS)
    run_stream(tmp_path / "whole", batches)
    ballast = fill(disk)
    with pytest.raises(WindloomError, match="the disk is full"):
        run_stream(disk, batches)
    ballast.write_bytes(b"")
    run_stream(disk, batches)
    assert reported(disk) == reported(tmp_path / "whole")


def test_what_pyarrow_raises_carries_the_number_of_the_error(disk: Path) -> None:
    fill(disk)
    with pytest.raises(OSError, match="No space left") as caught:
        pq.write_table(pa.table({"a": list(range(100_000))}), disk / "t.parquet")
    assert caught.value.errno == 28
