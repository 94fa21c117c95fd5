"""Aggregates as Spark spells them: each form, in a query of windows, answers what Spark's own function answers."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from support.streams import SCHEMA, random_rows
from support.truths import interpreted
from windloom import Loom
from windloom.errors import WindloomError

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
    corr(i, f); corr(f, i) FILTER (WHERE b); corr(s * 0, f); corr(f, i * 0.1 - i * 0.1); covar_pop(d, i);
    covar_samp(i, s); regr_slope(i, s); regr_slope(i, s * 0); regr_intercept(f, d) FILTER (WHERE b);
    regr_intercept(i, f * 0); regr_r2(i, f); regr_r2(s * 0, i); regr_r2(i, s * 0); regr_sxx(i, f); regr_sxy(i, f);
    regr_syy(i, d); skewness(i); skewness(s * 0); skewness(d); kurtosis(f); kurtosis(i) FILTER (WHERE b);
    kurtosis(0.1D + s * 0); try_sum(i); try_sum(d); try_avg(d); try_avg(f) FILTER (WHERE b); try_sum(f);
    try_sum(abs(n) * 200000); try_sum(abs(CAST(w AS DECIMAL(38, 12))));
    approx_percentile(CASE WHEN i > 10000 THEN i END, array(0.5)); mode(CASE WHEN i > 10000 THEN i END, true)
"""
#: Values in order of time; of tuples of one instant, in order of the values.
IN_ORDER = "transform(array_sort(collect_list(CASE WHEN {} IS NOT NULL THEN struct(ts, {} AS v) END)), e -> e.v)"
#: Forms that Spark leaves open, with what our answer must be in Spark's words.
CHOSEN = {
    "collect_set(t)": "array_sort(collect_set(t))",
    "collect_set(i) FILTER (WHERE b)": "array_sort(collect_set(i) FILTER (WHERE b))",
    "collect_list(i)": IN_ORDER.format("i", "i"),
    "array_agg(t)": IN_ORDER.format("t", "t"),
    "collect_list(day) FILTER (WHERE b)": IN_ORDER.format("CASE WHEN b THEN day END", "day"),
    "listagg(t)": f"nullif(array_join({IN_ORDER.format('t', 't')}, ''), if(count(t) > 0, NULL, ''))",
    "string_agg(t, '-') FILTER (WHERE i > 10000)": "string(NULL)",
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
    # Spark has other texts for MODE and for typed literals.
    plain = [form for form in asked if not re.search(r"mode|collect|agg|WITHIN|any_value|approx_count|D ", form)]
    named = ", ".join(plain)
    loom.query("names", f"SELECT {named} FROM s GROUP BY window(ts, '60 seconds', '20 seconds')")
    results = loom.run()
    truths = ", ".join(f"{truth} AS o{number}" for number, truth in enumerate(asked.values()))
    frame.createOrReplaceTempView("spark_aggregates")
    grouping = "window(ts, '60 seconds', '20 seconds'), k"
    with interpreted(spark):
        text = f"SELECT window.start, window.end, k, {truths} FROM spark_aggregates GROUP BY {grouping}"
        expected = spark.sql(text)
        theirs = rows_of(expected.toArrow())
    assert results["q"].dtypes[3:] == expected.dtypes[3:]
    assert results["names"].columns == spark.sql(f"SELECT {named} FROM spark_aggregates").columns
    ours = rows_of(results.arrow("q"))
    assert ours.keys() == theirs.keys()
    for key, row in theirs.items():
        for form, answer, truth in zip(asked, ours[key], row, strict=True):
            assert are_near(answer, truth), (form, key, answer, truth)
    for form in ("try_sum(abs(n) * 200000)", "try_sum(abs(CAST(w AS DECIMAL(38, 12))))"):
        answers = [row[list(asked).index(form)] for row in ours.values()]
        assert None in answers, "some sums do not fit"
        assert set(answers) != {None}


def test_every_form_is_verified_also_over_a_join(spark: SparkSession, frame: DataFrame) -> None:
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    carried = ["corr(a.i, a.f)", "regr_r2(a.d, a.i)", "skewness(a.i)", "kurtosis(b.f)", "mode(b.t)", "count_if(a.b)"]
    carried += ["approx_percentile(a.day, 0.4)", "regr_avgx(b.i, b.f)", "try_sum(a.n)", "any_value(b.t, true)"]
    carried += ["collect_set(a.t)", "collect_list(b.i)"]
    outputs = ", ".join(f"{form} AS o{number}" for number, form in enumerate(carried))
    loom.query("joined", f"SELECT a.k, {outputs} FROM s {WINDOW} a JOIN s {WINDOW} b ON a.k = b.k GROUP BY a.k")
    single = [form.replace("a.", "").replace("b.", "") for form in carried]
    outputs = ", ".join(f"{form} AS o{number}" for number, form in enumerate(single))
    loom.query("single", f"SELECT {outputs} FROM s [RANGE 90 seconds SLIDE 20 seconds] WHERE i > -500")
    results = loom.run()
    for name in ("joined", "single"):
        outcome = loom.verify(name, results)
        assert outcome, str(outcome)


@pytest.mark.parametrize("intake", ["native", "woven"])
def test_moments_are_right_after_huge_values_and_of_constants(
    spark: SparkSession, frame: DataFrame, intake: str
) -> None:
    loom = Loom(spark)
    loom.stream("s", frame.selectExpr("*", "0.1D AS c", "if(s > 95, 1e15D, f) AS spiked"), time="ts")
    forms = ["corr(i, f)", "covar_samp(spiked, f)", "regr_intercept(i, spiked)", "skewness(spiked)", "kurtosis(spiked)"]
    forms += [
        "regr_slope(f, spiked) FILTER (WHERE b)",
        "corr(c, f)",
        "regr_slope(f, c)",
        "regr_r2(c, f)",
        "skewness(c)",
    ]
    outputs = ", ".join(f"{form} AS o{number}" for number, form in enumerate(forms))
    loom.query("q", f"SELECT k, {outputs} FROM s {WINDOW} GROUP BY k")
    results = loom.run(intake=intake)
    outcome = loom.verify("q", results)
    assert outcome, str(outcome)
    of_constants = results.arrow("q").select(["o6", "o7", "o9"])
    assert all(column.null_count == len(column) for column in of_constants.columns), "rounding leaves no correlation"


def test_a_list_that_is_too_long_is_an_error_that_names_its_window(spark: SparkSession) -> None:
    loom = Loom(spark)
    instants = spark.range(100_001).selectExpr("timestamp_millis(id) AS ts", "id % 2 = 0 AS even", "id", "'a' AS k")
    loom.stream("s", instants, time="ts")
    loom.query("few", "SELECT collect_list(id) FILTER (WHERE even) AS l, collect_set(even) AS e FROM s [TUMBLE 1 hour]")
    assert [len(row["l"]) for row in loom.run().arrow("few").to_pylist()] == [50_001]
    loom.query("many", "SELECT k, collect_list(id) AS l FROM s [TUMBLE 1 hour] GROUP BY k")
    with pytest.raises(WindloomError) as caught:
        loom.run()
    assert caught.value.message == "query 'many': 'collect_list(id)' lists too many values"
    assert caught.value.detail.startswith("window [1970-01-01")
    assert caught.value.detail.endswith("group a: there are more than 100,000")


def test_functions_of_pyspark_are_read_from_the_plan_of_a_dataframe(spark: SparkSession, frame: DataFrame) -> None:
    asked = [
        *(F.count_if(F.col("i") > 3), F.corr("i", "f"), F.covar_samp("i", "d")),
        *(F.percentile_approx("i", 0.5), F.percentile_approx("d", [0.1, 0.5], 99_999), F.percentile("i", 0.3)),
        *(F.skewness("i"), F.kurtosis("f"), F.regr_slope("i", "f"), F.regr_avgx("i", "f"), F.regr_r2("d", "i")),
        *(F.try_sum("i"), F.try_avg("d"), F.every("b"), F.std("i"), F.array_sort(F.collect_set("t"))),
    ]
    loom = Loom(spark)
    window = F.window("ts", "60 seconds", "20 seconds")
    wanted = frame.groupBy(window, "k").agg(*(column.alias(f"o{i}") for i, column in enumerate(asked)))
    loom.query("q", wanted)
    results = loom.run()
    assert results["q"].dtypes == wanted.dtypes
    outcome = loom.verify("q", results)
    assert outcome, str(outcome)


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_of_no_tuples_counts_are_0_and_lists_are_empty(spark: SparkSession, placement: str) -> None:
    loom = Loom(spark)
    instants = spark.createDataFrame([(1, 2.0), (25, 2.5)], "s int, x double")
    loom.stream("s", instants.selectExpr("timestamp_seconds(s) AS ts", "x"), time="ts")
    forms = ["count(DISTINCT x)", "count_if(x > 0)", "regr_count(x, x)", "collect_list(x)", "collect_set(x)", "mode(x)"]
    outputs = ", ".join(f"{form} AS o{number}" for number, form in enumerate([*forms, "corr(x, x)"]))
    loom.query("q", f"SELECT {outputs} FROM s [TUMBLE 10 seconds] EMIT EMPTY")
    rows = sorted(loom.run(placement=placement).arrow("q").to_pylist(), key=lambda row: row["window_start"])
    assert [tuple(row.values())[2:] for row in rows] == [
        (1, 1, 1, [2.0], [2.0], 2.0, None),
        (0, 0, 0, [], [], None, None),
        (1, 1, 1, [2.5], [2.5], 2.5, None),
    ]
