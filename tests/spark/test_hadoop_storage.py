"""Checkpoints on a file system that Spark reaches through Hadoop: whole files, one owner, streams that recover.

The file system is Hadoop's own `viewfs`, mounted on a directory of the test: it takes the way of every other one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.files import put
from support.many_groups import QUERIES, random_trades, rows, start
from windloom import WindloomError
from windloom.checkpoint.storage import LOCK_FILE, watched
from windloom.spark.sources.hadoop import STALE_SECONDS, HadoopStorage, storage_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> str:
    """A URL that is `tmp_path / "mounted"`."""
    (tmp_path / "mounted").mkdir()
    name = f"mount-{abs(hash(tmp_path))}"  # Hadoop remembers file systems by their names
    context: Any = spark.sparkContext
    link = f"fs.viewfs.mounttable.{name}.link./data"
    context._jsc.hadoopConfiguration().set(link, (tmp_path / "mounted").as_uri())
    return f"viewfs://{name}/data"


class _CrashError(BaseException):
    """In the place of a process that ends."""


def crash_at(wanted: str) -> Callable[[str], None]:
    def look(point: str) -> None:
        if point == wanted:
            raise _CrashError

    return look


@pytest.mark.parametrize("has_context", [True, False], ids=["renames onto files", "only onto nothing"])
def test_files_are_whole_or_not_there(spark: SparkSession, place: str, has_context: bool) -> None:
    storage = storage_at(spark, f"{place}/c")
    assert isinstance(storage, HadoopStorage)
    if not has_context:  # as where a file system is no AbstractFileSystem
        storage._context = None
    assert storage.read("log/2") is None
    assert storage.list("log") == []
    for name in ("log/2", "log/1", "top"):
        storage.write(name, name.encode())
    storage.write("log/2", b"again")
    storage.write("log/empty", b"")
    for name in ("log/2", "log/3"):
        with pytest.raises(_CrashError), watched(crash_at("before rename")):
            storage.write(name, b"cut short")
    assert storage.list("log") == ["1", "2", "empty"]
    assert [storage.read(f"log/{name}") for name in ("1", "2", "3", "empty")] == [b"log/1", b"again", None, b""]
    assert storage.list("") == ["top"]
    storage.delete("log/2")
    storage.delete("log/2")
    assert storage.list("log") == ["1", "empty"]


def test_a_place_that_cannot_be_written_to_is_named(spark: SparkSession, place: str) -> None:
    storage = storage_at(spark, place)
    storage.write("log", b"a file where a folder is wanted")
    with pytest.raises(WindloomError, match=r"cannot write 'viewfs://.*log/1'") as error:
        storage.write("log/1", b"")
    assert "nothing is lost" in error.value.hint


def test_a_second_owner_is_refused_until_the_first_is_gone(spark: SparkSession, place: str) -> None:
    first, second = storage_at(spark, place), storage_at(spark, place)
    first.lock("process 1 on host h, since noon")
    with pytest.raises(WindloomError, match="in use") as error:
        second.lock("me")
    assert "process 1 on host h, since noon" in error.value.detail
    second.unlock()  # of one that has no lock: frees nothing
    with pytest.raises(WindloomError, match="in use"):
        second.lock("me")
    first.unlock()
    second.lock("me")
    second.unlock()
    assert second.read(LOCK_FILE) is None


def test_a_lock_that_nobody_renews_is_free(spark: SparkSession, place: str) -> None:
    storage = storage_at(spark, place)
    for renewed, is_free in ((time.time() - STALE_SECONDS / 2, False), (time.time() - STALE_SECONDS - 1, True)):
        storage.write(LOCK_FILE, f"a process that was killed\n{renewed}".encode())
        if is_free:
            storage.lock("me")
            storage.unlock()
        else:
            with pytest.raises(WindloomError, match="in use"):
                storage.lock("me")
    storage.write(LOCK_FILE, b"")  # locked, and not yet signed
    with pytest.raises(WindloomError, match="in use") as error:
        storage.lock("me")
    assert "just starting" in error.value.detail


def test_a_stream_recovers_there_and_lets_nobody_else_in(spark: SparkSession, tmp_path: Path, place: str) -> None:
    made = random_trades(6, 60)
    few = {name: QUERIES[name] for name in ("avg", "big")}
    put(tmp_path / "in", "000", made[:40])
    with watched(crash_at("after log")), pytest.raises(_CrashError):
        start(spark, tmp_path / "in", place, few).await_termination(120)
    running = start(spark, tmp_path / "in", place, few, trigger={"processingTime": "0 seconds"})
    with pytest.raises(WindloomError, match="in use"):
        start(spark, tmp_path / "in", place, few)
    running.stop(drain=True)
    put(tmp_path / "in", "001", made[40:])
    last = start(spark, tmp_path / "in", place, few, finish=True)
    assert last.await_termination(120)
    here = start(spark, tmp_path / "in", tmp_path / "here", few, finish=True)
    assert here.await_termination(120)
    for name in few:
        assert rows(last.arrow(name)) == rows(here.arrow(name))
    assert [progress.round for progress in last.recent_progress] == [1, 2]
    assert (tmp_path / "mounted" / "c" / "commits").is_dir()
