"""DataFrames that people have written are answered as they stand: same schema, same rows, from one reading."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from py4j.clientserver import ClientServerConnection  # type: ignore[import-untyped]
from pyspark.sql import functions as F
from pyspark.sql.functions import col, window

from support.brought import INTERPRETED, batch_jobs, streaming_jobs, write_bids
from windloom import Loom, WindloomError, WindloomWarning
from windloom.spark.verify.written import verify_frame

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from windloom.engine.handle import Handle


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Let Spark interpret its plans."""
    before = {name: spark.conf.get(name) for name in INTERPRETED}
    try:
        for name, value in INTERPRETED.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_bids(spark, tmp_path_factory.mktemp("brought"))


@pytest.fixture(scope="module")
def bids(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.parquet(path)


@pytest.fixture(scope="module")
def live(spark: SparkSession, bids: DataFrame, path: str) -> DataFrame:
    return spark.readStream.schema(bids.schema).parquet(path)


def test_sixty_dataframes_are_answered_with_their_own_schemas_and_rows(spark: SparkSession, bids: DataFrame) -> None:
    frames = {name: job(bids) for name, job in batch_jobs().items()}
    assert len(frames) >= 60
    loom = Loom(spark)
    for name, frame in frames.items():
        loom.query(name, frame)
    results = loom.run()
    with interpreted(spark):
        for name, frame in frames.items():
            assert results[name].schema == frame.schema, name
            assert (verified := loom.verify(name, results)), verified
    # What Spark computes below the window makes a stream of its own; everything else reads the files once.
    assert sum("bids" in query.streams for query in loom.queries.values()) >= 54


def test_twenty_streaming_dataframes_are_answered_with_their_own_schemas_and_the_rows_of_a_batch(
    spark: SparkSession, bids: DataFrame, live: DataFrame
) -> None:
    jobs = streaming_jobs()
    assert len(jobs) == 20
    loom = Loom(spark)
    for name, job in jobs.items():
        loom.query(name, job(live))
    assert [(stream.time, stream.delay_ticks) for stream in loom.streams.values()] == [("ts", 10_000_000)]
    handle = loom.start("memory", trigger={"availableNow": True}, finish=True)
    handle.await_termination()
    with interpreted(spark):
        for name, job in jobs.items():
            assert handle[name].schema == job(live).schema, name
            assert (verified := verify_frame(name, job(bids), handle.arrow(name))), verified


def test_names_that_mean_something_else_and_unusual_times_are_read(spark: SparkSession, bids: DataFrame) -> None:
    """Columns called as the window, or with dots, spaces and underscores; times without zone, in structs, or NULL."""
    odd = bids.selectExpr(
        "ts", "CAST(ts AS TIMESTAMP_NTZ) AS local", "amount AS window", "auction AS `p.q`", "is_open AS __x",
        "named_struct('at', ts, 'x y', amount) AS made", "price AS `it's`",
    )  # fmt: skip
    minute = window("ts", "1 minute")
    frames = {
        "local": odd.groupBy(window("local", "1 minute", "20 seconds")).count(),
        "field": odd.groupBy(window("made.at", "1 minute"), "made.`x y`").count(),
        "names": odd.groupBy(minute.alias("w"), "window", "`p.q`", "__x").agg(F.max("`it's`"), F.sum("window")),
        "both": odd.alias("l")
        .join(odd.alias("r"), col("l.ts") == col("r.ts"))
        .groupBy(window("l.ts", "1 minute"), "l.window")
        .agg(F.sum("r.`p.q`")),
        "alone": odd.groupBy(minute).agg(F.max("ts")).select("window"),
        "never": odd.groupBy(window(F.lit(None).cast("timestamp"), "1 minute")).count(),
        "time": odd.groupBy(minute).count().select(F.window_time("window").alias("at"), "count"),
        "placed": odd.repartition(3, "`p.q`").hint("broadcast").groupBy(minute).count().coalesce(1),
        "constant": odd.groupBy(minute, F.lit("x").alias("c")).agg(F.count(F.lit(1)), F.sum(F.lit(2.5))),
    }
    loom = Loom(spark)
    for name, frame in frames.items():
        loom.query(name, frame)
    with pytest.warns(WindloomWarning, match="in no window"):
        results = loom.run()
    with interpreted(spark):
        for name, frame in frames.items():
            assert results[name].schema == frame.schema, name
            assert (verified := loom.verify(name, results)), verified


def test_the_operator_gives_a_frame_in_the_place_of_the_dataframe(
    spark: SparkSession, bids: DataFrame, live: DataFrame
) -> None:
    """With its schema to the last detail: what can be NULL, in lists and windows too, and two columns of one name."""
    jobs = batch_jobs()
    frames = {name: jobs[name](bids) for name in ("job_03", "job_08", "job_12", "job_16", "job_18", "job_40")}
    frames["twice"] = bids.groupBy(window("ts", "10 minutes").alias("w")).agg(
        F.max("fee"), F.max("fee"), F.avg("price")
    )
    frames["lists"] = bids.groupBy(window("ts", "10 minutes")).agg(F.collect_set("amount"), F.count("*") + 1)
    loom = Loom(spark)
    for name, frame in frames.items():
        loom.query(name, frame)
    for name, frame in frames.items():
        assert loom.answers(name).schema == frame.schema, name
    for name in ("job_18", "twice"):
        assert (verified := verify_frame(name, frames[name], loom.answers(name).toArrow())), verified
    assert loom.answers("job_18").collect() == frames["job_18"].collect()  # which is ordered
    streaming = Loom(spark)
    for name, job in streaming_jobs().items():
        streaming.query(name, frame := job(live))
        if name == "live_07":
            continue
        answers = streaming.answers(name)
        assert answers.isStreaming
        assert _without_delays(answers) == _without_delays(frame), name
    with pytest.raises(WindloomError, match="'live_07' cannot run as a Spark operator yet"):
        streaming.answers("live_07")  # which has sessions


def _without_delays(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The fields of a frame without the delay that Spark notes at windows: the watermark is not that of the answers."""
    return [
        (each.name, each.dataType, each.nullable, {key for key in each.metadata if key != "spark.watermarkDelayMs"})
        for each in frame.schema.fields
    ]


def test_answers_joined_on_their_windows_and_groups_are_one_query(spark: SparkSession, bids: DataFrame) -> None:
    """Bidders are NULL at times, which `=` never matches, and some groups are on one side only."""
    sliding, minute = window("ts", "10 minutes", "5 minutes"), window("ts", "1 minute")
    keys = ["window", "bidder"]
    counts = bids.groupBy(sliding, "bidder").agg(F.count("*").alias("n"), F.max("price").alias("high"))
    dear = bids.where("price > 110").groupBy(sliding, "bidder").agg(F.count("*").alias("dear"), F.avg("fee").alias("f"))
    many = bids.where("amount > 80").groupBy("bidder", sliding).agg(F.sum("amount").alias("s")).where("s > 200")
    left, right = counts.alias("l"), dear.alias("r")
    explicit = (col("l.window") == col("r.window")) & col("l.bidder").eqNullSafe(col("r.bidder"))
    frames = {
        "inner": counts.join(dear, keys),
        "same": counts.join(bids.groupBy(sliding, "bidder").agg(F.min("price")), keys).where("n > 3").drop("high"),
        "left": counts.join(dear, keys, "left"),
        "right": dear.join(counts, keys, "right").withColumn("share", col("dear") / col("n")),
        "semi": counts.join(many, keys, "left_semi"),
        "anti": counts.join(dear, keys, "left_anti"),
        "null safe": left.join(right, explicit).select("l.window", "r.bidder", "n", "dear").orderBy("window", "n"),
        "three": counts.join(dear, keys, "left").join(many, keys).select("bidder", "window.start", "n", "f", "s"),
        "nested": counts.join(dear.join(many, keys, "left"), keys, "left").select("window", "bidder", "s", "dear"),
        "no groups": bids.groupBy(minute).count().join(bids.where("is_open").groupBy(minute).count(), "window", "left"),
        "picks": bids.where("is_open")
        .groupBy(minute)
        .agg(F.expr("first(price, true)"), F.expr("last(amount) FILTER (WHERE amount > 9)"), F.max_by("fee", "ts"))
        .join(bids.where("price > 50").groupBy(minute).agg(F.expr("percentile(price, 0.25)")), "window", "right"),
        "unlike": bids.where("is_open")
        .groupBy(minute)
        .agg(F.expr("count_if(price > 50)"), F.count_distinct("bidder"), F.median("fee"))
        .join(bids.where("NOT is_open").groupBy(minute).agg(F.expr("sum(fee) FILTER (WHERE amount > 9)")), "window"),
    }
    loom = Loom(spark)
    for name, frame in frames.items():
        loom.query(name, frame)
    assert list(loom.streams) == ["bids"]
    assert loom.queries["inner"].text == (
        "SELECT window, bidder, count(1) AS n, max(price) AS high, count(1) FILTER (WHERE (price > 110.0D)) AS dear, "
        "avg(fee) FILTER (WHERE (price > 110.0D)) AS f\n"
        "FROM bids\n"
        "GROUP BY window(ts, '10 minutes', '5 minutes'), bidder\n"
        "HAVING ((count(1) FILTER (WHERE (price > 110.0D)) > 0L)) AND (bidder IS NOT NULL)"
    )
    results = loom.run()
    with interpreted(spark):
        for name, frame in frames.items():
            assert results[name].schema == frame.schema, name
            assert (verified := loom.verify(name, results)), verified
            assert verified.rows > 0, name


def test_streaming_answers_that_are_joined_are_one_query_of_one_stream(
    spark: SparkSession, bids: DataFrame, live: DataFrame
) -> None:
    def joined(data: DataFrame) -> DataFrame:
        late = data.withWatermark("ts", "10 seconds")
        counts = late.groupBy(window("ts", "10 minutes"), "auction").count()
        dear = late.where("price > 90").groupBy(window("ts", "10 minutes"), "auction").agg(F.max("fee").alias("fee"))
        return counts.join(dear, ["window", "auction"], "left")

    loom = Loom(spark)
    query = loom.query("q", joined(live))
    assert query.streams == ("bids",)
    assert loom.streams["bids"].delay_ticks == 10_000_000
    handle = loom.start("memory", trigger={"availableNow": True}, finish=True)
    handle.await_termination()
    assert handle["q"].schema == joined(live).schema
    assert (verified := verify_frame("q", joined(bids), handle.arrow("q"))), verified


def test_rows_come_in_the_order_of_the_dataframe(spark: SparkSession, bids: DataFrame) -> None:
    frame = (
        bids.groupBy(window("ts", "10 minutes"), "auction")
        .agg(F.sum("amount").alias("a"))
        .orderBy(col("a").desc(), "window", "auction")
    )
    loom = Loom(spark)
    loom.query("q", frame)
    assert loom.run()["q"].collect() == frame.collect()


def test_the_plan_of_a_dataframe_is_read_as_a_query_of_our_language(spark: SparkSession, bids: DataFrame) -> None:
    frame = (
        bids.where("price > 2")
        .withColumn("twice", col("price") * 2)
        .groupBy(window("ts", "1 hour", "30 minutes"), (col("auction") + 1).alias("next"))
        .agg(F.avg("twice").alias("p"), F.count_distinct("bidder").alias("n"))
        .where(col("p") > 3)
        .select(col("window.start").alias("s"), "next", "p")
        .orderBy("s")
    )
    loom = Loom(spark)
    assert loom.query("q", frame).text == (
        "SELECT window.`start` AS s, (auction + 1L) AS `next`, avg((price * 2.0D)) AS p\n"
        "FROM bids\n"
        "WHERE (price > 2.0D)\n"
        "GROUP BY window(ts, '1 hour', '30 minutes'), (auction + 1L)\n"
        "HAVING (avg((price * 2.0D)) > 3.0D)\n"
        "ORDER BY window.`start` ASC NULLS FIRST"
    )
    assert "GROUP BY window(ts, '1 hour', '30 minutes')" in loom.explain(query="q")


def test_what_spark_prints_without_what_matters_is_read_in_full(spark: SparkSession, bids: DataFrame) -> None:
    text = """WITH wide AS (SELECT *, amount + 1 AS more FROM read_bids)
        SELECT first(more, true) AS f, percentile(more, 0.5) FILTER (WHERE nullif(more, 3) = 2) AS p,
          max(transform(sizes, y -> y + more)[0]) AS t, max(extract(hour FROM ts)) AS h,
          sum(more) FILTER (WHERE ts BETWEEN TIMESTAMP '2026-01-01' AND TIMESTAMP '2027-01-01') AS b
        FROM wide GROUP BY window(ts, '10 seconds')"""
    bids.createOrReplaceTempView("read_bids")
    loom = Loom(spark)
    read = loom.query("q", spark.sql(text)).text
    assert "first((amount + 1), true) AS f" in read
    assert "percentile((amount + 1), 0.5) FILTER (WHERE (nullif((amount + 1), 3) = 2)) AS p" in read
    assert re.search(r"transform\(sizes, (x_1) -> \(\1 \+ \(amount \+ 1\)\)\)", read)
    assert "EXTRACT(hour FROM ts)" in read
    assert "(ts) BETWEEN (TIMESTAMP '2026-01-01 00:00:00') AND" in read
    assert list(loom.streams) == ["read_bids"]


def test_dataframes_over_the_same_leaf_share_a_stream_and_others_do_not(
    spark: SparkSession, bids: DataFrame, path: str
) -> None:
    minute = window("ts", "1 minute")
    loom = Loom(spark)
    loom.query("a", bids.groupBy(minute).count())
    loom.query("b", spark.read.parquet(path).where("amount > 3").groupBy(minute, "bidder").max("fee"))
    bids.createOrReplaceTempView("viewed")
    loom.query("c", spark.sql("SELECT count(*) FROM viewed GROUP BY window(ts, '1 hour')"))
    assert list(loom.streams) == ["bids"]
    loom.query("d", bids.limit(10).groupBy(minute).count())
    loom.query("e", bids.limit(10).groupBy(minute).agg(F.max("fee")))
    loom.query("f", bids.groupBy(window("day", "1 day")).count())
    assert [query.streams for query in loom.queries.values()] == [
        *[("bids",)] * 3,
        *[("events",)] * 2,
        ("bids_2",),
    ]


def test_a_plan_is_read_in_few_calls_to_the_jvm(
    spark: SparkSession, bids: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes its time, and there may be hundreds of plans; walking one node by node takes over 400 calls."""
    frame = (
        bids.where("price > 2 AND amount < 7")
        .groupBy(window("ts", "1 hour", "30 minutes"), "auction")
        .agg(F.avg("price").alias("p"), F.max("fee"), F.expr("sum(amount) FILTER (WHERE is_open)"), F.count("*"))
        .where(col("p") > 3)
    )
    loom, calls, send = Loom(spark), Counter[str](), ClientServerConnection.send_command
    loom.query("before", frame)

    def counted(self: Any, command: str) -> Any:
        calls[command[0]] += 1
        return send(self, command)

    asked = frame.where("p > 4")
    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    loom.query("q", asked)
    assert 50 < calls.total() - calls["m"] < 200  # without the messages that objects are not needed any more


def test_a_registered_stream_is_used_with_its_name_and_rate(spark: SparkSession, bids: DataFrame) -> None:
    loom = Loom(spark)
    stream = loom.stream("auctions", bids, time="ts", rate=250)
    query = loom.query("q", bids.where("is_open").groupBy(window("ts", "1 minute")).count())
    assert query.streams == ("auctions",)
    assert loom.streams == {"auctions": stream}


def test_a_part_of_a_dataframe_that_is_registered_or_cached_is_read_as_it_is(
    spark: SparkSession, bids: DataFrame
) -> None:
    minute = window("ts", "1 minute")
    dear, cached = bids.where("price > 50"), bids.where("price > 60").cache()
    loom = Loom(spark)
    loom.stream("dear", dear, time="ts")
    try:
        assert loom.query("a", dear.where("is_open").groupBy(minute).count()).streams == ("dear",)
        query = loom.query("b", cached.groupBy(minute).count())
        assert query.where is None
        results = loom.run()
        assert loom.verify("a", results)
        assert loom.verify("b", results)
    finally:
        cached.unpersist()


def test_a_program_that_runs_again_goes_on_with_the_queries_of_its_checkpoint(
    spark: SparkSession, live: DataFrame, tmp_path: Path
) -> None:
    def started() -> tuple[Loom, Handle]:
        """A loom as the program makes it at every start, with new DataFrames."""
        loom = Loom(spark)
        frame = live.withWatermark("ts", "10 seconds").where(F.exists("sizes", lambda size: size > 2))
        loom.query("q", frame.groupBy(window("ts", "10 minutes")).agg(F.count("*").alias("n")))
        handle = loom.start("memory", checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True})
        handle.await_termination()
        return loom, handle

    (first, begun), (second, continued) = started(), started()
    assert first.queries["q"].text == second.queries["q"].text
    assert begun.status["plan_version"] == continued.status["plan_version"] == 0


def test_streams_of_two_delays_are_two(spark: SparkSession, live: DataFrame) -> None:
    minute = window("ts", "1 minute")
    loom = Loom(spark)
    for name, delay in {"a": "10 seconds", "b": "1 minute", "c": "10 seconds"}.items():
        loom.query(name, live.withWatermark("ts", delay).groupBy(minute).count())
    loom.query("d", live.groupBy(minute).count())
    delays = {name: stream.delay_ticks for name, stream in loom.streams.items()}
    assert delays == {"bids": 10_000_000, "bids_2": 60_000_000}
    assert [query.streams[0] for query in loom.queries.values()] == ["bids", "bids_2", "bids", "bids"]
    loom.query("e", live.withWatermark("ts", "1 month").groupBy(minute).count())  # which Spark takes for 31 days
    assert loom.streams["bids_3"].delay_ticks == 31 * 86_400_000_000
    with pytest.raises(WindloomError, match="months have no fixed length"):
        loom.query("f", live.withWatermark("ts", "10 seconds").groupBy(F.session_window("ts", "1 month")).count())
    assert list(loom.streams) == ["bids", "bids_2", "bids_3"]


def test_what_only_spark_can_evaluate_below_the_window_is_left_to_spark(spark: SparkSession, bids: DataFrame) -> None:
    doubled = F.udf(lambda amount: amount * 2, "int")
    frame = bids.withColumn("more", doubled("amount")).where("more > 20").groupBy(window("ts", "1 minute"))
    loom = Loom(spark)
    loom.query("q", frame.agg(F.sum("more").alias("s")))
    assert "more > 20" in loom.queries["q"].text
    assert loom.verify("q")


#: DataFrames that are refused, with what the error must name.
REFUSED: dict[str, tuple[Callable[[DataFrame], DataFrame], tuple[str, ...]]] = {
    "no window": (lambda b: b.groupBy("auction").count(), ("has no window", "Aggregate", "groupBy(window(")),
    "no aggregation": (lambda b: b.where("is_open"), ("has no window", "Relation")),
    "a limit": (
        lambda b: b.groupBy(window("ts", "1 minute")).count().limit(3),
        ("'GlobalLimit'", "results[name].limit"),
    ),
    "a join of different windows": (
        lambda b: b.groupBy(window("ts", "1 minute")).count().join(b.groupBy(window("ts", "1 hour")).count(), "window"),
        ("'Join'", "window(t, '1 minute') and window(t, '1 hour')", "results['a'].join"),
    ),
    "a join of different data": (
        lambda b: (
            b.groupBy(window("ts", "1 minute"))
            .count()
            .join(b.limit(9).groupBy(window("ts", "1 minute")).count(), "window")
        ),
        ("'Join'", "different data", "results['a'].join"),
    ),
    "a join of different groups": (
        lambda b: (
            b.groupBy(window("ts", "1 minute"), "auction")
            .count()
            .join(b.groupBy(window("ts", "1 minute")).count(), "window")
        ),
        ("'Join'", "different groups"),
    ),
    "a join on a part of the groups": (
        lambda b: (
            b.groupBy(window("ts", "1 minute"), "auction")
            .count()
            .join(b.groupBy(window("ts", "1 minute"), "auction").max("fee"), "window")
        ),
        ("'Join'", "it is not on auction"),
    ),
    "a full join": (
        lambda b: (
            b.groupBy(window("ts", "1 minute"))
            .count()
            .join(b.groupBy(window("ts", "1 minute")).max("fee"), "window", "full")
        ),
        ("'Join'", "FULL OUTER"),
    ),
    "a join with a table": (
        lambda b: b.groupBy(window("ts", "1 minute"), "auction").count().join(b.select("auction", "day"), "auction"),
        ("'Join' cannot stand above a window", "results['a'].join"),
    ),
    "a rollup": (
        lambda b: b.rollup(window("ts", "1 minute"), "auction").count(),
        ("rollup, cube and grouping sets", "for each of them"),
    ),
    "a union": (
        lambda b: b.groupBy(window("ts", "1 minute")).count().union(b.groupBy(window("ts", "1 hour")).count()),
        ("'Union'", "results['a'].union"),
    ),
    "a Python function above": (
        lambda b: b.groupBy(window("ts", "1 minute")).count().select(F.udf(lambda n: n, "bigint")("count")),
        ("a Python function above the window", "loom.run()"),
    ),
    "a Python function in an aggregate": (
        lambda b: b.groupBy(window("ts", "1 minute")).agg(F.sum(F.udf(lambda n: n, "int")("amount"))),
        ("a Python function inside an aggregation", "withColumn"),
    ),
    "a window over a window": (
        lambda b: b.groupBy(window("ts", "1 minute"), "auction").count().groupBy("auction").agg(F.max("count")),
        ("an aggregation over the answers of a window", "groupBy"),
    ),
    "OVER": (
        lambda b: b.groupBy(window("ts", "1 minute")).count().selectExpr("sum(count) OVER (ORDER BY window)"),
        ("'Window' cannot stand above a window",),
    ),
    "a gap that varies": (
        lambda b: b.groupBy(F.session_window("ts", F.expr("IF(is_open, '1 second', '9 seconds')"))).count(),
        ("sessions whose gap varies", "session_window('ts', '5 minutes')"),
    ),
    "an aggregate that is not known": (
        lambda b: b.groupBy(window("ts", "1 minute")).agg(F.expr("kll_sketch_agg_bigint(auction)")),
        ("kll_sketch_agg_bigint()",),
    ),
    "a function of pandas over groups": (
        lambda b: b.groupBy(window("ts", "1 minute")).applyInPandas(lambda rows: rows.head(1), b.schema),
        ("'FlatMapGroupsInPandas' cannot stand above a window", "groupBy(window("),
    ),
    "a pivot": (
        lambda b: b.groupBy(window("ts", "1 minute")).pivot("is_open", [True, False]).sum("amount"),
        ("an aggregation over the answers of a window",),
    ),
    "rows of pandas above": (
        lambda b: b.groupBy(window("ts", "1 minute")).count().mapInPandas(lambda rows: rows, "count bigint"),
        ("'MapInPandas' cannot stand above a window",),
    ),
    "distinct answers": (
        lambda b: b.groupBy(window("ts", "1 minute")).count().select("count").distinct(),
        ("results[name].distinct",),
    ),
    "a sample": (
        lambda b: b.groupBy(window("ts", "1 minute")).count().sample(0.5, 3),
        ("'Sample' cannot stand above a window",),
    ),
    "exploded answers": (
        lambda b: b.groupBy(window("ts", "1 minute")).agg(F.collect_set("amount").alias("a")).select(F.explode("a")),
        ("'Generate' cannot stand above a window",),
    ),
    "windows that are joined before they are grouped by": (
        lambda b: (
            b.select(window("ts", "1 minute").alias("w"), "auction")
            .join(b.select(window("ts", "1 minute").alias("w"), "bidder"), "w")
            .groupBy("w")
            .count()
        ),
        ("'Join' cannot stand between a window and its aggregation", "[TUMBLE 1 hour]"),
    ),
    "windows that are made distinct": (
        lambda b: b.select(window("ts", "1 minute").alias("w"), "bidder").distinct().groupBy("w").count(),
        ("between a window and its aggregation", "count_distinct"),
    ),
    "two windows": (
        lambda b: b.withColumn("w", window("ts", "1 minute")).groupBy("w", window("ts", "1 hour").alias("v")).count(),
        ("two windows",),
    ),
    "chance": (
        lambda b: b.groupBy(window("ts", "1 minute")).agg(F.sum("amount") * F.rand(3)),
        ("another value every time",),
    ),
    "columns compared with the window": (
        lambda b: b.withColumn("w", window("ts", "1 minute")).where("w.start < ts").groupBy("w").count(),
        ("compares the window with columns",),
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_a_refused_dataframe_names_the_node_and_what_works_and_leaves_nothing(
    spark: SparkSession, bids: DataFrame, name: str
) -> None:
    write, named = REFUSED[name]
    loom = Loom(spark)
    with pytest.raises(WindloomError) as refused:
        loom.query("q", write(bids))
    for words in ("query 'q'", *named):
        assert words in str(refused.value)
    assert refused.value.hint
    assert not loom.queries
    assert not loom.streams


@pytest.mark.parametrize("given", ["grouped", "writer", "column", "name"])
def test_what_is_no_dataframe_is_refused_with_what_to_give(spark: SparkSession, bids: DataFrame, given: str) -> None:
    grouped = bids.groupBy(window("ts", "1 minute"))
    things = {"grouped": grouped, "writer": grouped.count().write, "column": window("ts", "1 minute"), "name": None}
    loom = Loom(spark)
    with pytest.raises(WindloomError, match=r"give SELECT … as text, or a DataFrame: df.groupBy\(window"):
        loom.query("q", things[given])  # type: ignore[arg-type]
    assert not loom.queries
    assert not loom.streams


def test_what_is_refused_leaves_the_streams_and_queries_that_there_are(spark: SparkSession, bids: DataFrame) -> None:
    loom = Loom(spark)
    frame = bids.groupBy(window("ts", "1 minute"), "auction").count()
    loom.query("q", frame)
    other = bids.limit(9).groupBy(window("ts", "1 minute"))
    for refused in (frame.limit(2), other.agg(F.expr("kll_sketch_agg_bigint(auction)")), other.count()):
        with pytest.raises(WindloomError):
            loom.query("q", refused)
    assert list(loom.queries) == ["q"]
    assert list(loom.streams) == ["bids"]
    assert loom.verify("q")


def test_a_dataframe_that_is_streaming_elsewhere_is_answered_as_well(
    spark: SparkSession, bids: DataFrame, live: DataFrame, tmp_path: Path
) -> None:
    """A streaming DataFrame is a plan: every query that is started from it reads the source by itself."""
    frame = live.withWatermark("ts", "10 seconds").groupBy(window("ts", "10 minutes")).count()
    elsewhere = frame.writeStream.format("memory").queryName("elsewhere").outputMode("complete").start()
    try:
        loom = Loom(spark)
        loom.query("q", frame)
        handle = loom.start("memory", trigger={"availableNow": True}, finish=True)
        handle.await_termination()
        assert verify_frame("q", bids.groupBy(window("ts", "10 minutes")).count(), handle.arrow("q"))
        assert elsewhere.isActive
    finally:
        elsewhere.stop()


def test_a_query_that_replaces_a_dataframe_has_its_own_columns(spark: SparkSession, bids: DataFrame) -> None:
    loom = Loom(spark)
    loom.query("q", bids.groupBy(window("ts", "10 minutes")).count())
    loom.query("q", "SELECT auction, max(fee) AS top FROM bids [TUMBLE 1 hour] GROUP BY auction", replace=True)
    assert loom.run()["q"].columns == ["window_start", "window_end", "auction", "top"]


def test_a_session_that_shows_plans_in_part_is_told_so(spark: SparkSession, bids: DataFrame) -> None:
    setting = "spark.sql.debug.maxToStringFields"
    before = spark.conf.get(setting)
    spark.conf.set(setting, 2)
    try:
        with pytest.raises(WindloomError, match=r"window of the DataFrame cannot be read[^§]*maxToStringFields', 25"):
            Loom(spark).query("q", bids.groupBy(window("ts", "1 minute")).count())
    finally:
        spark.conf.set(setting, str(before))


def test_an_error_names_the_line_that_wrote_what_is_refused(spark: SparkSession, bids: DataFrame) -> None:
    with pytest.raises(WindloomError, match=r"no window \(at .*test_brought.py:\d+\)"):
        Loom(spark).query("q", bids.groupBy("auction").agg(F.max("price").alias("p")))


def test_a_dataframe_of_another_session_is_refused(spark: SparkSession, path: str) -> None:
    other = spark.newSession().read.parquet(path)
    with pytest.raises(WindloomError, match="belongs to another Spark session"):
        Loom(spark).query("q", other.groupBy(window("ts", "1 minute")).count())


def test_batch_and_streaming_dataframes_are_told_apart(spark: SparkSession, bids: DataFrame, live: DataFrame) -> None:
    loom = Loom(spark)
    loom.query("batch", bids.groupBy(window("ts", "1 minute")).count())
    loom.query("live", live.withWatermark("ts", "1 minute").groupBy(window("ts", "1 minute")).count())
    with pytest.raises(WindloomError, match="stream 'bids_2' is a streaming DataFrame"):
        loom.run()
    with pytest.raises(WindloomError, match="stream 'bids' is a batch DataFrame"):
        loom.start("memory")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows.slice(1), "missing is auction ="),
        (lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), "Spark does not have auction ="),
        (lambda rows: rows.set_column(1, "p", pc.add(rows["p"], 1e-3)), "p = "),
    ],
)
def test_a_wrong_answer_of_a_dataframe_is_found(
    spark: SparkSession, bids: DataFrame, change: Callable[[Any], Any], words: str
) -> None:
    frame = bids.groupBy(window("ts", "20 minutes"), "auction").agg(F.avg("price").alias("p")).select("auction", "p")
    right = frame.toArrow()
    assert verify_frame("q", frame, right)
    assert (verified := verify_frame("q", frame, change(right))).ok is False
    assert words in str(verified)
