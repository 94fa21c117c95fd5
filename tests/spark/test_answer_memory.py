"""Answers that are kept in memory: a bound that holds, and progress that shows how much they take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.trades import trades
from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_answers_in_memory_keep_to_a_bound_and_those_that_are_written_need_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    loom = Loom(spark)
    loom.stream("trades", trades(spark), time="ts")
    loom.query("flow", "SELECT symbol, sum(volume) AS v FROM trades [RANGE 1 hour SLIDE 1 second] GROUP BY symbol")
    told: list[str] = []
    rows = loom.run(memory="1 MiB", progress=told.append).arrow("flow").num_rows
    assert any(f"{rows:,} rows in memory, " in line and line.endswith("KiB") for line in told)
    with pytest.raises(WindloomError) as refused:
        loom.run(memory="20 KiB")
    assert refused.value.message == "the answers do not fit into memory=20 KiB"
    assert "out='answers'" in refused.value.hint
    assert loom.run(memory="20 KiB", out=tmp_path / "out").arrow("flow").num_rows == rows
    with pytest.raises(WindloomError, match="cannot read the size 'much'"):
        loom.run(memory="much")
