"""Both intakes give the rows of Spark's own window(), and fail where Spark fails: on the driver and on executors."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.frames import frame_of
from support.predicates import COLUMNS, Grammar, random_row
from support.trades import settings
from support.truths import interpreted, spark_truth
from windloom import Loom, WindloomError
from windloom.spark.verify.verify import compare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_GROUPINGS: list[tuple[str, ...]] = [(), ("p",), ("s", "p"), ("a % 2",), ("s",)]
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
#: Every way that tuples become answers; buckets are few, as there is little to divide.
WAYS = [("woven", "driver"), ("native", "driver"), ("woven", "executors"), ("native", "executors")]

Answers = dict[tuple[Any, ...], tuple[Any, ...]]


def woven(frame: DataFrame, texts: Mapping[str, str], **options: Any) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("events", frame, **{"time": "ts", **options})
    for name, text in texts.items():
        loom.query(name, text)
    return loom


def check_every_way(loom: Loom, frame: DataFrame, ways: list[tuple[str, str]] = WAYS) -> None:
    expected = spark_truth(loom, {"events": frame})
    for intake, placement in ways:
        results = run(loom, intake, placement)
        for name, query in loom.queries.items():
            outcome = compare(query, expected[name], results.rows(name))
            assert outcome.ok, f"{intake}, {placement}: {query.text}\n{outcome}"


def run(loom: Loom, intake: str, placement: str) -> Any:
    return loom.run(intake=intake, placement=placement, buckets=2 if placement == "executors" else None)


# ---- predicates -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    rng = random.Random(11)
    rows = [random_row(rng.choice) for _ in range(300)]
    timed = [(_FIRST + timedelta(seconds=rng.randrange(60)), *row.values()) for row in rows]
    made = frame_of(spark, timed, _SCHEMA).repartition(3).persist()
    yield made
    made.unpersist()


def predicates(count: int) -> list[str]:
    """Some of them are true of every tuple or of none, or say the same in other words."""
    grammar = Grammar(random.Random(12).choice)
    return [
        "1 = 1",
        "a > 3 AND a < 1",
        "a <> 0 AND b / a > 1",
        *dict.fromkeys(grammar.predicate() for _ in range(count)),
    ]


#: More than a word of the signature has bits.
MANY = predicates(90)


@pytest.fixture(scope="module")
def answers(spark: SparkSession, frame: DataFrame) -> list[Answers]:
    """What Spark answers for each predicate of `MANY`, in its own grouping; all of a grouping in one job."""
    from pyspark.sql import functions as F

    found: list[Answers] = [{} for _ in MANY]
    for position, grouping in enumerate(_GROUPINGS):
        own = list(enumerate(MANY))[position :: len(_GROUPINGS)]
        keys = [F.expr(key).alias(f"k{i}") for i, key in enumerate(grouping)]
        wanted = []
        for i, predicate in own:
            holds = f"({predicate}) IS TRUE"
            wanted += [F.expr(f"count_if({holds}) AS n{i}"), F.expr(f"sum(CASE WHEN {holds} THEN a END) AS t{i}")]
            wanted.append(F.expr(f"max(CASE WHEN {holds} AND p THEN b END) AS m{i}"))
        with interpreted(spark):
            rows = frame.groupBy(F.window("ts", "10 seconds"), *keys).agg(*wanted).collect()
        for row in rows:
            key = (_instant(row["window"].start), *(row[f"k{i}"] for i in range(len(grouping))))
            for i, _ in own:
                if row[f"n{i}"]:
                    found[i][key] = (row[f"n{i}"], row[f"t{i}"], row[f"m{i}"])
    return found


@pytest.mark.parametrize(
    ("intake", "placement", "count"),
    [("woven", "driver", 90), ("native", "driver", 20), ("woven", "executors", 90), ("native", "executors", 15)],
)
def test_predicates_and_groupings_of_all_kinds_equal_spark(
    frame: DataFrame, answers: list[Answers], intake: str, placement: str, count: int
) -> None:
    texts = {}
    for i, predicate in enumerate(MANY[:count]):
        grouping = _GROUPINGS[i % len(_GROUPINGS)]
        columns = "".join(f"{key} AS k{j}, " for j, key in enumerate(grouping))
        text = f"SELECT {columns}count(*) AS n, sum(a) AS t, max(b) FILTER (WHERE p) AS m "
        text += f"FROM events [TUMBLE 10 seconds] WHERE {predicate}"
        texts[f"q{i}"] = text + (f" GROUP BY {', '.join(grouping)}" if grouping else "")
    loom = woven(frame, texts)
    plan = loom.plan(intake=intake)
    assert len(plan.scans) == 1
    assert plan.scans[0].signature.words == (2 if count > 63 else 1)
    results = run(loom, intake, placement)
    # Rows of one query are a job on executors.
    for i, name in list(enumerate(texts))[:: 3 if placement == "executors" else 1]:
        keys = len(_GROUPINGS[i % len(_GROUPINGS)])
        rows = [tuple(row.values()) for row in results.arrow(name).to_pylist()]
        # Spark hands instants over without their zone.
        found = {(row[0].replace(tzinfo=None), *row[2 : 2 + keys]): row[2 + keys :] for row in rows}
        assert found == answers[i], MANY[i]


def _instant(local: datetime) -> datetime:
    return local.astimezone(UTC).replace(tzinfo=None)


# ---- what fails ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def failing(spark: SparkSession) -> DataFrame:
    """`d` is 0 for a third of the tuples, `t` no number for a quarter, `big` too large to be doubled now and then."""
    return spark.sql(
        "SELECT timestamp_seconds(id) AS ts, id AS n, id % 3 AS d, if(id % 4 = 0, 'x', CAST(id AS STRING)) AS t,"
        " if(id % 7 = 0, 9223372036854775807, id) AS big, id % 2 = 0 AS even FROM range(60)"
    ).persist()


#: Behind its own condition none of these fails; beside the others, each would without a guard.
GUARDED = {
    "every": "SELECT even, count(*) AS n, sum(n) AS s FROM events [TUMBLE 10 seconds] GROUP BY even",
    "argument": "SELECT sum(n / d) AS q, max(1 / d) AS m FROM events [RANGE 20 s SLIDE 5 s] WHERE d <> 0",
    "grouping": "SELECT n % d AS r, sum(n) AS q FROM events [TUMBLE 10 seconds] WHERE d <> 0 GROUP BY n % d",
    "both": "SELECT n DIV d AS r, avg(n / d) AS q FROM events [TUMBLE 15 seconds] WHERE d <> 0 GROUP BY n DIV d",
    "condition": "SELECT sum(n) FILTER (WHERE n / d > 9) AS q FROM events [TUMBLE 10 seconds] WHERE d <> 0",
    "filtered": "SELECT even, sum(n / d) FILTER (WHERE d <> 0) AS q FROM events [TUMBLE 10 seconds] GROUP BY even",
    "filtered_behind": "SELECT max(big * 2) FILTER (WHERE big < 99) AS q, count(*) FILTER (WHERE n % d = 1) AS c"
    " FROM events [TUMBLE 10 seconds] WHERE d <> 0",
    "picked": "SELECT min_by(n / d, CAST(t AS INT)) AS q, last(CAST(t AS INT)) AS l FROM events [TUMBLE 10 seconds]"
    " WHERE d <> 0 AND t <> 'x'",
    "cast": "SELECT CAST(t AS INT) % 2 AS r, count(*) AS c FROM events [TUMBLE 20 seconds] WHERE t <> 'x'"
    " GROUP BY CAST(t AS INT) % 2",
    "checked": "SELECT sum(big + big) AS q FROM events [TUMBLE 10 seconds] WHERE big < 99",
}


@pytest.mark.parametrize("names", [list(GUARDED), ["argument", "grouping"], ["condition", "filtered_behind"]])
def test_an_expression_is_not_evaluated_where_no_query_wants_the_tuple(failing: DataFrame, names: list[str]) -> None:
    loom = woven(failing, {name: GUARDED[name] for name in names})
    check_every_way(loom, failing, WAYS if len(names) > 2 else WAYS[:2])


#: Each fails for some tuple that it wants, beside queries that are right.
FAILING = {
    "DIVIDE_BY_ZERO": "SELECT sum(n / d) AS q FROM events [TUMBLE 10 seconds] WHERE n < 50",
    "CAST_INVALID_INPUT": "SELECT even, max(n) FILTER (WHERE CAST(t AS INT) > 3) AS q FROM events [TUMBLE 10 seconds]"
    " WHERE even GROUP BY even",
    "REMAINDER_BY_ZERO": "SELECT n % d AS r, count(*) AS c FROM events [TUMBLE 10 seconds] WHERE n > 5 GROUP BY n % d",
    "ARITHMETIC_OVERFLOW": "SELECT max(big * 2) FILTER (WHERE d <> 0) AS q FROM events [TUMBLE 10 seconds]",
}


@pytest.mark.parametrize("condition", FAILING)
def test_an_expression_that_fails_for_a_tuple_that_is_wanted_is_an_error(failing: DataFrame, condition: str) -> None:
    loom = woven(failing, {"failing": FAILING[condition], "argument": GUARDED["argument"], "cast": GUARDED["cast"]})
    for intake, placement in WAYS:
        with pytest.raises(WindloomError, match=condition) as raised:
            run(loom, intake, placement)
        assert "Traceback" not in str(raised.value)
        assert "\tat " not in str(raised.value)


def test_sums_that_overflow_name_query_window_and_group_in_every_way(spark: SparkSession) -> None:
    nines = "9" * 38
    frame = spark.sql(
        "SELECT timestamp_seconds(col1) AS ts, col2 AS k, 9223372036854775807L AS n,"
        f" CAST({nines}BD AS decimal(38,0)) AS d FROM VALUES (1, 'a'), (2, 'b'), (23, 'b'), (24, 'b'), (25, NULL)"
    )
    for column in ("n", "d"):
        loom = woven(frame, {"total": f"SELECT k, sum({column}) AS s FROM events [TUMBLE 10 seconds] GROUP BY k"})
        for intake, placement in WAYS:
            with pytest.raises(WindloomError, match="query 'total'") as raised:
                run(loom, intake, placement).arrow("total")
            assert "1970-01-01T00:00:20" in str(raised.value), (column, intake, placement)
            assert "b" in raised.value.detail
    fits = woven(frame, {"fits": "SELECT k, sum(n) AS s, sum(d) AS t FROM events [TUMBLE 1 second] GROUP BY k"})
    check_every_way(fits, frame, WAYS[:2])


# ---- values ----------------------------------------------------------------------------------------------------------

_KEYED = """
    SELECT timestamp_seconds(id) AS ts, id AS n,
      element_at(array(0.0D, -0.0D, double('NaN'), -double('NaN'), double('inf'), NULL), int(id % 6) + 1) AS f8,
      element_at(array(0.0F, -0.0F, float('NaN'), 1.5F, NULL), int(id % 5) + 1) AS f4,
      element_at(array(1.20BD, -1.20BD, 0BD, NULL), int(id % 4) + 1) AS d9,
      element_at(array(12345678901234567890123456789.123BD, -0.001BD, NULL), int(id % 3) + 1) AS d38,
      element_at(array(X'00', X'', X'0001', X'FF', NULL), int(id % 5) + 1) AS bytes,
      element_at(array('', 'a', 'ä', 'a ', NULL), int(id % 5) + 1) AS text,
      element_at(array(true, false, NULL), int(id % 3) + 1) AS flag,
      element_at(array(tinyint(-128), tinyint(127), NULL), int(id % 3) + 1) AS i1,
      element_at(array(smallint(-7), NULL), int(id % 2) + 1) AS i2,
      element_at(array(2147483647, -1, NULL), int(id % 3) + 1) AS i4,
      element_at(array(9223372036854775807, -9223372036854775808, NULL), int(id % 3) + 1) AS i8,
      element_at(array(DATE '0001-01-01', DATE '1969-12-31', NULL), int(id % 3) + 1) AS day,
      element_at(array(TIMESTAMP '1969-12-31 23:59:59.999999Z', TIMESTAMP '2024-03-31 01:30:00Z', NULL),
                 int(id % 3) + 1) AS instant,
      element_at(array(TIMESTAMP_NTZ '2024-03-31 02:30:00', NULL), int(id % 2) + 1) AS clock,
      CAST(NULL AS DOUBLE) AS nothing
    FROM range(90)
