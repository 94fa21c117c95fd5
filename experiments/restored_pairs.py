"""What is lost without restoring (source E, section 5.2.3), counted in Windloom: `WITHIN` against pairs of windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from windloom import Loom

_EPOCH = 1_767_600_000
#: Tuples of a stream per second, and how many values they have: about as many pairs as there are tuples.
_RATE, _VALUES = 2, 400


def lost_of_windloom(
    spark: SparkSession, length: int, deltas: Sequence[int], seconds: int, seed: int
) -> dict[int, float]:
    """By Δ: the share of an interval join's pairs that stand in no window of that length with that slide."""
    rng = np.random.default_rng(seed)
    loom = Loom(spark)
    for name in "ab":
        ticks = np.sort(rng.integers(0, seconds * 1_000_000, seconds * _RATE)) + _EPOCH * 1_000_000
        table = pa.table(
            {
                "ts": pa.array(ticks).view(pa.timestamp("us", tz="UTC")),
                "id": np.arange(len(ticks)),
                "v": rng.integers(0, _VALUES, len(ticks)),
            }
        )
        loom.stream(name, spark.createDataFrame(table), time="ts", rate=_RATE)
    pair = "SELECT {how} a.id AS l, b.id AS r FROM a {w} JOIN b {v} ON a.v = b.v"
    loom.query("within", pair.format(how="", w="", v=f"WITHIN {length} seconds"))
    for delta in deltas:
        window = f"[RANGE {length} seconds SLIDE {delta} seconds]"
        loom.query(f"slide_{delta}", pair.format(how="ISTREAM", w=window, v=window))
    results = loom.run(placement="driver")
    found = {name: results.arrow(name) for name in ("within", *(f"slide_{delta}" for delta in deltas))}
    whole = _pairs(found["within"])
    assert len(whole) == found["within"].num_rows
    lost = {}
    for delta in deltas:
        shared = _pairs(found[f"slide_{delta}"])
        assert shared <= whole
        lost[delta] = 1 - len(shared) / len(whole)
    return lost


def _pairs(rows: pa.Table) -> set[tuple[int, int]]:
    return set(zip(rows["l"].to_pylist(), rows["r"].to_pylist(), strict=True))
