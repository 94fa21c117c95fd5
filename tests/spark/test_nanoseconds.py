"""Parquet as pandas writes it, with times in nanoseconds: read as Spark's microseconds, exactly or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = "SELECT card, count(*) AS n, max({time}) AS last FROM payments [TUMBLE 1 hour] GROUP BY card"


def payments(rows: int = 400, zone: str | None = None) -> pd.DataFrame:
    """Payments as an application leaves them: some late, some without a time, some before 1970 in another column."""
    times = pd.date_range("2026-01-05 07:59:59.123456", periods=rows, freq="11s", tz=zone).to_series(index=range(rows))
    times[::40] = pd.NaT
    times = times.shift(3)
    return pd.DataFrame(
        {
            "ts": times,
            "card": [f"c{i % 7}" for i in range(rows)],
            "amount": [i / 4 for i in range(rows)],
            "it's old": pd.Timestamp("1905-06-30 12:00:00.000001"),
        },
        index=range(100, 100 + rows),
    )


@pytest.mark.filterwarnings("ignore:stream 'payments'")
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_file_of_pandas_is_a_stream_by_its_path(spark: SparkSession, tmp_path: Path, zone: str | None) -> None:
    rows = payments(zone=zone)
    rows.to_parquet(tmp_path / "payments.parquet")
    loom = Loom(spark)
    stream = loom.stream("payments", tmp_path / "payments.parquet", time="ts")
    assert stream.columns["ts"].name == ("timestamp" if zone else "timestamp_ntz")
    loom.query("hourly", COUNT.format(time="`it's old`"))
    results = loom.run()
    assert results.stats.untimed == rows["ts"].isna().sum() > 0
    assert loom.verify("hourly", results)
    timed = rows.dropna(subset="ts")
    by_pandas = timed.groupby(
        [timed["ts"].dt.tz_convert("UTC").dt.floor("h") if zone else timed["ts"].dt.floor("h"), "card"]
    )
    found = results.arrow("hourly").to_pandas().set_index(["window_start", "card"])
    assert found["n"].to_dict() == by_pandas.size().to_dict()
    assert set(found["last"]) == {rows["it's old"].iloc[0]}


@pytest.mark.filterwarnings("ignore:stream 'payments'")
def test_files_of_pandas_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    from windloom.spark.sources.files import find_file_stream

    (tmp_path / "in").mkdir()
    rows = payments()
    rows[:300].to_parquet(tmp_path / "in" / "0.parquet")
    batch = Loom(spark)
    rows.to_parquet(tmp_path / "all.parquet")
    batch.stream("payments", tmp_path / "all.parquet", time="ts")
    loom = Loom(spark)
    followed = find_file_stream(batch.streams["payments"], str(tmp_path / "in"))
    rows[300:].to_parquet(tmp_path / "in" / "1.parquet")
    loom.stream("payments", followed.read(spark, 1), time="ts")
    for each in (loom, batch):
        each.query("hourly", COUNT.format(time="ts"))
    handle = loom.start("memory", trigger={"availableNow": True}, finish=True)
    assert handle.await_termination(300)
    key = [("window_start", "ascending"), ("card", "ascending")]
    assert handle.arrow("hourly").sort_by(key) == batch.run().arrow("hourly").sort_by(key)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_time_that_is_finer_than_a_microsecond_is_named_with_its_row(
    spark: SparkSession, tmp_path: Path, zone: str | None
) -> None:
    rows = payments(zone=zone)
    rows.loc[117, "ts"] = pd.Timestamp("2026-01-05 09:00:00.000000123", tz=zone)
    rows.to_parquet(tmp_path / "payments.parquet")
    loom = Loom(spark)
    loom.stream("payments", str(tmp_path / "payments.parquet"), time="ts")
    loom.query("hourly", COUNT.format(time="ts"))
    with pytest.raises(WindloomError) as refused:
        loom.run()
    assert refused.value.message == "column 'ts' has a time finer than a microsecond"
    assert refused.value.detail == (
        "row 18 of 'payments.parquet' has 1767603600000000123 nanoseconds since 1970, and Spark has microseconds"
    )
    assert "coerce_timestamps='us'" in refused.value.hint


def test_a_path_of_text_needs_types_and_a_wrong_path_says_so(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "payments.csv").write_text("ts,card\n2026-01-05 08:00:00,c1\n")
    loom = Loom(spark)
    with pytest.raises(WindloomError) as refused:
        loom.stream("payments", tmp_path / "payments.csv", time="ts")
    assert "the types of the columns" in refused.value.message
    assert "windloom init" in refused.value.hint
    with pytest.raises(WindloomError, match="there is no file or directory"):
        loom.stream("payments", tmp_path / "none.parquet", time="ts")
    payments().to_parquet(tmp_path / "payments.parquet")
    spark.conf.unset("spark.sql.legacy.parquet.nanosAsLong")
    with pytest.raises(WindloomError) as refused:
        loom.relation("cards", lambda: spark.read.parquet(str(tmp_path / "payments.parquet")))
    assert "give loom.stream the path" in refused.value.hint
    (tmp_path / "payments.cql").write_text("CREATE STREAM payments (ts TIMESTAMP, card STRING) TIME ts;")
    loom.load(tmp_path / "payments.cql")
    assert loom.stream("payments", tmp_path / "payments.csv").columns["ts"].name == "timestamp"