"""
KEYS = ["f8", "f4", "d9", "d38", "bytes", "text", "flag", "i1", "i2", "i4", "i8", "day", "instant", "clock", "nothing"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_groups_and_values_of_every_type_equal_spark(spark: SparkSession, zone: str) -> None:
    """Extremes of types, what counts as equal, and groups of NULL alone, in the session's zone, whatever it is."""
    with settings(spark, spark__sql__session__timeZone=zone):
        frame = spark.sql(_KEYED).repartition(3).persist()
        window = "FROM events [RANGE 40 seconds SLIDE 20 seconds]"
        texts = {
            f"by_{key}": f"SELECT {key}, count(*) AS n, min({other}) AS l, max({other}) AS h, count({other}) AS c"
            f" {window} GROUP BY {key}"
            for key, other in zip(KEYS, KEYS[4:] + KEYS[:4], strict=True)
        }
        texts |= {
            "pairs": f"SELECT f8, flag, last(text) AS t, max_by(bytes, f4) AS b {window} WHERE n > 7 GROUP BY f8, flag",
            "computed": f"SELECT date_trunc('HOUR', instant) AS h, CAST(day AS STRING) AS d, count(*) AS n {window}"
            " GROUP BY date_trunc('HOUR', instant), CAST(day AS STRING)",
            "nulls": f"SELECT sum(nothing) AS s, avg(nothing) AS a, max(nothing) AS m, stddev(nothing) AS d {window}",
        }
        check_every_way(woven(frame, texts), frame, [WAYS[0], WAYS[3]] if zone == "UTC" else WAYS[1:3])
        frame.unpersist()


