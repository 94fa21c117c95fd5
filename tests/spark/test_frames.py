"""How many calls lie between `Loom.run` and a kernel: each is one more function that a reader must follow."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windloom
from windloom import Loom
from windloom.aggregates import whole_sums
from windloom.spark import scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Today there are ten: `Loom.run`, the batch, its placement, the loop, the placement's reading, its scans, a chunk, all
#: sets of the chunk, one set, and the aggregator, which calls the kernel.
MOST_FRAMES = 10

ROWS = 40_000  # enough for threads
HERE = str(Path(windloom.__file__).parent)
SOURCES = ["one Parquet file", "eight Parquet files", "a CSV file", "a frame"]


class Paths:
    """The functions of windloom that lie above each call of a kernel, outermost first.

    A task of a thread pool continues the path of the function that submitted it: frames of the pool do not count, and
    frames of windloom's own files count once each, on both threads. A generator counts where it is resumed.
    """

    def __init__(self) -> None:
        self.found: list[list[str]] = []
        self._above = threading.local()

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        submit, kernel = ThreadPoolExecutor.submit, whole_sums.sum_values

        def submitting(pool: ThreadPoolExecutor, task: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
            above = self._path()

            def run() -> Any:
                before, self._above.path = getattr(self._above, "path", []), above
                try:
                    return task(*given, **named)
                finally:
                    self._above.path = before

            return submit(pool, run)

        def entered(*given: Any) -> Any:
            self.found.append(self._path())
            return kernel(*given)

        monkeypatch.setattr(ThreadPoolExecutor, "submit", submitting)
        monkeypatch.setattr(whole_sums, "sum_values", entered)

    def _path(self) -> list[str]:
        own: list[str] = []
        frame = sys._getframe(1)
        while frame is not None:  # type: ignore[redundant-expr]
            if frame.f_code.co_filename.startswith(HERE):
                own.append(frame.f_code.co_qualname)
            frame = frame.f_back  # type: ignore[assignment]
        return [*getattr(self._above, "path", []), *reversed(own)]


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> Paths:
    found = Paths()
    found.watch(monkeypatch)
    return found


def source(spark: SparkSession, kind: str, folder: Path) -> DataFrame:
    table = pa.table(
        {
            "ts": pa.array(range(ROWS), pa.int64()),
            "symbol": pa.array(["ab"[i % 2] for i in range(ROWS)]),
            "volume": pa.array([i % 100 for i in range(ROWS)], pa.int32()),
        }
    )
    if kind.endswith("Parquet files"):
        for number in range(8):
            pq.write_table(table.slice(number * ROWS // 8, ROWS // 8), folder / f"{number}.parquet")
    else:
        pq.write_table(table, folder / "0.parquet")
    frame = spark.read.parquet(str(folder))
    if kind == "a CSV file":
        frame.coalesce(1).write.csv(str(folder / "csv"))
        return spark.read.schema(frame.schema).csv(str(folder / "csv"))
    return frame.where("volume >= 0") if kind == "a frame" else frame


@pytest.mark.parametrize("queries", [1, 4], ids=["fewer sets than threads", "more sets than threads"])
@pytest.mark.parametrize("kind", SOURCES)
def test_few_functions_lie_between_run_and_a_kernel(
    spark: SparkSession, tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch, kind: str, queries: int
) -> None:
    monkeypatch.setattr(scan, "SMALL_PORTION_BYTES", 1 << 16)
    loom = Loom(spark)
    loom.stream("trades", source(spark, kind, tmp_path), time="ts", unit="s")
    for number in range(queries):
        where = f"WHERE volume > {number} GROUP BY symbol, volume % {2 + number}"
        loom.query(f"q{number}", f"SELECT sum(volume) AS v FROM trades [RANGE 60 seconds SLIDE 20 seconds] {where}")
    results = loom.run(intake="woven", placement="driver")
    assert results.arrow("q0").num_rows
    assert paths.found
    longest = max(paths.found, key=len)
    assert longest[0] == "Loom.run", longest
    assert len(longest) <= MOST_FRAMES, "\n".join(longest)
