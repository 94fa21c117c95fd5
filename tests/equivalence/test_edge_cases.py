"""Corners that random catalogs rarely reach, each against Spark's own window()."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pytest

from support.frames import frame_of
from support.truths import interpreted
from windloom import Loom, WindloomError
from windloom.slicing.slice_id import LookupSlice, PaneSlice
from windloom.slicing.slicings import SLICINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def seconds(values: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(EPOCH + datetime.timedelta(seconds=second), *rest) for second, *rest in values]


def woven(frame: DataFrame, *texts: str) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("s", frame, time="ts")
    for number, text in enumerate(texts):
        loom.query(f"q{number}", text)
    return loom


def assert_equal_to_spark(loom: Loom, **options: Any) -> None:
    results = loom.run(**options)
    with interpreted(loom.spark):
        for name in loom.queries:
            found = loom.verify(name, results)
            assert found.ok, f"{loom.queries[name].text}\n{found}"


@pytest.mark.parametrize("placement", ["driver", "executors"])
@pytest.mark.parametrize("rows", [[], [(-7, "a", 1.5)]], ids=["no tuple", "one tuple"])
def test_a_stream_of_hardly_anything(spark: SparkSession, rows: list[tuple[Any, ...]], placement: str) -> None:
    frame = frame_of(spark, seconds(rows), "ts timestamp, k string, x double")
    loom = woven(
        frame,
        "SELECT k, sum(x) AS a, count(*) AS n FROM s [RANGE 10 seconds SLIDE 3 seconds] GROUP BY k",
        "SELECT max(x) AS m FROM s [TUMBLE 1 minute]",
    )
    assert_equal_to_spark(loom, placement=placement)
    assert loom.run(placement=placement).stats.events == len(rows)


@pytest.mark.parametrize("slicing", SLICINGS)
def test_float_sums_stay_right_after_huge_spikes_have_passed(spark: SparkSession, slicing: str) -> None:
    rows = [(t, 1e15 if t % 50 == 0 else 0.1 * (t % 7)) for t in range(600)]
    rows[300] = (300, 1e300)
    rows[400] = (400, float("inf"))
    frame = frame_of(spark, seconds(rows), "ts timestamp, x double")
    loom = woven(frame, "SELECT sum(x) AS a, avg(x) AS b, var_pop(x) AS c FROM s [RANGE 20 seconds SLIDE 1 second]")
    assert_equal_to_spark(loom, slicing=slicing)


def test_equal_values_add_up_without_drift_inside_one_slice(spark: SparkSession) -> None:
    frame = spark.range(200_000, numPartitions=2).selectExpr("timestamp_millis(id) AS ts", "0.1D AS x")
    total = woven(frame, "SELECT sum(x) AS a FROM s [TUMBLE 1 hour]").run().arrow("q0")["a"][0].as_py()
    # A plain sum of 200,000 times 0.1 is off by 3e-12 of it, past what the semantics allow.
    assert abs(total - 20_000) <= 1e-12 * 20_000


def test_composite_slides_too_long_to_enumerate(spark: SparkSession) -> None:
    frame = spark.range(4_000).selectExpr("timestamp_seconds(id * 15 - 20000) AS ts", "id % 5 AS k", "id AS n")
    texts = [
        f"SELECT k, sum(n) AS a, max(n) AS m FROM s [RANGE {r} seconds SLIDE {s} seconds] GROUP BY k"
        for r, s in ((14, 7), (2000, 997), (1009, 1009), (500, 1013), (30, 11), (26, 13), (1019, 1019), (2042, 1021))
    ]
    few = woven(frame, *texts[:3])
    assert_equal_to_spark(few)
    many = woven(frame, *texts)
    assert isinstance(many.plan().sets[0].slice_id, PaneSlice)
    assert_equal_to_spark(many)
    assert_equal_to_spark(many, strategy="no_share", placement="executors")


def test_slices_found_in_a_table(spark: SparkSession) -> None:
    frame = spark.range(3_000).selectExpr("timestamp_millis(id * 777 - 900000) AS ts", "id AS n")
    texts = [
        f"SELECT sum(n) AS a, min(n) AS m FROM s [RANGE {r} seconds SLIDE {s} seconds OFFSET {o} seconds]"
        for r, s, o in ((7, 12, 1), (10, 8, 3), (9, 24, 5), (13, 10, 1), (4, 12, 7), (5, 24, 0))
    ]
    loom = woven(frame, *texts)
    assert isinstance(loom.plan().sets[0].slice_id, LookupSlice)
    assert_equal_to_spark(loom)


def test_times_without_a_zone_and_times_as_integers(spark: SparkSession) -> None:
    base = spark.range(400).selectExpr("id * 1700 - 200000 AS ms", "id AS n")
    zoneless = base.selectExpr("timestampadd(MILLISECOND, ms, TIMESTAMP_NTZ '1970-01-01 00:00:00') AS ts", "n")
    loom = woven(zoneless, "SELECT sum(n) AS a FROM s [RANGE 20 seconds SLIDE 6 seconds OFFSET 1 second]")
    for placement in ("driver", "executors"):
        assert_equal_to_spark(loom, placement=placement)
        assert loom.run(placement=placement)["q0"].schema["window_start"].dataType.simpleString() == "timestamp_ntz"
    whole = Loom(spark)
    whole.stream("s", base, time="ms", unit="ms")
    whole.query("q0", "SELECT sum(n) AS a FROM s [RANGE 20 seconds SLIDE 6 seconds OFFSET 1 second]")
    assert_equal_to_spark(whole)


def test_a_batch_run_is_one_spark_query(spark: SparkSession) -> None:
    frame = spark.range(1_000).selectExpr("timestamp_seconds(id) AS ts", "id % 3 AS k", "id AS n")
    loom = woven(
        frame,
        "SELECT k, sum(n) AS a FROM s [RANGE 20 seconds SLIDE 5 seconds] GROUP BY k",
        "SELECT max(n) AS a FROM s [RANGE 20 seconds SLIDE 5 seconds] WHERE n > 10",
        "SELECT count(*) AS a FROM s [TUMBLE 1 minute]",
    )
    before = spark._jsparkSession.sharedState().statusStore().executionsCount()
    loom.run(placement="driver")
    assert spark._jsparkSession.sharedState().statusStore().executionsCount() == before + 1


def test_averages_of_many_small_negative_integers_are_exact(spark: SparkSession) -> None:
    frame = spark.range(5_000_001, numPartitions=4).selectExpr("timestamp_micros(id) AS ts", "-1L AS n")
    found = woven(frame, "SELECT avg(n) AS a, sum(n) AS s FROM s [TUMBLE 1 hour]").run().arrow("q0").to_pylist()[0]
    assert (found["a"], found["s"]) == (-1.0, -5_000_001)


def test_averages_of_decimals_with_the_longest_scales(spark: SparkSession) -> None:
    values = ", ".join(f"(timestamp_seconds({t}), 0.{t % 7}123BD, {t % 5 - 2}.5BD)" for t in range(40))
    frame = spark.sql(
        f"SELECT col1 AS ts, CAST(col2 AS decimal(38,36)) AS d, CAST(col3 AS decimal(38,10)) AS e FROM VALUES {values}"
    )
    loom = woven(frame, "SELECT avg(d) AS a, avg(e) AS b, sum(e) AS c FROM s [RANGE 10 seconds SLIDE 3 seconds]")
    assert_equal_to_spark(loom)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_a_decimal_sum_that_overflows_inside_a_slice_names_query_window_and_group(
    spark: SparkSession, ansi: str, placement: str
) -> None:
    nines = "9" * 38
    frame = spark.sql(
        f"SELECT timestamp_seconds(col1) AS ts, 'k' AS k, CAST(col2 AS decimal(38,0)) AS d"
        f" FROM VALUES (1, {nines}BD), (2, {nines}BD), (20, 10BD)"
    )
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        loom = woven(frame, "SELECT k, sum(d) AS a FROM s [TUMBLE 10 seconds] GROUP BY k")
        with pytest.raises(WindloomError, match="query 'q0'") as error:
            loom.run(placement=placement)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert "1970-01-01T00:00:00" in error.value.detail
    assert "group k" in error.value.detail


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_integer_times_out_of_range_are_refused(spark: SparkSession, placement: str) -> None:
    for unit, tick in (("s", 2**62), ("ms", -(2**61)), ("us", 2**62 + 5)):
        loom = Loom(spark)
        loom.stream("s", frame_of(spark, [(1, 1), (tick, 2)], "t bigint, n int"), time="t", unit=unit)
        loom.query("q", "SELECT count(*) AS n FROM s [TUMBLE 1 minute]")
        with pytest.raises(WindloomError, match="without a usable time"):
            loom.run(placement=placement, untimed="stop")


def test_a_local_loom_leaves_the_settings_of_a_running_session_alone(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        assert Loom.local(cores=1).spark.conf.get("spark.sql.shuffle.partitions") == "7"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def test_a_condition_that_is_null_lets_nothing_through_and_large_integers_have_a_median(spark: SparkSession) -> None:
    frame = frame_of(spark, seconds([(1, 2**53 + 1), (2, 2**53 + 3), (3, None), (70, None)]), "ts timestamp, v bigint")
    windows = ("[TUMBLE 1 minute]", "[ROWS 3 SLIDE 1]", "[LANDMARK SLIDE 1 minute]")
    texts = [f"SELECT count(*) AS n FROM s {window} WHERE NULL" for window in windows]
    asked = "median(v) AS m, approx_quantile(v, 0.9) AS q, top(2, v) AS t"
    loom = woven(frame, *texts, *(f"SELECT {asked} FROM s {window}" for window in windows))
    assert_equal_to_spark(loom)
    assert loom.run().arrow("q0").num_rows == 0