def test_values_of_types_that_only_spark_knows_are_counted(spark: SparkSession) -> None:
    some = "if(id % 3 = 0, NULL, {})"
    made = {
        "arrays": "array(id)",
        "structs": "named_struct('a', id)",
        "maps": "map(id, id)",
        "documents": "parse_json('1')",
        "durations": "make_dt_interval(0, 0, 0, id)",
        "intervals": "make_interval(0, 0, 0, int(id))",
        "words": "CAST('a' AS STRING COLLATE UTF8_LCASE)",
    }
    columns = ", ".join(f"{some.format(sql)} AS {name}" for name, sql in made.items())
    frame = spark.sql(f"SELECT timestamp_seconds(id) AS ts, {columns} FROM range(30)")
    counts = ", ".join(
        f"count({name}) AS {name}, count({name}) FILTER (WHERE second(ts) > 9) AS f_{name}" for name in made
    )
    loom = woven(frame, {"q": f"SELECT {counts} FROM events [TUMBLE 10 seconds]"})
    for intake, placement in WAYS[:3]:
        rows = [list(row.values())[2:] for row in run(loom, intake, placement).arrow("q").to_pylist()]
        assert sorted(rows) == sorted([[6, 0] * len(made), [7, 7] * len(made), [7, 7] * len(made)])


