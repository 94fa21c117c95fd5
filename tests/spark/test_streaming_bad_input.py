"""Bad input to streams: the handle says what happened, and nothing is lost once it is mended and started again."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.files import follow, put
from support.trades import ROWS, STREAM, csv_text, trades
from windloom import Loom, WindloomError
from windloom.checkpoint.storage import watched
from windloom.engine.handle import Handle
from windloom.errors import WindloomWarning
from windloom.language.catalog import parse_catalog
from windloom.spark.sources.files import find_file_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = {"availableNow": True}
TEXT = "SELECT symbol, avg(price) AS p, count(*) AS n FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol"
GO_ON = "start again with the same checkpoint"


class Desk:
    """A directory of trades with its checkpoint and its answers; every `start` is a new loom, as after a crash."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.data = spark, folder, folder / "in"

    def start(self, frame: Any = None, **options: Any) -> Handle:
        loom = Loom(self.spark)
        loom.stream("trades", follow(self.spark, self.data) if frame is None else frame, time="ts", delay="10 seconds")
        loom.query("q", TEXT)
        places = {"path": self.folder / "out", "checkpoint": self.folder / "c"}
        return loom.start("parquet", **places, **{"trigger": NOW, **options})

    def fails(self, frame: Any = None, **options: Any) -> WindloomError:
        handle = self.start(frame, **options)
        with pytest.raises(WindloomError) as raised:
            handle.await_termination(120)
        assert handle.exception() is raised.value
        assert not handle.is_active
        assert handle.status["message"].startswith("failed: ")
        assert GO_ON in raised.value.hint
        return raised.value

    def finishes(self, frame: Any = None, **options: Any) -> Handle:
        handle = self.start(frame, finish=True, **options)
        assert handle.await_termination(120)
        assert handle.exception() is None
        return handle


@pytest.fixture
def desk(spark: SparkSession, tmp_path: Path) -> Desk:
    return Desk(spark, tmp_path)


@pytest.fixture(scope="module")
def expected(spark: SparkSession) -> list[tuple[Any, ...]]:
    """The rows of a batch run over all trades."""
    loom = Loom(spark)
    loom.stream("trades", trades(spark), time="ts")
    loom.query("q", TEXT)
    return rows(loom.run().arrow("q"))


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def test_files_that_cannot_be_read_stop_the_stream_and_are_read_when_they_are_mended(
    desk: Desk, expected: list[Any]
) -> None:
    put(desk.data, "000", ROWS[:10])
    desk.start().await_termination(120)
    (desk.data / "001.parquet").write_bytes(b"PAR1 and nothing of the kind PAR1")
    error = desk.fails()
    assert error.message == "Spark cannot read the stream"
    assert "001.parquet" in error.detail
    put(desk.data, "001", ROWS[10:20])

    # Another schema: the volume is text now.
    columns = {name: [row[i] for row in ROWS[20:]] for i, name in enumerate(("ts", "symbol", "price"))}
    pq.write_table(pa.table({**columns, "volume": [str(row[3]) for row in ROWS[20:]]}), desk.data / "002.parquet")
    error = desk.fails()
    assert "002.parquet" in error.detail
    assert "volume" in error.detail
    put(desk.data, "002", ROWS[20:])

    handle = desk.finishes()
    assert rows(handle.arrow("q")) == expected
    assert sum(progress.events for progress in handle.recent_progress) == 10


def test_text_with_other_columns_stops_the_stream(desk: Desk, expected: list[Any]) -> None:
    (declared,) = (declared_stream.stream for declared_stream in parse_catalog(STREAM).streams)
    desk.data.mkdir()
    (desk.data / "000.csv").write_text(csv_text(ROWS[:15]))

    def frame() -> Any:
        return find_file_stream(declared, str(desk.data)).read(desk.spark)

    followed = frame()
    swapped = csv_text(ROWS[15:]).replace("price,volume", "volume,price")
    handle = desk.start(followed, trigger={"processingTime": "0 seconds"})
    handle.process_all_available()
    (desk.data / "001.csv").write_text(swapped)
    with pytest.raises(WindloomError, match="Spark cannot read the stream"):
        handle.await_termination(120)
    assert "CSV header does not conform to the schema" in str(handle.exception())
    (desk.data / "001.csv").write_text(csv_text(ROWS[15:]))
    assert rows(desk.finishes(frame()).arrow("q")) == expected


@contextmanager
def full_disk(point: str) -> Iterator[None]:
    """No room for the file that is written after this fault point."""
    passed = ""

    def watch(name: str) -> None:
        nonlocal passed
        if name == "before rename" and passed == point:
            raise OSError(errno.ENOSPC, "No space left on device")
        passed = name

    with watched(watch):
        yield


def test_a_full_disk_stops_the_stream_at_whatever_write_and_nothing_is_lost(desk: Desk, expected: list[Any]) -> None:
    put(desk.data, "000", ROWS)
    for point, place in (("before log", "c/log"), ("before sink", "out/"), ("before commit", "c/commits")):
        with full_disk(point):
            error = desk.fails()
        assert error.message.startswith(f"the disk is full: cannot write '{desk.folder / place}")
        assert error.detail.startswith("No space left on device: ")
    assert rows(desk.finishes().arrow("q")) == expected


