"""The tuples of a round are written beside the round: divided, packed, and whole when the round is logged."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windloom.checkpoint.storage import LocalStorage
from windloom.checkpoint.tuple_folder import TupleWriter
from windloom.language.select import parse_query
from windloom.model import DataType, ExpressionKey, Stream
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan

KINDS = {"ts": "timestamp", "k": "string", "n": "bigint"}
STREAM = Stream("s", {name: DataType.parse(kind) for name, kind in KINDS.items()}, "ts")
STREAMS = {"s": STREAM}
INSTANT = pa.timestamp("us", tz="UTC")


def planned() -> tuple[Plan, WovenScan]:
    """Tuples of 8,000 ticks are kept, so a stretch has 1,000."""
    query = parse_query("q", "SELECT k, max(n) AS m FROM s [TUMBLE 1 second] GROUP BY k", STREAMS)
    types = {ExpressionKey("s", name): kind for name, kind in STREAM.columns.items()}
    plan = make_plan(STREAMS, [query], types, PlanOptions(tuples=8_000), PlanningFacts())
    (scan,) = plan.scans
    assert isinstance(scan, WovenScan)
    return plan, scan


def brought(scan: WovenScan, ticks: Any) -> pa.Table:
    """As Spark projects them: tick, signature, columns."""
    ticks = np.asarray(ticks, np.int64)
    values = {"k": pa.array([f"k{tick % 3}" for tick in ticks.tolist()]), "n": pa.array(ticks * 7)}
    words = {f"s{number}": pa.array(np.ones(len(ticks), np.int64)) for number in range(scan.signature.words)}
    columns = {f"x{place}": values[column.sql.strip("`")] for place, column in enumerate(scan.columns)}
    return pa.table({"tick": pa.array(ticks), **words, **columns})


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_files_hold_one_stretch_each_whether_tuples_come_in_order_or_not(seed: int | None, tmp_path: Path) -> None:
    plan, scan = planned()
    ticks = np.arange(500, 3_500, 7)
    if seed is not None:
        ticks = np.random.default_rng(seed).permutation(ticks)
    writer = TupleWriter(LocalStorage(tmp_path), 4, plan, STREAMS)
    for portion in np.array_split(ticks, 3):
        writer.take(scan, brought(scan, portion))
    files = writer.finish()["s"]
    assert sorted(file.first // 1_000 for file in files) == [0, 1, 2, 3]
    found = []
    for file in files:
        assert file.first // 1_000 == file.last // 1_000
        table = pq.read_table(tmp_path / file.name)
        assert table.num_rows == file.rows
        assert set(table["__round"].to_pylist()) == {4}
        found += table["__tick"].to_pylist()
        stored = {field.name: table[field.name] for field in table.schema}
        (times,) = (column for column in stored.values() if pa.types.is_timestamp(column.type))
        assert times.cast(pa.int64()).to_pylist() == table["__tick"].to_pylist()
        assert {tuple(row.values())[-1] for row in table.to_pylist()} <= {tick * 7 for tick in ticks.tolist()}
    assert sorted(found) == sorted(ticks.tolist())
    if seed is None:
        assert all(earlier < later for earlier, later in pairwise(found))


def test_the_time_of_a_tuple_comes_over_once() -> None:
    _, scan = planned()
    assert scan.kept is not None
    assert "ts" in scan.kept.names
    assert scan.kept.places[scan.kept.names.index("ts")] is None
    assert all("ts" not in column.sql for column in scan.columns)


def test_a_time_that_is_no_instant_is_kept_as_it_came() -> None:
    stream = Stream("s", {"ts": DataType.parse("bigint")}, "ts", time_unit="s")
    query = parse_query("q", "SELECT count(*) AS n FROM s [TUMBLE 1 second]", {"s": stream})
    types = {ExpressionKey("s", "ts"): DataType.parse("bigint")}
    (scan,) = make_plan({"s": stream}, [query], types, PlanOptions(tuples=8_000), PlanningFacts()).scans
    assert isinstance(scan, WovenScan)
    assert scan.kept is not None
    assert None not in scan.kept.places


def test_whole_numbers_are_packed(tmp_path: Path) -> None:
    plan, scan = planned()
    writer = TupleWriter(LocalStorage(tmp_path), 0, plan, STREAMS)
    writer.take(scan, brought(scan, np.arange(1_000)))
    (file,) = writer.finish()["s"]
    group = pq.ParquetFile(tmp_path / file.name).metadata.row_group(0)
    packed = [place for place in range(group.num_columns) if "DELTA_BINARY_PACKED" in group.column(place).encodings]
    assert len(packed) == 3  # ticks, times and n


def test_only_so_many_files_are_open_at_a_time(tmp_path: Path) -> None:
    plan, scan = planned()
    writer = TupleWriter(LocalStorage(tmp_path), 0, plan, STREAMS)
    with patch("windloom.checkpoint.tuple_folder._MOST_OPEN", 2):
        for portion in ([500, 1_500], [2_500], [600, 2_600], [700, 3_500]):
            writer.take(scan, brought(scan, portion))
        files = writer.finish()["s"]
    assert sorted((file.first, file.last, file.rows) for file in files) == [
        (500, 500, 1),
        (600, 700, 2),
        (1_500, 1_500, 1),
        (2_500, 2_600, 2),
        (3_500, 3_500, 1),
    ]


class Slow(LocalStorage):
    """Begins no file before it may."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.may, self.fails = Event(), False

    def create(self, name: str) -> Any:
        assert self.may.wait(20)
        if self.fails:
            raise OSError("no room")
        return super().create(name)


def test_a_round_goes_on_while_its_tuples_are_written(tmp_path: Path) -> None:
    plan, scan = planned()
    storage = Slow(tmp_path)
    writer = TupleWriter(storage, 0, plan, STREAMS)
    writer.take(scan, brought(scan, [1, 2, 3]))  # would wait for ever
    assert not list(tmp_path.rglob("*.parquet"))
    storage.may.set()
    (file,) = writer.finish()["s"]
    assert pq.read_table(tmp_path / file.name).num_rows == 3


def test_what_goes_wrong_while_tuples_are_written_stops_the_round(tmp_path: Path) -> None:
    plan, scan = planned()
    storage = Slow(tmp_path)
    storage.fails = True
    storage.may.set()
    writer = TupleWriter(storage, 0, plan, STREAMS)
    writer.take(scan, brought(scan, [1, 2, 3]))
    with pytest.raises(OSError, match="no room"):
        writer.finish()
    writer.discard()
    assert not list(tmp_path.rglob("*.parquet"))
