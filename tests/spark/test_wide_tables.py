"""Wide tables: a row a key, the answers of many queries as columns, all as of one watermark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windloom import Loom
from windloom.errors import WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "n_20": "SELECT k, count(*) AS n FROM s [RANGE 20 seconds SLIDE 10 seconds] GROUP BY k",
    "hilo": "SELECT k, max(v) AS high, min(v) AS low FROM s [TUMBLE 10 seconds] GROUP BY k",
    "so_far": "SELECT k, sum(v) AS total FROM s [LANDMARK SLIDE 10 seconds] GROUP BY k",
}
#: Key "b" has no tuple in [20, 30), NULL is a key, and 34 tells that windows up to 30 are complete.
ROWS = [(1, "a", 1), (12, "a", 5), (13, "b", 7), (25, "a", 2), (26, None, 3), (34, "a", 9)]


def loom_of(spark: SparkSession) -> Loom:
    loom = Loom(spark)
    values = ", ".join(f"({at}, {'NULL' if key is None else repr(key)}, {value})" for at, key, value in ROWS)
    frame = spark.sql(f"SELECT timestamp_seconds(t) AS ts, k, v FROM VALUES {values} AS rows(t, k, v)")
    loom.stream("s", frame, time="ts")
    for name, text in QUERIES.items():
        loom.query(name, text)
    return loom


def test_every_query_tells_its_latest_complete_window(spark: SparkSession) -> None:
    loom = loom_of(spark)
    loom.table("metrics", by="k", queries=list(QUERIES))
    table = loom.run().table("metrics")
    assert table.column_names == ["watermark", "k", "n_20", "hilo_high", "hilo_low", "so_far"]
    found = {row["k"]: tuple(row.values())[2:] for row in table.to_pylist()}
    assert found == {"a": (2, 2, 2, 8), "b": (1, None, None, 7), None: (1, 3, 3, 3)}
    assert {row["watermark"].timestamp() for row in table.to_pylist()} == {30.0}


def test_a_stream_tells_it_as_of_its_watermark(spark: SparkSession, tmp_path: Path) -> None:
    batch = loom_of(spark)
    batch._registry.frames(batch.plan())["s"].coalesce(1).write.parquet(str(tmp_path / "in"))
    loom = Loom(spark)
    loom.stream("s", spark.readStream.schema("ts timestamp, k string, v int").parquet(str(tmp_path / "in")), time="ts")
    for name, text in QUERIES.items():
        loom.query(name, text)
    loom.table("metrics", by="k", queries=list(QUERIES))
    handle = loom.start("live", trigger={"availableNow": True})
    assert handle.await_termination(300)
    batch.table("metrics", by="k", queries=list(QUERIES))
    expected = batch.run().table("metrics").drop_columns("watermark").to_pylist()
    found = handle.table("metrics")
    assert {row["watermark"].timestamp() for row in found.to_pylist()} == {34.0}
    assert sorted(found.drop_columns("watermark").to_pylist(), key=str) == sorted(expected, key=str)


def test_what_cannot_be_one_row_a_key_is_refused(spark: SparkSession) -> None:
    loom = loom_of(spark)
    loom.query("all", "SELECT count(*) AS n FROM s [TUMBLE 10 seconds]")
    loom.query("rows", "SELECT k, count(*) AS n FROM s [PARTITION BY k ROWS 3 SLIDE 3] GROUP BY k")
    for queries, message in (
        (["all"], "it is grouped by nothing, the table by k"),
        (["rows"], "its windows end at positions"),
        ([], "has no queries"),
        (["n_20", "n_20"], "twice"),
        (["n_2"], "unknown query 'n_2'"),
    ):
        with pytest.raises(WindloomError, match=message):
            loom.table("metrics", by="k", queries=queries)
    with pytest.raises(WindloomError, match="there is no table 'metrics'"):
        loom.run().table("metrics")
