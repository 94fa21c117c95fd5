"""The plan of `auto` answers what every other plan answers, before and after a run has told it rates and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from support.frames import frame_of
from support.streams import SCHEMA, random_rows
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows(table: pa.Table) -> list[str]:
    return sorted(str(row) for row in table.to_pylist())


WINDOWS = ("TUMBLE 1 seconds", "RANGE 45 seconds SLIDE 15 seconds", "RANGE 7 seconds SLIDE 5 seconds")
ANSWERS = "count(*) AS c, sum(n) AS s, max(n) AS m, min(x) AS l"


@pytest.mark.parametrize("technique", ["auto", "two_stacks"])
def test_auto_answers_what_other_plans_answer(spark: SparkSession, technique: str) -> None:
    loom = Loom(spark)
    loom.stream("s", frame_of(spark, random_rows(12, 150), SCHEMA), time="ts")
    for number, window in enumerate(WINDOWS):
        loom.query(f"q{number}", f"SELECT k, {ANSWERS} FROM s [{window}] GROUP BY k")
        loom.query(f"w{number}", f"SELECT {ANSWERS} FROM s [{window}] WHERE n > 0")
    assert "observed" not in loom.explain(sharing=True)
    first = loom.run(technique=technique)
    assert first.plan.strategy == "auto"
    expected = {name: rows(first.arrow(name)) for name in loom.queries}
    assert any(expected.values())
    for strategy in ("auto", "no_share", "shared", "weave_share"):
        found = loom.run(strategy, technique=technique)
        assert {name: rows(found.arrow(name)) for name in loom.queries} == expected, strategy
    said = loom.explain(sharing=True)
    assert "tuples/s (observed" in said
    assert "groups (observed" in said
    assert loom.verify("q0", first)