def test_a_checkpoint_is_one_handles_and_one_catalogs(desk: Desk) -> None:
    put(desk.data, "000", ROWS)
    first = desk.start(trigger={"processingTime": "1 hour"})
    with pytest.raises(WindloomError, match="is in use") as refused:
        desk.start()
    assert "process" in refused.value.detail
    first.stop()

    other = Loom(desk.spark)
    other.stream("trades", follow(desk.spark, desk.data).selectExpr("*", "ts AS at"), time="at", delay="10 seconds")
    other.query("q", TEXT)
    with pytest.raises(WindloomError, match="the checkpoint belongs to another catalog") as refused:
        other.start("memory", checkpoint=desk.folder / "c")
    assert "its time is 'at' here and 'ts' in the checkpoint" in refused.value.detail

    another = Loom(desk.spark)
    another.stream("trades", follow(desk.spark, desk.data), time="ts", delay="10 seconds")
    another.query("others", TEXT.replace("avg", "max"))
    with pytest.raises(WindloomError, match="the checkpoint belongs to another catalog") as refused:
        another.start("memory", checkpoint=desk.folder / "c")
    assert "such as 'q'" in refused.value.detail


def test_tuples_without_a_time_stop_the_stream_or_are_counted(desk: Desk, expected: list[Any]) -> None:
    put(desk.data, "000", [*ROWS, (None, "A", 1.0, 1), (None, "B", 1.0, 1)])
    error = desk.fails(untimed="stop")
    assert "tuples without a usable time" in error.message
    assert "in 2 of its rows" in error.detail
    with pytest.warns(WindloomWarning, match="'trades': 2 rows are in no window"):
        handle = desk.finishes()
    assert [progress.untimed for progress in handle.recent_progress] == [2, 0]
    assert rows(handle.arrow("q")) == expected


def test_time_that_goes_back_by_years_is_late_and_counted(desk: Desk, expected: list[Any]) -> None:
    put(desk.data, "000", ROWS[:20])
    old = [(row[0] - timedelta(days=3650), *row[1:]) for row in ROWS[:3]]
    put(desk.data, "001", [*old, *ROWS[20:]])
    handle = desk.finishes()
    assert [progress.late_dropped for progress in handle.recent_progress] == [0, 3, 0]
    assert rows(handle.arrow("q")) == expected


def test_lateness_is_as_the_docs_draw_it(spark: SparkSession, tmp_path: Path) -> None:
    origin = ROWS[0][0]
    for name, seconds in (("000", (3, 12, 27)), ("001", (14, 8, -5, 31))):
        put(tmp_path / "in", name, [(origin + timedelta(seconds=elapsed), "A", 1.0, 1) for elapsed in seconds])
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts", delay="10 seconds")
    loom.query("n", "SELECT count(*) AS n FROM trades [RANGE 20 seconds SLIDE 10 seconds]")
    handle = loom.start("memory", trigger=NOW, finish=True)
    assert handle.await_termination(120)
    first, second, _ = handle.recent_progress
    assert (first.watermark, first.late_partly, first.late_dropped) == ("2026-01-05T00:00:17+00:00", 0, 0)
    assert (second.watermark, second.late_partly, second.late_dropped) == ("2026-01-05T00:00:21+00:00", 1, 1)
    starts = [(row["window_start"] - origin).total_seconds() for row in handle.arrow("n").to_pylist()]
    assert list(zip(starts, handle.arrow("n")["n"].to_pylist(), strict=True)) == [
        (-10, 1),
        (0, 4),
        (10, 3),
        (20, 2),
        (30, 1),
    ]


def test_a_query_that_was_added_and_fails_does_not_hold_back_the_others(
    desk: Desk, expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    put(desk.data, "000", ROWS[:9])
    handle = desk.start(trigger={"processingTime": "1 second"})
    handle.process_all_available()
    handle.add("poison", "SELECT sum(CAST(symbol AS INT)) AS s FROM trades [TUMBLE 10 seconds]")
    handle.add("large", "SELECT sum(volume + 9223372036854775000) AS s FROM trades [TUMBLE 10 seconds]")
    put(desk.data, "001", ROWS[9:])
    with pytest.raises(WindloomError, match="cannot evaluate"):
        handle.process_all_available()
    with pytest.raises(WindloomError, match="cannot evaluate"):
        handle.process_all_available()  # said again, and not as if everything were well
    error = desk.fails()
    assert "asked by 'poison'" in error.detail
    assert "without=['poison']" in error.hint
    error = desk.fails(without=["poison"])
    assert error.message == "query 'large': a value does not fit its type"
    assert "without=['large']" in error.hint
    with pytest.raises(WindloomError, match="cannot go on without query 'q'"):
        desk.start(without=["q"])
    handle = desk.finishes(without=["large"])
    assert rows(handle.arrow("q")) == expected
    assert list(handle.queries) == ["q"]


def test_a_stream_without_any_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    with pytest.raises(WindloomError, match="no query to answer"):
        loom.start("memory", checkpoint=tmp_path / "c")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT symbol, count(*) AS n FROM trades [SESSION GAP 5 seconds] GROUP BY symbol",
        "SELECT count(*) AS n FROM trades [ROWS 10 SLIDE 5]",
        "SELECT ISTREAM symbol FROM trades [TUMBLE 10 seconds]",
    ],
)
def test_a_sink_refuses_queries_that_it_cannot_take_before_any_round_has_them(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    (tmp_path / "in").mkdir()

    def loom_of(**queries: str) -> Loom:
        loom = Loom(spark)
        loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
        for name, query in queries.items():
            loom.query(name, query)
        return loom

    places = {"path": tmp_path / "out", "checkpoint": tmp_path / "c"}
    with pytest.raises(WindloomError, match="query 'bad' has no present result"):
        loom_of(good=TEXT, bad=text).start("current", **places)
    handle = loom_of(good=TEXT).start("current", **places)
    try:
        with pytest.raises(WindloomError, match="query 'bad' has no present result"):
            handle.add("bad", text)
        assert list(handle.queries) == ["good"]
    finally:
        handle.stop()
