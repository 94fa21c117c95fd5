"""`windloom state`: what the state of a streaming operator holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from support.command import Command
from support.files import put
from support.operator_program import loom_over
from support.trades import ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_state_of_a_stream_is_shown_by_set_with_what_keeps_it(
    spark: SparkSession, tmp_path: Path, windloom: Command
) -> None:
    put(tmp_path / "in", "0", ROWS)
    writing = loom_over(spark, tmp_path, ["avg", "odd"]).answers(buckets=3).writeStream.format("noop")
    place = str(tmp_path / "checkpoint")
    writing.option("checkpointLocation", place).trigger(availableNow=True).start().awaitTermination()
    shown = windloom("state", place)
    assert shown.code == 0, shown.err
    assert "trades: windows are closed up to 2026-01-05T00:02:58" in shown.out
    assert "trades GROUP BY symbol" in shown.out
    assert "in 3 buckets" in shown.out
    told = json.loads(windloom("state", place, "--json").out)
    grouped = next(each for each in told["sets"] if each["queries"] == ["avg"])
    # Windows of a minute that end after 02:58: five slices of twenty seconds, of two groups; A is not in the last one.
    assert (grouped["cells"], grouped["kept_for"]) == (9, "avg")
    assert told["buckets"] == 3


def test_another_directory_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    assert f"'{tmp_path}' is not the checkpoint of an operator" in refused("state", str(tmp_path))
