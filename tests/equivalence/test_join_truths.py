"""What joins are verified against: Spark's frames of the model's values, Spark's SQL of a text, and the oracle."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from support.compare_joins import assert_equal_ends, assert_equal_join_rows
from support.join_catalogs import STREAMS, Drawing, random_rows
from support.spark_joins import WITHOUT_EQUAL, frames_of, spark_rows
from support.truths import interpreted
from windloom.spark.verify.verify import spark_window_frame
from windloom_tools.oracle.joins import answer_join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(6 * int(os.environ.get("WINDLOOM_SEEDS", "1")))


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_frames_spark_sql_and_the_oracle_agree(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    asked = Drawing(rng.choice).asked()
    rows = {name: random_rows(rng, rng.randint(4, 16)) for name in STREAMS}
    query = asked.query()
    wanted = answer_join(query, rows)
    with interpreted(spark):
        frames = frames_of(spark, rows)
        from_text = spark_rows(spark, asked, rows)
        from_model = spark_window_frame(query, STREAMS, frames).toArrow()
    for edge, name in enumerate(("window_start", "window_end")):
        from_model = from_model.set_column(edge, name, from_model[name].cast("int64"))
    assert_equal_join_rows(query, rows, wanted, from_model.to_pylist())
    assert_equal_ends(query, rows, wanted, from_text, without=WITHOUT_EQUAL)
