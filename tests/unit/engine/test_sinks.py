"""Sinks: a round that comes again replaces itself, and what is read back is what was written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self
from unittest.mock import patch

import pyarrow as pa
import pytest

from windloom.durable import LocalStorage
from windloom.durable.shards.pieces import Piece
from windloom.engine.sinks.live import LiveSink
from windloom.engine.sinks.manifest import MANIFEST
from windloom.engine.sinks.memory import MemorySink
from windloom.engine.sinks.parquet import ParquetSink
from windloom.engine.sinks.registry import SINKS, choose_sinks, open_sink
from windloom.engine.sinks.sink import RoundAnswers, Sink, SinkPlace, TableInfo
from windloom.errors import WindloomError
from windloom.rounds import Block

COLUMNS = {"query": "string", "window_start": "bigint", "window_end": "bigint", "k": "string", "n": "bigint"}
TABLES = {"t": TableInfo(COLUMNS, {"a": ("k",), "b": ()})}


@dataclass(frozen=True)
class Given:
    """Answers that are finished already."""

    finished: list[tuple[str, pa.Table]]
    tables: Mapping[str, TableInfo]
    pieces: tuple[Piece, ...] = ()
    wide: None = None

    def rows(self, *, with_pieces: bool = True) -> list[tuple[str, pa.Table]]:
        return self.finished

    def blocks(self) -> Iterator[Block]:
        return iter(())


def piece(*rows: tuple[str, int, str | None, int]) -> tuple[str, pa.Table]:
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
    query, end, k, n = columns
    start = [one - 10 for one in end]
    keys = pa.array(k, pa.string())
    return "t", pa.table({"query": query, "window_start": start, "window_end": end, "k": keys, "n": n})


def parquet(folder: Path, checkpoint: str = "c1") -> ParquetSink:
    return ParquetSink(LocalStorage(folder), str(folder), checkpoint)


def counts(sink: Sink) -> list[int]:
    rows = sink.rows("t")
    return [] if rows is None else sorted(rows["n"].to_pylist())


@pytest.mark.parametrize("kind", ["memory", "parquet"])
def test_a_round_that_comes_again_replaces_itself(tmp_path: Path, kind: str) -> None:
    sink: Sink = MemorySink() if kind == "memory" else parquet(tmp_path)
    assert sink.rows("t") is None
    sink.write(0, Given([piece(("a", 10, "x", 1)), piece(("b", 10, None, 2))], TABLES))
    sink.write(1, Given([piece(("a", 20, "x", 3))], TABLES))
    sink.write(1, Given([piece(("a", 20, "x", 3))], TABLES))
    assert counts(sink) == [1, 2, 3]
    sink.write(2, Given([], TABLES))
    sink.close()
    assert counts(sink) == [1, 2, 3]


def test_parquet_answers_belong_to_one_checkpoint_and_describe_every_query(tmp_path: Path) -> None:
    parquet(tmp_path).write(0, Given([piece(("a", 10, "x", 1))], TABLES))
    gone = {"t": TableInfo(COLUMNS, {"a": ("k",)})}
    again = parquet(tmp_path)
    again.write(1, Given([piece(("a", 20, "x", 2))], gone))
    assert counts(again) == [1, 2]
    described = json.loads((tmp_path / MANIFEST).read_text())["tables"]["t"]
    assert described == {"columns": COLUMNS, "queries": ["a", "b"]}
    with pytest.raises(WindloomError, match="holds the answers of another run"):
        parquet(tmp_path, "c2")


def test_the_live_sink_holds_the_latest_row_of_each_query_and_group(tmp_path: Path) -> None:
    sink = LiveSink(LocalStorage(tmp_path))
    sink.write(0, Given([piece(("a", 10, "x", 1), ("a", 20, "x", 2), ("a", 10, None, 3), ("b", 10, "x", 4))], TABLES))
    assert counts(sink) == [2, 3, 4]
    # An older window of a group, as a query that answers from history reports it, is not the latest.
    for _ in range(2):
        sink.write(1, Given([piece(("a", 5, "x", 5), ("b", 20, "y", 6))], TABLES))
    assert counts(sink) == [2, 3, 6]
    assert counts(LiveSink(LocalStorage(tmp_path))) == [2, 3, 6]


def test_the_live_sink_forgets_queries_that_are_gone(tmp_path: Path) -> None:
    sink = LiveSink(LocalStorage(tmp_path))
    sink.write(0, Given([piece(("a", 10, "x", 1), ("b", 10, "x", 2))], TABLES))
    sink.write(1, Given([], {"t": TableInfo(COLUMNS, {"b": ()})}))
    assert counts(sink) == [2]
    sink.write(2, Given([], {}))
    assert sink.rows("t") is None
    assert not list(tmp_path.glob("*.parquet"))


def place(folder: Path) -> SinkPlace:
    return SinkPlace(None, str(folder / "out"), str(folder / "checkpoint"), "c1")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SINKS)
def test_every_sink_of_the_registry_opens_takes_a_round_again_and_reads_back(tmp_path: Path, name: str) -> None:
    sink = open_sink(name, place(tmp_path))
    for _ in range(2):
        sink.write(0, Given([piece(("a", 10, "x", 1), ("b", 10, "x", 2))], TABLES))
    assert counts(sink) == [1, 2]
    sink.close()
    assert (tmp_path / "out").exists() == SINKS[name].takes_path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("sqlite", None, None), "unknown sink 'sqlite'"),
        (([], None, None), "a stream needs a sink"),
        (("parquet", "out", None), "sink='parquet' needs a place of its own, and a checkpoint"),
        ((["live", "parquet"], None, "c"), "sink='parquet' needs a place of its own, and a checkpoint"),
        ((["memory", print], "out", "c"), "path 'out' is not used"),
    ],
)
def test_choices_that_cannot_be_are_refused(given: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(WindloomError) as caught:
        choose_sinks(*given)
    assert caught.value.message == message
    assert caught.value.hint


def test_one_sink_several_or_a_function_are_chosen() -> None:
    assert choose_sinks("memory", None, None) == ["memory"]
    assert choose_sinks(["live", print], None, "c") == ["live", print]


class JsonLinesSink:
    """A sink as CONTRIBUTING tells how to add one: a file of lines per table and round."""

    takes_path: ClassVar[bool] = True
    pieces = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, place: SinkPlace) -> Self:
        assert place.path is not None
        return cls(Path(place.path))

    def write(self, round: int, answers: RoundAnswers) -> None:
        lines: dict[str, list[str]] = {name: [] for name in answers.tables}
        for name, rows in answers.rows():
            lines[name] += [json.dumps(row) for row in rows.to_pylist()]
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, own in lines.items():
            (self._folder / f"{name}-{round:09d}.jsonl").write_text("\n".join(own))

    def rows(self, table: str) -> pa.Table | None:
        lines = [line for file in self._folder.glob(f"{table}-*") for line in file.read_text().splitlines()]
        return pa.Table.from_pylist([json.loads(line) for line in lines])

    def close(self) -> None: ...


def test_a_new_sink_is_a_class_and_a_line_of_the_registry(tmp_path: Path) -> None:
    with patch.dict(SINKS, {"jsonl": JsonLinesSink}):  # type: ignore[arg-type]
        assert choose_sinks("jsonl", "out", "c") == ["jsonl"]
        sink = open_sink("jsonl", place(tmp_path))
    for _ in range(2):
        sink.write(0, Given([piece(("a", 10, "x", 1)), piece(("b", 10, None, 2))], TABLES))
    assert counts(sink) == [1, 2]
