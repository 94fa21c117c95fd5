"""`windloom init`, `run` and `show` on files as other programs write them, without an edit in between."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pandas as pd
import pytest

from support.command import Command
from windloom.language.catalog import parse_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, UNTIMED = 2_000, 40


def payments() -> pd.DataFrame:
    """Payments as they came: one of twenty is up to 15 minutes late, one of fifty has no time, some share theirs."""
    on_time = pd.date_range("2026-01-05 07:59:59.123456", periods=ROWS, freq="3s").to_series(index=range(ROWS))
    late = pd.to_timedelta([i * 7 % 900 if i % 20 == 7 else 0 for i in range(ROWS)], unit="s")
    times = on_time - late
    times[::50] = pd.NaT
    amounts = [math.sin(i) for i in range(ROWS)]
    return pd.DataFrame(
        {
            "ts": times,
            "card": [f"c{i % 7}" for i in range(ROWS)],
            "amount": [None if i % 9 == 0 else amounts[i] for i in range(ROWS)],
            "is paid": [i % 3 == 0 for i in range(ROWS)],
        }
    )


def written(kind: str, folder: Path, spark: SparkSession) -> Path:
    rows = payments()
    in_microseconds = rows.assign(ts=rows["ts"].astype("datetime64[us]"))
    match kind:
        case "pandas":
            rows.to_parquet(folder / "payments.parquet")
            return folder / "payments.parquet"
        case "spark":
            spark.createDataFrame(in_microseconds).coalesce(1).write.parquet(f"file://{folder}/payments")
            return folder / "payments"
        case "duckdb":
            duckdb.sql(f"COPY rows TO '{folder}/payments.parquet'")
            return folder / "payments.parquet"
        case "csv":
            rows.to_csv(folder / "payments.csv")  # with its index, a column without a name
            return folder / "payments.csv"
        case _:
            rows.to_json(folder / "payments.jsonl", orient="records", lines=True, date_format="iso", date_unit="us")
            return folder / "payments.jsonl"


@pytest.mark.parametrize("kind", ["pandas", "spark", "duckdb", "csv", "json lines"])
def test_a_file_is_answered_without_an_edit(kind: str, windloom: Command, spark: SparkSession, tmp_path: Path) -> None:
    file, catalog, out = written(kind, tmp_path, spark), tmp_path / "made.cql", tmp_path / "answers"
    made = windloom("init", file, "--out", catalog, "--name", "payments")
    assert made.code == 0, made.err
    assert "15 minutes, as 99.9 % of the rows come at most" in made.out
    assert f"{UNTIMED} rows without a time: in no window" in made.out
    text = catalog.read_text()
    stream = parse_catalog(text).streams[0].stream
    assert (stream.time, stream.delay_ticks, list(stream.columns)[:3]) == ("ts", 900_000_000, ["ts", "card", "amount"])
    rows = payments().dropna(subset="ts")
    seconds = (rows["ts"].max() - rows["ts"].min()).total_seconds()
    assert stream.events_per_second == pytest.approx(len(rows) / seconds, rel=0.005)
    for words in (
        f"{UNTIMED} of 2,000 rows have none",
        "5 % come late",
        "99.9 % come at most",
        "have the time of another",
    ):
        assert words in text
    assert windloom("run", catalog, "--stream", f"payments={file}", "--out", out).code == 0
    told = json.loads(windloom("show", out, "last_hour", "--limit", "100000", "--json").out)
    starts = pd.date_range("2026-01-05 06:30", "2026-01-05 10:00", freq="5min")
    hours = [rows[(rows["ts"] >= start) & (rows["ts"] < start + pd.Timedelta("1h"))] for start in starts]
    assert told["rows"] == sum(hour["card"].nunique() for hour in hours)
    newest = windloom("show", out, "per_minute", "--limit", "1").out
    assert "the latest 1 of " in newest


def test_times_that_are_not_in_the_order_of_arrival_give_no_delay(windloom: Command, tmp_path: Path) -> None:
    rows = payments().dropna(subset="ts")
    rows.sort_values("card").to_csv(tmp_path / "sorted.csv", index=False)
    rows.sort_values("ts").to_csv(tmp_path / "ordered.csv", index=False)
    for name, words in {
        "sorted": "they are not in the order in which they came, so this is a guess",
        "ordered": "none comes after a later one, so this is a guess",
    }.items():
        made = windloom("init", tmp_path / f"{name}.csv", "--out", tmp_path / f"{name}.cql")
        assert made.code == 0
        text = (tmp_path / f"{name}.cql").read_text()
        assert words in text
        assert "DELAY 10 seconds" in text
        assert "delay:" not in made.out


def test_a_file_without_a_time_says_what_a_time_may_be(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("name,city\nx,y\n")
    assert "no column looks like a time" in refused("init", tmp_path / "names.csv")
