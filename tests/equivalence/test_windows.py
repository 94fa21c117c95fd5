"""Windows that are no stretches of time, on Spark from end to end: batch equals Spark itself, streams equal batch."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.files import put
from support.many_groups import random_trades, rows, start
from support.streams import SCHEMA, random_rows
from support.trades import trades
from support.truths import spark_truth
from windloom import Loom
from windloom.errors import WindloomError, WindloomWarning
from windloom.spark.verify.verify import compare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Queries over the random stream `s`; those of one predicate and grouping share their slices.
BATCH = {
    "by_minute": "SELECT k, count(*) AS c, sum(x) AS s, max(t) AS t FROM s [LANDMARK SLIDE 1 minute] GROUP BY k",
    "by_seven": "SELECT k, avg(d) AS a, var_pop(i) AS v FROM s [UNTIL NOW SLIDE 7 seconds OFFSET 2 seconds] GROUP BY k",
    "beside": "SELECT k, count(*) AS c FROM s [RANGE 1 minute SLIDE 20 seconds] GROUP BY k",
    "of_minutes": "SELECT k, sum(x) AS s, min(t) AS t FROM s [CUMULATE 1 minute SLIDE 5 s OFFSET 20 s] GROUP BY k",
    "of_hours": "SELECT avg(d) AS a, max(n) AS n FROM s [CUMULATE 1 hour SLIDE 30 s] WHERE b HAVING count(*) > 2",
    "passing": "SELECT sum(n) AS n FROM s [LANDMARK SLIDE 45 seconds] WHERE x > 0 HAVING count(*) > 3",
    "rows": "SELECT k, g, count(*) AS c, sum(x) AS s, min(t) AS t FROM s [ROWS 40 SLIDE 10] GROUP BY k, g",
    "some_rows": "SELECT g, k, avg(n) AS a FROM s [ROWS 25 SLIDE 15 OFFSET 4] GROUP BY g, k HAVING count(*) > 1",
    "far_rows": "SELECT sum(i) AS i, count(*) AS c FROM s [ROWS 3 SLIDE 7] WHERE b",
    "own_rows": "SELECT k, max(x) AS x, count(*) AS c FROM s [PARTITION BY k ROWS 5 SLIDE 2] GROUP BY k",
    "own_parts": "SELECT k, g, stddev(i) AS d FROM s [PARTITION BY k ROWS 9 SLIDE 4] WHERE x < 50 GROUP BY k, g",
    "sessions": "SELECT k, count(*) AS c, sum(x) AS s, max(t) AS t FROM s [SESSION GAP 7 seconds] GROUP BY k",
    "pauses": "SELECT k, g, avg(d) AS a, var_pop(i) AS v, last(n) AS n FROM s [SESSION GAP 20 s] GROUP BY k, g",
    "pasted": "SELECT g, min(x) AS x, stddev(i) AS d FROM s WHERE b GROUP BY session_window(ts, '4 seconds'), g",
    "one_group": "SELECT sum(n) FILTER (WHERE b) AS n, min_by(k, x) AS m FROM s [SESSION GAP 2 s] HAVING count(*) > 1",
    "none": "SELECT count(*) AS c FROM s [LANDMARK SLIDE 1 hour] WHERE i > 10000",
}
#: Cells that hold lists, which most techniques do not answer.
LISTED = {
    "distinct": "SELECT k, count(DISTINCT i) AS u, median(x) AS m FROM s [SESSION GAP 7 seconds] GROUP BY k",
    "ranks": "SELECT g, top(2, k) AS t, quantile(i, 0.3) AS q FROM s [SESSION GAP 3 seconds] WHERE x > 0 GROUP BY g",
    "growing": "SELECT k, count(DISTINCT i) AS u, median(x) AS m FROM s [CUMULATE 1 minute SLIDE 5 s] GROUP BY k",
    "nearly": "SELECT approx_count_distinct(i) AS n, count(DISTINCT k) FILTER (WHERE b) AS k FROM s [SESSION GAP 2 s]",
}
#: Queries over the trades of `support.many_groups`.
STREAMED = {
    "total": "SELECT symbol, sum(volume) AS v, max(price) AS p FROM trades [LANDMARK SLIDE 20 seconds] GROUP BY symbol",
    "often": "SELECT symbol, count(*) AS n FROM trades [LANDMARK SLIDE 15 seconds] GROUP BY symbol",
    "of_minutes": "SELECT symbol, sum(volume) AS v, count(DISTINCT price) AS p FROM trades"
    " [CUMULATE 1 minute SLIDE 10 seconds OFFSET 5 seconds] GROUP BY symbol",
    "beside": "SELECT symbol, count(*) AS n FROM trades [RANGE 60 seconds SLIDE 30 seconds] GROUP BY symbol",
    "visits": "SELECT symbol, count(*) AS n, max(price) AS p FROM trades [SESSION GAP 5 seconds] GROUP BY symbol",
    "lulls": "SELECT count(*) AS n, count(DISTINCT symbol) AS s FROM trades [SESSION GAP 2 seconds] WHERE volume > 3",
    "big": "SELECT count(*) AS n FROM trades [UNTIL NOW SLIDE 40 seconds] WHERE volume > 5",
}
#: Windows of rows: in streams on the driver only.
COUNTED = {
    "rows": "SELECT symbol, count(*) AS n, sum(volume) AS v FROM trades [ROWS 20 SLIDE 6] GROUP BY symbol",
    "more_rows": "SELECT symbol, max(price) AS p FROM trades [ROWS 30 SLIDE 15 OFFSET 2] GROUP BY symbol",
    "big_rows": "SELECT sum(price) AS p FROM trades [ROWS 7 SLIDE 10] WHERE volume > 2",
    "own_rows": "SELECT symbol, avg(volume) AS v FROM trades [PARTITION BY symbol ROWS 4 SLIDE 2] GROUP BY symbol",
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(random_rows(23, 150), SCHEMA).repartition(2).persist()


@pytest.fixture(scope="module")
def loom(spark: SparkSession, frame: DataFrame) -> Loom:
    made = Loom(spark)
    made.stream("s", frame, time="ts")
    for name, text in BATCH.items():
        made.query(name, text)
    return made


@pytest.fixture(scope="module")
def expected(loom: Loom, frame: DataFrame) -> dict[str, Any]:
    return spark_truth(loom, {"s": frame})


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "shared", "slicing": "pairs"},
        {"strategy": "no_share", "slicing": "cutty"},
        {"strategy": "weave_share", "slicing": "panes", "technique": "two_stacks"},
        {"placement": "executors", "buckets": 3},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_a_batch_equals_spark(loom: Loom, expected: dict[str, Any], options: dict[str, Any]) -> None:
    options = {"placement": "driver", **options}
    results = loom.run(options.pop("strategy", "auto"), **options)
    for name, query in loom.queries.items():
        outcome = compare(query, expected[name], results.rows(name))
        assert outcome.ok, f"{query.text}\n{outcome}"
    assert expected["none"].num_rows == 0 < expected["passing"].num_rows


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_sessions_and_periods_of_lists_equal_spark(spark: SparkSession, frame: DataFrame, placement: str) -> None:
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    for name, text in LISTED.items():
        loom.query(name, text)
    results, expected = loom.run(placement=placement), spark_truth(loom, {"s": frame})
    for name, query in loom.queries.items():
        outcome = compare(query, expected[name], results.rows(name))
        assert outcome.ok, f"{query.text}\n{outcome}"
        assert results.arrow(name).num_rows > 3


def test_a_stream_in_two_lives_gives_the_rows_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    made = sorted(random_trades(11, 90), key=lambda row: row[0])
    made[41], made[42] = made[42], made[41]  # within the delay
    source, queries = tmp_path / "in", {**STREAMED, **COUNTED}
    for number, (first, last) in enumerate([(0, 30), (30, 42)]):
        put(source, f"{number:03d}", made[first:last])
    handle = start(spark, source, tmp_path, queries)
    assert handle.await_termination(300)
    put(source, "002", made[42:])
    handle = start(spark, source, tmp_path, queries, finish=True)
    assert handle.await_termination(300)
    assert sum(progress.late_partly + progress.late_dropped for progress in handle.recent_progress) == 0
    batch = Loom(spark)
    batch.stream("trades", trades(spark, made), time="ts")
    for name, text in queries.items():
        batch.query(name, text)
    results = batch.run(placement="driver")
    for name in queries:
        assert rows(handle.arrow(name)) == rows(results.rows(name)), name
        assert batch.verify(name)


def test_late_tuples_have_no_position_and_untimed_ones_are_refused_or_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = sorted(random_trades(12, 40), key=lambda row: row[0])
    late = [(made[0][0], "A", 1.0, 9), (made[1][0], "B", 2.0, 1)]
    untimed = (None, "A", 3.0, 9)
    put(tmp_path / "in", "000", made[:30])
    put(tmp_path / "in", "001", [*late, untimed, *made[30:]])
    refused = start(spark, tmp_path / "in", tmp_path / "a", COUNTED, finish=True, untimed="stop")
    with pytest.raises(WindloomError, match="stream 'trades' has tuples without a usable time"):
        refused.await_termination(300)
    with pytest.warns(WindloomWarning, match="'trades': 1 row is in no window"):  # noqa: PT031 until its first round
        handle = start(spark, tmp_path / "in", tmp_path / "b", COUNTED, finish=True)
        assert handle.await_termination(300)
    last = handle.recent_progress[1]
    # Both tuples find no window of theirs open, whichever of the queries they are of.
    assert (last.untimed, last.late_partly, last.late_dropped) == (1, 0, 2)
    batch = Loom(spark)
    batch.stream("trades", trades(spark, made), time="ts")
    for name, text in COUNTED.items():
        batch.query(name, text)
    results = batch.run(placement="driver")
    for name in COUNTED:
        assert rows(handle.arrow(name)) == rows(results.rows(name)), name


def test_windows_of_rows_end_at_the_last_row_of_their_key_as_in_cql(spark: SparkSession, tmp_path: Path) -> None:
    made = [(ts, symbol if symbol in (None, "", "A") else "B", *rest) for ts, symbol, *rest in random_trades(15, 12)]
    made = sorted([*made, made[0], made[3]], key=lambda row: [(value is not None, value) for value in row])
    texts = {
        f"{'of_keys' if keys else 'all'}_{count}_{slide}_{offset}": (
            f"SELECT symbol, count(*) AS n, sum(volume) AS v FROM trades"
            f" [{'PARTITION BY symbol ' if keys else ''}ROWS {count} SLIDE {slide} OFFSET {offset}] GROUP BY symbol"
        )
        for keys in (True, False)
        for count, slide, offset in ((1000, 1, 0), (3, 2, 0), (2, 3, 1), (1, 1, 0), (4, 4, 2))
    }

    def expected(keys: bool, count: int, slide: int, offset: int) -> list[tuple[Any, ...]]:
        """Every window that ends at a row: `count` rows of the key up to there, fewer at the beginning."""
        answers = []
        for key in {row[1] for row in made} if keys else [None]:
            own = [row for row in made if not keys or row[1] == key]
            for end in range(1, len(own) + 1):
                if (end - count - offset) % slide == 0:
                    held = own[max(0, end - count) : end]
                    for symbol in {row[1] for row in held}:
                        volumes = [row[3] for row in held if row[1] == symbol]
                        known = [volume for volume in volumes if volume is not None]
                        answers.append((end - count, end, symbol, len(volumes), sum(known) if known else None))
        return answers

    batch = Loom(spark)
    batch.stream("trades", trades(spark, made), time="ts")
    for name, text in texts.items():
        batch.query(name, text)
    results, on_executors = batch.run(), batch.run(placement="executors", buckets=3)
    for number in range(3):
        put(
            tmp_path / "in",
            f"{number:03d}",
            random.Random(number).sample(made[5 * number : 5 * number + 5], 4 + (number < 2)),
        )
    handle = start(spark, tmp_path / "in", tmp_path, texts, finish=True)
    assert handle.await_termination(300)
    for name in texts:
        kind, *numbers = name.rsplit("_", 3)
        wanted = sorted(expected(kind == "of_keys", *map(int, numbers)), key=repr)
        for answers in (results.rows(name), on_executors.rows(name), handle.arrow(name)):
            assert sorted((tuple(row.values()) for row in answers.to_pylist()), key=repr) == wanted, name


def test_a_query_of_rows_that_comes_later_counts_on_or_from_then_on(spark: SparkSession, tmp_path: Path) -> None:
    made = sorted(random_trades(13, 60), key=lambda row: row[0])
    put(tmp_path / "in", "000", made[:30])
    queries = {"first": COUNTED["rows"]}
    assert start(spark, tmp_path / "in", tmp_path, queries).await_termination(300)
    handle = start(spark, tmp_path / "in", tmp_path, queries, trigger={"processingTime": "1 hour"})
    counted = handle.add("counted", "SELECT count(*) AS n FROM trades [ROWS 10 SLIDE 5]")
    own = handle.add("own", COUNTED["own_rows"])
    assert counted.complete_from is not None
    assert counted.complete_from.startswith("row ")
    assert own.complete_from is None
    with pytest.raises(WindloomError, match="whose positions are not kept for questions"):
        handle.ask("SELECT count(*) AS n FROM trades [ROWS 10 SLIDE 5]")
    handle.stop()
    put(tmp_path / "in", "001", made[30:])
    handle = start(spark, tmp_path / "in", tmp_path, queries, finish=True)
    assert handle.await_termination(300)
    since = int(counted.complete_from.removeprefix("row "))
    assert since % 5 == 0
    found = [(row[0], row[2]) for row in rows(handle.arrow("counted"))]
    assert sorted(found) == [(start, 10) for start in range(since, 51, 5)]
    assert min(row[0] for row in rows(handle.arrow("own"))) < 0  # from position 0 on
