"""Every technique with every sharing strategy, on Spark from end to end, equals Spark's own window()."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.frames import frame_of
from support.streams import SCHEMA, random_rows
from support.truths import spark_truth
from windloom import Loom
from windloom.aggregates.bits import BIT_OR, BIT_XOR
from windloom.kernels.families import ADD_FLOAT, ADD_INT, FREQUENCIES, MAX_INT, MOMENTS, REGISTERS
from windloom.kernels.techniques.registry import TECHNIQUES, permits
from windloom.spark.verify.verify import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What answers by each family of operations, for a stream of `support.streams`.
ANSWERS = {
    ADD_INT: "count(*) AS c, sum(n) AS s",
    MAX_INT: "max(n) AS m, min(x) AS l",
    ADD_FLOAT: "sum(x) AS f",
    MOMENTS: "var_pop(x) AS v",
    BIT_OR: "bit_and(n) AS ba, bit_or(i) AS bo",
    BIT_XOR: "bit_xor(n) AS bx",
    FREQUENCIES: "count(DISTINCT i) AS d, median(n) AS e",
    REGISTERS: "approx_count_distinct(i) AS a",
}
WINDOWS = ("RANGE 60 seconds SLIDE 10 seconds", "RANGE 45 seconds SLIDE 15 seconds", "RANGE 7 seconds SLIDE 5 seconds")


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> object:
    return frame_of(spark, random_rows(11, 120), SCHEMA).repartition(2).persist()


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_a_technique_equals_spark_however_queries_share(spark: SparkSession, frame: object, technique: str) -> None:
    chosen = ", ".join(text for family, text in ANSWERS.items() if permits(TECHNIQUES[technique], family))
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    for number, window in enumerate(WINDOWS):
        loom.query(f"q{number}", f"SELECT k, {chosen} FROM s [{window}] GROUP BY k")
    expected = spark_truth(loom, {"s": frame})
    for strategy in ("no_share", "shared", "weave_share", "random"):
        results = loom.run(strategy, technique=technique, placement="driver")
        for name, query in loom.queries.items():
            outcome = compare(query, expected[name], results.rows(name))
            assert outcome.ok, f"{technique}, {strategy}: {query.text}\n{outcome}"
