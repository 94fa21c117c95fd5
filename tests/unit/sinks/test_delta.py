"""The Delta sink: each row once by application transactions, tables that other readers find, errors that name them."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from support.answers import COLUMNS, TABLES, Given, piece, place
from support.micro_batches import CrashError, crash_after
from windloom.checkpoint.storage import watched
from windloom.errors import SinkDownError, WindloomError
from windloom.sinks.delta import QUERIES, DeltaSink
from windloom.sinks.sink import SinkPlace, TableInfo

FIRST = Given([piece(("a", 10, "x", 1)), piece(("b", 10, None, 2))], TABLES)


def delta(folder: Path, checkpoint: str = "c1") -> DeltaSink:
    return DeltaSink.open(SinkPlace(None, "", checkpoint), path=folder / "lake")  # type: ignore[arg-type]


def counts(folder: Path, table: str = "t") -> list[int]:
    return sorted(DeltaTable(folder / "lake" / table).to_pyarrow_table()["n"].to_pylist())


def test_a_round_that_comes_again_is_left_out(tmp_path: Path) -> None:
    sink = delta(tmp_path)
    assert sink.rows("t") is None
    for _ in range(2):
        sink.write(0, FIRST)
    delta(tmp_path).write(0, FIRST)
    sink.write(1, Given([], TABLES))
    delta(tmp_path).write(2, Given([piece(("a", 20, "x", 3))], TABLES))
    assert counts(tmp_path) == [1, 2, 3]
    table = DeltaTable(tmp_path / "lake" / "t")
    assert table.transaction_version("c1") == 2
    assert table.version() == 2, "its creation, and a commit per round with rows"
    rows = delta(tmp_path).rows("t")
    assert rows is not None
    assert rows.column_names == list(COLUMNS)


def test_a_table_tells_where_the_rows_of_each_query_are(tmp_path: Path) -> None:
    delta(tmp_path).write(0, FIRST)
    more = {"t": TableInfo(COLUMNS, {"a": ("k",), "c": ("k",)})}
    delta(tmp_path).write(1, Given([], more))
    listed = DeltaTable(tmp_path / "lake" / QUERIES).to_pyarrow_table().sort_by("query").to_pylist()
    assert [(row["query"], row["table"], row["groups"]) for row in listed] == [
        ("a", "t", ["k"]),
        ("b", "t", []),
        ("c", "t", ["k"]),
    ]


def test_a_crash_at_any_point_leaves_each_row_once(tmp_path: Path) -> None:
    other = piece(("a", 10, "z", 7))[1]
    infos = {**TABLES, "u": TableInfo(COLUMNS, {"d": ("k",)})}
    given = Given([*FIRST.finished, ("u", other)], infos)
    passed: list[str] = []
    with watched(passed.append):
        delta(tmp_path / "whole").write(0, given)
    for number in range(len(passed)):
        folder = tmp_path / str(number)
        with pytest.raises(CrashError), crash_after(number):
            delta(folder).write(0, given)
        delta(folder).write(0, given)
        assert counts(folder) == [1, 2]
        assert counts(folder, "u") == [7]
        assert DeltaTable(folder / "lake" / QUERIES).to_pyarrow_table().num_rows == 3


def test_what_another_writer_does_in_between_does_not_matter(tmp_path: Path) -> None:
    sink = delta(tmp_path)
    for number in range(3):
        sink.write(number, Given([piece(("a", 10 * number, "x", number))], TABLES))
        DeltaTable(tmp_path / "lake" / "t").optimize.compact()
    assert counts(tmp_path) == [0, 1, 2]


def test_a_directory_belongs_to_one_checkpoint_and_to_its_newest_copy(tmp_path: Path) -> None:
    delta(tmp_path).write(3, FIRST)
    with pytest.raises(WindloomError, match="holds the answers of another stream") as caught:
        delta(tmp_path, "c2")
    assert caught.value.hint.startswith("give a new directory")
    with pytest.raises(WindloomError, match="has come further than the checkpoint"):
        delta(tmp_path).write(2, FIRST)
    assert counts(tmp_path) == [1, 2]


@contextmanager
def small_files(limit: int) -> Iterator[None]:
    """No file can get longer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_file_that_cannot_be_written_fails_the_round_which_can_be_repeated(tmp_path: Path) -> None:
    sink = delta(tmp_path)
    sink.write(0, FIRST)
    with small_files(100), pytest.raises(WindloomError, match="cannot write the Delta table") as caught:
        sink.write(1, Given([piece(("a", 20, "x", 3))], TABLES))
    assert not isinstance(caught.value, SinkDownError), "a directory does not come back by itself"
    assert str(tmp_path / "lake" / "t") in caught.value.message
    sink.write(1, Given([piece(("a", 20, "x", 3))], TABLES))
    assert counts(tmp_path) == [1, 2, 3]


def test_an_object_store_that_does_not_answer_is_down(tmp_path: Path) -> None:
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "AWS_REGION": "here",
        "max_retries": "0",
        "timeout": "1s",
    }
    with pytest.raises(WindloomError, match="s3://bucket/lake") as caught:
        DeltaSink.open(place(tmp_path), path="s3://bucket/lake", storage_options=options)
    assert not isinstance(caught.value, SinkDownError), "at the start, a wrong address is likelier"
    assert "Connection refused" in caught.value.detail
    sink = delta(tmp_path)
    sink._root, sink._options, sink._tables = "s3://bucket/lake", options, {}
    with pytest.raises(SinkDownError, match="does not take the round"):
        sink.write(0, FIRST)


def test_a_type_that_delta_lacks_is_refused(tmp_path: Path) -> None:
    kind = {**COLUMNS, "n": "interval day to second"}
    rows = piece(("a", 10, "x", 1))[1].set_column(4, "n", pa.array([1], pa.duration("us")))
    with pytest.raises(WindloomError, match="cannot write the Delta table"):
        delta(tmp_path).write(0, Given([("v", rows)], {"v": TableInfo(kind, {"a": ("k",)})}))
