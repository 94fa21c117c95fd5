"""Tuples kept by a running stream: any question is answered from them, and queries added later begin with the past."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.files import follow, put
from support.trades import ROWS, trades
from windloom import Loom, WindloomError
from windloom.engine.handle import Handle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUNNING = {"avg": "SELECT symbol, avg(price) AS p FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol"}
#: Nothing that runs keeps partials for any of these.
ASKED = {
    "other_group": "SELECT volume % 3 AS m, sum(price) AS s, count(*) AS n FROM trades [TUMBLE 20 seconds]"
    " WHERE price > 2 GROUP BY volume % 3",
    "other_window": "SELECT symbol, max(volume) AS v FROM trades [RANGE 35 seconds SLIDE 7 seconds] GROUP BY symbol",
    "median": "SELECT median(price) AS p FROM trades [RANGE 40 seconds SLIDE 20 seconds]",
    "rows": "SELECT symbol, price FROM trades [TUMBLE 10 seconds] WHERE volume > 5",
    "pairs": "SELECT a.symbol, a.price, b.price AS other FROM trades a JOIN trades b WITHIN 15 seconds"
    " ON a.symbol = b.symbol AND a.price < b.price",
    "joined": "SELECT a.symbol, sum(a.price * b.volume) AS s FROM trades [RANGE 20 s SLIDE 10 s] a"
    " JOIN trades [RANGE 10 s] b ON a.symbol = b.symbol GROUP BY a.symbol",
    "listed": "SELECT l.sector, sum(a.volume) AS s FROM trades [RANGE 20 s SLIDE 10 s] a"
    " JOIN listing l ON a.symbol = l.symbol GROUP BY l.sector",
    "above": "SELECT count(*) AS n FROM trades [TUMBLE 20 s] a JOIN trades [TUMBLE 20 s] b ON a.price < b.price",
}


def rows(table: pa.Table, until: datetime) -> list[tuple[Any, ...]]:
    """Rows of windows that were complete at an instant, floats as far as they are certain."""
    found = [row for row in table.to_pylist() if row["window_end"] <= until]
    shown = [[round(value, 9) if isinstance(value, float) else value for value in row.values()] for row in found]
    return sorted(map(tuple, shown), key=repr)


def listing(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("A", "bank"), ("C", "mine")], "symbol string, sector string")


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> dict[str, pa.Table]:
    loom = Loom(spark)
    loom.stream("trades", trades(spark), time="ts")
    loom.relation("listing", listing(spark))
    for name, text in ASKED.items():
        loom.query(name, text)
    results = loom.run()
    return {name: results.arrow(name) for name in ASKED}


@pytest.fixture(scope="module")
def running(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Handle, Path]]:
    folder = tmp_path_factory.mktemp("kept")
    size = -(-len(ROWS) // 4)
    for number in range(3):
        put(folder / "in", f"{number:03d}", ROWS[number * size : (number + 1) * size])
    loom = Loom(spark)
    loom.stream("trades", follow(spark, folder / "in"), time="ts", delay="10 seconds")
    loom.relation("listing", listing(spark))
    for name, text in RUNNING.items():
        loom.query(name, text)
    handle = loom.start("memory", checkpoint=folder / "checkpoint", keep_tuples="1 day")
    handle.process_all_available()
    yield handle, folder
    handle.stop()


def watermark(told: str | None) -> datetime:
    assert told is not None
    return datetime.fromisoformat(told).astimezone(UTC)


@pytest.mark.parametrize("name", ASKED)
def test_a_question_nobody_registered_is_answered_as_in_a_batch_run(
    running: tuple[Handle, Path], batch: dict[str, pa.Table], name: str
) -> None:
    answer = running[0].ask(ASKED[name])
    assert answer.complete_from is None
    until = watermark(answer.watermark)
    assert rows(answer.table, until) == rows(batch[name], until)
    assert answer.table.num_rows == len(rows(batch[name], until)) > 0


def test_queries_added_later_report_every_complete_window(
    running: tuple[Handle, Path], batch: dict[str, pa.Table]
) -> None:
    handle, folder = running
    for name in ("other_group", "rows", "above"):
        assert handle.add(name, ASKED[name]).complete_from is None
    size = -(-len(ROWS) // 4)
    put(folder / "in", "003", ROWS[3 * size :])
    handle.process_all_available()
    assert handle.progress is not None
    until = watermark(handle.progress.watermark)
    for name in ("other_group", "rows", "above"):
        assert rows(handle.arrow(name), until) == rows(batch[name], until), name


def test_rows_cannot_be_asked_for_where_no_tuples_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", ROWS)
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    loom.query("avg", RUNNING["avg"])
    handle = loom.start("memory", checkpoint=tmp_path / "checkpoint")
    handle.process_all_available()
    with pytest.raises(WindloomError, match="cannot be answered from what is kept") as caught:
        handle.ask(ASKED["rows"])
    assert "keep_tuples" in caught.value.hint
    handle.stop()