def test_an_empty_stream_answers_nothing_in_every_way(spark: SparkSession) -> None:
    frame = spark.sql(_KEYED).where("n < 0")
    texts = {"plain": "SELECT count(*) AS n FROM events [TUMBLE 5 s]"}
    texts["keyed"] = "SELECT text, sum(f8) AS s FROM events [LANDMARK SLIDE 5 s] WHERE flag GROUP BY text"
    loom = woven(frame, texts)
    for intake, placement in WAYS:
        results = run(loom, intake, placement)
        assert [results.arrow(name).num_rows for name in texts] == [0, 0]
        assert results.stats.events == 0


@pytest.mark.parametrize(("intake", "placement"), WAYS)
def test_tuples_without_a_time_are_refused_with_their_number(spark: SparkSession, intake: str, placement: str) -> None:
    """Whatever queries want: a tuple that is nowhere in time is counted once for its stream."""
    frame = spark.sql("SELECT if(id % 10 < 3, NULL, timestamp_seconds(id)) AS ts, id AS n FROM range(1000)")
    loom = woven(
        frame.repartition(4),
        {
            "all": "SELECT count(*) AS c FROM events [TUMBLE 10 seconds]",
            "some": "SELECT n % 2 AS k, sum(n) AS s FROM events [RANGE 9 s SLIDE 4 s] WHERE n > 500 GROUP BY n % 2",
            "none": "SELECT n % 3 AS k, sum(n) AS s FROM events [RANGE 9 s SLIDE 4 s] WHERE n < -1 GROUP BY n % 3",
        },
    )
    with pytest.raises(WindloomError, match="stream 'events' has tuples without a usable time") as raised:
        loom.run(intake=intake, placement=placement, untimed="stop")
    assert "in 300 of its rows" in raised.value.detail


#: What only the woven intake makes, and by what it is told.
WOVEN_ONLY = {
    "count(DISTINCT n)": "n",
    "median(n)": "n",
    "top(2, n)": "n",
    "approx_count_distinct(n)": "n",
}


def test_what_spark_cannot_aggregate_is_refused_by_name_and_woven_otherwise(failing: DataFrame) -> None:
    for asked in WOVEN_ONLY:
        loom = woven(failing, {"q": f"SELECT {asked} AS a FROM events [TUMBLE 10 seconds]"})
        with pytest.raises(WindloomError, match="stream 'events' cannot be taken in natively") as raised:
            loom.run(intake="native")
        assert "has no partials that Spark can aggregate" in raised.value.detail
        assert loom.verify("q", loom.run())
    loom = woven(failing, {"q": "SELECT sum(n) AS a FROM events [ROWS 10 SLIDE 5]"})
    with pytest.raises(WindloomError, match="query 'q' has windows of rows"):
        loom.run(intake="native")
