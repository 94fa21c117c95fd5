"""Aggregates as Spark spells them: each form, in a query of windows, answers what Spark's own function answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.streams import SCHEMA, random_rows
from support.truths import interpreted
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Forms whose answers are those of Spark, in value and in type.
EQUAL = """
    count_if(i > 0); count_if(b); count_if(NULL); count_if(b) FILTER (WHERE i > 0); count_if(i > 0 OR b) + count_if(b);
    regr_count(i, f); regr_count(i, f) FILTER (WHERE b); regr_avgx(i, f); regr_avgy(i, f); regr_avgx(s, d);
    mode(t, true); mode(day, true) FILTER (WHERE b); mode(i % 5, true); mode() WITHIN GROUP (ORDER BY t);
    approx_percentile(i, 0.5); percentile_approx(i, 0.9, 10000); approx_percentile(d, 0.25); approx_percentile(f, 1.0);
    approx_percentile(day, 0.3); approx_percentile(ts, 0.3); approx_percentile(i, 0.0) FILTER (WHERE b);
    approx_percentile(i, array(0.1, 0.5, 0.9)); percentile_approx(d, array(0.25), 99999);
    percentile(i, array(0.25, 0.75)) FILTER (WHERE b); percentile(i, array(0.1)); percentile(i, 0.3);
    percentile_cont(0.3) WITHIN GROUP (ORDER BY i); percentile_disc(0.3) WITHIN GROUP (ORDER BY i);
    percentile_disc(0.75) WITHIN GROUP (ORDER BY d) FILTER (WHERE b); every(b); some(b); std(i); mean(i); variance(i);
    approx_percentile(CASE WHEN i > 10000 THEN i END, array(0.5)); mode(CASE WHEN i > 10000 THEN i END, true)
"""
#: Forms that Spark leaves open, with what our answer must be in Spark's words.
CHOSEN = {
    "any_value(i)": "min(struct(ts, i)).i",
    "any_value(i, true)": "(min(struct(ts, i)) FILTER (WHERE i IS NOT NULL)).i",
    "any_value(t) IGNORE NULLS": "(min(struct(ts, t)) FILTER (WHERE t IS NOT NULL)).t",
    "mode(t)": "mode(t, true)",
    "approx_count_distinct(i % 7, 0.05)": "count(DISTINCT i % 7)",
}
WINDOW = "[RANGE 60 seconds SLIDE 20 seconds]"


def forms() -> dict[str, str]:
    """Every form, with the expression of Spark that it is compared with."""
    plain = (form.strip() for form in EQUAL.replace("\n", " ").split(";"))
    return {form: form for form in plain if form} | CHOSEN


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(random_rows(5, 220), SCHEMA).repartition(2).persist()


def rows_of(table: pa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return {row[:3]: row[3:] for row in rows}


def are_near(found: Any, expected: Any) -> bool:
    """Floats up to rounding, everything else equal."""
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(are_near, found, expected))
    if isinstance(found, float) and isinstance(expected, float):
        both_nan = math.isnan(found) and math.isnan(expected)
        return both_nan or math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    return type(found) is type(expected) and found == expected


def test_every_form_answers_what_spark_answers(spark: SparkSession, frame: DataFrame) -> None:
    asked = forms()
    outputs = ", ".join(f"{form} AS o{number}" for number, form in enumerate(asked))
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    loom.query("q", f"SELECT k, {outputs} FROM s {WINDOW} GROUP BY k")
    results = loom.run()
    truths = ", ".join(f"{truth} AS o{number}" for number, truth in enumerate(asked.values()))
    frame.createOrReplaceTempView("spark_aggregates")
    grouping = "window(ts, '60 seconds', '20 seconds'), k"
    with interpreted(spark):
        text = f"SELECT window.start, window.end, k, {truths} FROM spark_aggregates GROUP BY {grouping}"
        expected = spark.sql(text)
        theirs = rows_of(expected.toArrow())
    assert results["q"].dtypes[3:] == expected.dtypes[3:]
    ours = rows_of(results.arrow("q"))
    assert ours.keys() == theirs.keys()
    for key, row in theirs.items():
        for form, answer, truth in zip(asked, ours[key], row, strict=True):
            assert are_near(answer, truth), (form, key, answer, truth)
