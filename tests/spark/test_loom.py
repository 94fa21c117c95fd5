"""The surface users meet: what the README and the docs promise of a Loom, on one small stream."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from support.trades import ROWS, WINDOW, catalog, settings, trades
from windloom import Loom, WindloomError
from windloom.engine import Results
from windloom.errors import WindloomWarning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AVERAGE = f"SELECT symbol, avg(price) AS p {WINDOW} GROUP BY symbol"


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    cached = trades(spark).persist()
    cached.count()
    yield cached
    cached.unpersist()


def woven(frame: DataFrame, *, stream: dict[str, Any] | None = None, **queries: str) -> Loom:
    """A loom over the trades; `…` stands for the window."""
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, **{"time": "ts", **(stream or {})})
    for name, text in queries.items():
        loom.query(name, text.replace("…", WINDOW))
    return loom


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def assert_equal_to_spark(loom: Loom, results: Results) -> None:
    for name in loom.queries:
        found = loom.verify(name, results)
        assert found.ok, f"{loom.queries[name].text}\n{found}"


def assert_same_on_executors(loom: Loom, results: Results, names: Iterable[str] = (), buckets: int = 2) -> None:
    others = loom.run(placement="executors", buckets=buckets)
    # Executors are fed by scans of one grouping each, which have other partials.
    alike = {"placement": "", "seconds": {}, "partials": 0}
    assert replace(others.stats, **alike) == replace(results.stats, **alike)
    for name in names or loom.queries:
        here, there = results.arrow(name), others.arrow(name)
        assert there.schema.equals(here.schema)
        assert rows(there) == rows(here)


def test_the_whole_surface_in_one_go(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    loom = Loom(spark)
    loom.stream("trades", frame, time="ts", delay="10 seconds")
    loom.query("avg", AVERAGE)
    (tmp_path / "more.cql").write_text(f"CREATE QUERY high AS SELECT max(price) AS high {WINDOW};")
    loom.load(tmp_path / "more.cql")

    assert loom.explain().startswith("Plan: 2 queries, 1 stream")
    assert json.loads(loom.explain(format="json"))["counts"]["queries"] == 2
    assert ElementTree.fromstring(loom.explain(format="svg")).tag.endswith("svg")

    said: list[str] = []
    results = loom.run(strategy="weave_share", progress=said.append)
    assert "taking in tuples" in said
    assert results["avg"].dtypes == [
        ("window_start", "timestamp"),
        ("window_end", "timestamp"),
        ("symbol", "string"),
        ("p", "double"),
    ]
    assert results["high"].columns == ["window_start", "window_end", "high"]
    first = results["avg"].orderBy("window_start", "symbol").first()
    assert first is not None
    assert (first["window_end"] - first["window_start"]).total_seconds() == 30
    assert (first["symbol"], first["p"]) == ("A", 10.0)
    assert rows(results.arrow("avg")) == rows(results["avg"].toArrow())
    instant = pa.timestamp("us", tz="UTC")
    assert results.arrow("avg").schema.types == [instant, instant, pa.string(), pa.float64()]

    found = loom.verify("avg")
    assert found
    assert (found.rows, found.missing, found.extra, found.different) == (results["avg"].count(), 0, 0, 0)
    assert str(found).startswith(f"query 'avg': {found.rows} rows equal Spark's own window()")


def test_the_figures_of_a_run(frame: DataFrame) -> None:
    loom = woven(frame, n="SELECT count(*) AS n …", few="SELECT count(*) AS n … WHERE volume <= 4 GROUP BY symbol")
    stats = loom.run().stats
    assert stats.events == len(ROWS), "each tuple once, however many sets read it"
    assert stats.results == sum(loom.run().arrow(name).num_rows for name in loom.queries)
    assert 0 < stats.partials <= 2 * len(ROWS)
    assert (stats.queries, stats.trees, stats.strategy, stats.placement) == (2, 2, "auto", "driver")
    assert (stats.late_partly, stats.late_dropped) == (0, 0)
    assert set(stats.seconds) == {"plan", "partials", "merge", "answers"}
    assert stats.total_seconds == sum(stats.seconds.values())
    assert json.loads(json.dumps(stats.as_dict()))["events"] == len(ROWS)


def test_a_run_shows_where_its_time_went(frame: DataFrame) -> None:
    loom = woven(frame, n="SELECT count(*) AS n …", few="SELECT count(*) AS n … WHERE volume <= 4 GROUP BY symbol")
    results = loom.run()
    found = json.loads(results.analyze("json"))
    assert found["seconds"] == pytest.approx(sum(each["seconds"] for each in found["stages"]))
    assert {"plan", "partials", "step", "answers"} <= {each["stage"] for each in found["stages"]}
    assert sum(each["cells"] for each in found["answers"]) == results.stats.partials
    assert {name for each in found["answers"] for name in each["queries"]} == {"n", "few"}
    assert all(each["seconds"] > 0 for each in found["answers"])
    assert results.analyze().startswith("Run of 2 queries: ")
    with pytest.raises(WindloomError, match="unknown format 'svg'"):
        results.analyze("svg")


def test_results_are_a_mapping(frame: DataFrame) -> None:
    loom = woven(frame, b="SELECT count(*) AS n …", a="SELECT max(price) AS m …")
    results = loom.run()
    assert set(results) == {"a", "b"}
    assert len(results) == 2
    assert "a" in results
    assert "c" not in results
    assert results.get("c") is None
    assert {name: result.columns[-1] for name, result in results.items()} == {"a": "m", "b": "n"}
    with pytest.raises(KeyError) as caught:
        results["aa"]
    assert isinstance(caught.value, WindloomError)
    assert str(caught.value).startswith("unknown query 'aa'")
    assert repr(results).startswith("<Results of 2 queries: ")
    assert "events" in results._repr_html_()


#: By sentence: a query in a form that pastes in from elsewhere, or that is only just legal.
FORMS = {
    "having": "SELECT symbol, avg(price) AS p … GROUP BY symbol HAVING count(*) > 1 AND min(volume) < 20",
    "an expression over aggregates": "SELECT symbol, sum(price * volume) / sum(volume) AS vwap … GROUP BY symbol",
    "an alias used by a later item": "SELECT count(*) AS n, n * 2 AS twice …",
    "grouping by an expression": "SELECT lower(symbol), count(*) AS n … GROUP BY lower(symbol)",
    "grouping by an alias": "SELECT lower(symbol) AS s, max(price) AS m … GROUP BY s",
    "grouping by a position": "SELECT lower(symbol) AS s, min(volume) AS m … GROUP BY 1",
    "grouping by what is not selected": "SELECT max(price) AS m … GROUP BY symbol",
    "grouping by a column called like an aggregate": "SELECT symbol AS price, max(price) AS symbol … GROUP BY symbol",
    "grouping by a constant": "SELECT 'all' AS who, count(*) AS n … GROUP BY 'all'",
    "grouping by nothing": "SELECT NULL AS nobody, count(*) AS n … GROUP BY NULL",
    "only groups": "SELECT symbol … GROUP BY symbol",
    "only a constant": "SELECT 1 AS one …",
    "columns without aliases": "SELECT symbol, avg(price), count(*), sum(price) / 2 … GROUP BY symbol",
    "values of every kind": "SELECT min(symbol) AS a, max(ts) AS b, max(date(ts)) AS c, min(price > 20) AS d …",
    "nested values over aggregates": "SELECT array(min(price), max(price)) AS low_high, map('n', count(*)) AS m …",
    "a predicate that matches nothing": "SELECT symbol, count(*) AS n … WHERE volume < 0 GROUP BY symbol",
    "the window of Spark": (
        "SELECT window, symbol, sum(volume) AS v FROM trades GROUP BY window(ts, '30 seconds', '10 s', '3 s'), symbol"
    ),
    "a tumbling window of Spark": "SELECT window.start, sum(volume) AS v FROM trades GROUP BY window(ts, '1 minute')",
    "a slide longer than the range": "SELECT count(*) AS n FROM trades [RANGE 5 seconds SLIDE 20 seconds OFFSET -3 s]",
    "a window longer than the data": "SELECT count(*) AS n FROM trades [RANGE 400 days SLIDE 90 days]",
}


def test_queries_of_every_form_equal_spark_on_both_placements(frame: DataFrame) -> None:
    loom = woven(frame, **FORMS)
    results = loom.run()
    assert_equal_to_spark(loom, results)
    assert results.arrow("a predicate that matches nothing").num_rows == 0
    assert results["columns without aliases"].columns[2:] == ["symbol", "avg(price)", "count(1)", "sum(price) / 2"]
    with pytest.warns(WindloomWarning, match="'only a constant'.* answered in process"):
        assert_same_on_executors(
            loom, results, ["having", "grouping by nothing", "values of every kind", "only groups"]
        )


ODD = ["my key", "back`tick", "a.b", "Größe", "UPPER", "日本", "semi;colon", "select", "interval", "case", "true"]
ODD += ["slice", "part", "shape", "tuples", "query", "window", "window_start"]
ODD += ["c0", "g0", "x0", "__a0", "__g0", "__n", "__w"]


def test_columns_may_have_any_name(frame: DataFrame) -> None:
    quoted = {name: "`" + name.replace("`", "``") + "`" for name in ODD}
    odd = frame.selectExpr("ts", *(f"volume % {i + 2} AS {text}" for i, text in enumerate(quoted.values())))
    reserved = {"query": "`query` AS q", "window_start": "`window_start` AS w"}
    keys = [reserved.get(name, text) for name, text in quoted.items()]
    sums = [f"sum({text}) AS {reserved.get(name, text).split(' AS ')[-1]}" for name, text in quoted.items()]
    loom = woven(
        odd,
        keys=f"SELECT {', '.join(keys)}, count(*) AS n … GROUP BY {', '.join(quoted.values())}",
        sums=f"SELECT {', '.join(sums)} …",
        over="SELECT `my key` AS `__n`, sum(`a.b`) + max(`__a0`) AS `__s0`, min(`case`) + 1 AS `case` …"
        " GROUP BY `my key` HAVING sum(`__g0`) >= 0",
        where="SELECT max(`select`) AS `select` … WHERE `interval` < `true` + 1 AND `window` >= 0",
    )
    results = loom.run()
    assert_equal_to_spark(loom, results)
    assert results["sums"].columns[2:] == ["q" if n == "query" else "w" if n == "window_start" else n for n in ODD]
    others = woven(
        odd, keys="SELECT shape, part, `a.b`, sum(slice) AS bigint__0, max(`query`) AS g0 … GROUP BY 1, 2, 3"
    )
    assert_equal_to_spark(others, others.run(placement="executors"))


@pytest.mark.parametrize("name", ["window_start", "WINDOW_END", "query"])
def test_names_of_our_own_columns_are_refused_as_aliases(frame: DataFrame, name: str) -> None:
    with pytest.raises(WindloomError, match=f"the column name '{name}' is reserved"):
        woven(frame, q=f"SELECT count(*) AS {name} …")


TIMES = {
    "timestamp": ("ts", {}),
    "timestamp_ntz": ("CAST(ts AS TIMESTAMP_NTZ)", {}),
    "string": ("CAST(ts AS STRING)", {}),
    "date": ("date_add(DATE '2026-01-05', CAST(volume AS INT))", {}),
    "microseconds": ("unix_micros(ts)", {"unit": "us"}),
    "milliseconds": ("unix_millis(ts)", {"unit": "ms"}),
    "seconds in 32 bits": ("CAST(unix_seconds(ts) AS INT)", {"unit": "s", "delay": datetime.timedelta(minutes=1)}),
}


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_event_time_may_be_of_many_types(spark: SparkSession, frame: DataFrame, zone: str) -> None:
    with settings(spark, spark__sql__session__timeZone=zone):
        loom = Loom(spark)
        for name, (sql, given) in TIMES.items():
            loom.stream(name, frame.selectExpr(f"{sql} AS at", "symbol", "price"), time="at", **given)
            length, slide = ("3 days", "1 day") if name == "date" else ("30 seconds", "10 seconds")
            window = f"FROM `{name}` [RANGE {length} SLIDE {slide}]"
            loom.query(name, f"SELECT symbol, avg(price) AS p {window} GROUP BY symbol")
        results = loom.run()
        assert_equal_to_spark(loom, results)
        expected = rows(results.arrow("timestamp"))
        for name in ("string", "microseconds", "milliseconds", "seconds in 32 bits"):
            assert rows(results.arrow(name)) == expected
        assert results["timestamp_ntz"].dtypes[0] == ("window_start", "timestamp_ntz")
        assert loom.streams["seconds in 32 bits"].delay_ticks == 60_000_000


def test_the_zone_of_the_session_does_not_move_windows(spark: SparkSession, frame: DataFrame) -> None:
    texts = {
        "plain": "SELECT symbol, max(ts) AS last, count(*) AS n … GROUP BY symbol",
        "over": "SELECT ts, count(*) + 1 AS n … GROUP BY ts HAVING count(*) > 0",
    }
    loom = woven(frame, **texts)
    expected = loom.run()
    with settings(spark, spark__sql__session__timeZone="Asia/Kathmandu"):
        for placement in ("driver", "executors"):
            results = loom.run(placement=placement)
            for name in texts:
                assert results.arrow(name).schema.equals(expected.arrow(name).schema)
                assert rows(results.arrow(name)) == rows(expected.arrow(name))
                assert loom.verify(name, results).ok


def test_without_ansi_expressions_mean_what_spark_means_then(spark: SparkSession, frame: DataFrame) -> None:
    with settings(spark, spark__sql__ansi__enabled="false"):
        loom = woven(
            frame,
            inside="SELECT sum(price / (volume - 3)) AS s, count(CAST(symbol AS INT)) AS n …",
            over="SELECT sum(volume) / (count(*) - count(*)) AS nothing …",
        )
        results = loom.run()
        assert_equal_to_spark(loom, results)
        assert set(results.arrow("over")["nothing"].to_pylist()) == {None}
        loom = woven(frame.selectExpr("ts", "9223372036854775807 AS huge"), q="SELECT sum(huge) AS s …")
        with pytest.raises(WindloomError, match="does not fit its type"):
            loom.run()


def test_names_that_differ_in_case_only_are_told_apart_where_the_session_does(
    spark: SparkSession, frame: DataFrame
) -> None:
    with settings(spark, spark__sql__caseSensitive="true"):
        loom = woven(frame.selectExpr("*", "price AS VOLUME"), q="SELECT sum(volume) AS v, sum(VOLUME) AS p …")
        assert_equal_to_spark(loom, loom.run())


def test_a_run_leaves_the_settings_of_the_session_alone(spark: SparkSession, frame: DataFrame) -> None:
    before = spark.conf.getAll
    loom = woven(frame, q="SELECT symbol, avg(price) + 1 AS p … GROUP BY symbol")
    for placement in ("driver", "executors"):
        loom.verify("q", loom.run(placement=placement))
    assert spark.conf.getAll == before


def test_streams_and_sets_of_all_kinds_run_together(spark: SparkSession, frame: DataFrame) -> None:
    loom = woven(
        frame, a=AVERAGE, b="SELECT count(*) AS n … WHERE price > 15", c="SELECT symbol, max(ts) AS t … GROUP BY 1"
    )
    loom.stream(
        "quotes", frame.selectExpr("unix_millis(ts) AS at", "symbol AS venue", "price * 2 AS bid"), "at", unit="ms"
    )
    loom.stream("unused", frame, time="ts")
    loom.query("d", "SELECT venue, min(bid) AS low FROM quotes [RANGE 1 minute SLIDE 7 seconds] GROUP BY venue")
    loom.query("e", "SELECT count(*) AS n FROM quotes [TUMBLE 1 minute] WHERE venue = 'A'")
    results = loom.run()
    assert_equal_to_spark(loom, results)
    assert results.stats.events == 2 * len(ROWS)
    assert len(results.plan.sets) == 4
    assert_same_on_executors(loom, results, buckets=3)


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_a_stream_without_tuples_gives_tables_without_rows(frame: DataFrame, placement: str) -> None:
    loom = woven(frame.limit(0), a=AVERAGE, b="SELECT count(*) + 1 AS n … HAVING count(*) > 0")
    results = loom.run(placement=placement)
    assert results.stats.events == results.stats.partials == results.stats.results == 0
    assert results.arrow("a").num_rows == results["b"].count() == 0
    assert results["a"].columns == ["window_start", "window_end", "symbol", "p"]
    assert loom.verify("a", results).rows == 0


def test_queries_may_be_added_after_a_run(frame: DataFrame) -> None:
    loom = woven(frame, first="SELECT count(*) AS n …")
    before = loom.run()
    loom.query("second", AVERAGE)
    with pytest.raises(WindloomError, match="unknown query 'second'"):
        loom.verify("second", before)
    assert loom.verify("second").ok, "verify runs the loom again when the last run is out of date"
    assert list(loom.queries) == ["first", "second"]
    assert rows(before.arrow("first")) == rows(loom.run().arrow("first"))


def test_the_order_of_registration_does_not_change_answers(frame: DataFrame) -> None:
    names = ["having", "grouping by an alias", "the window of Spark", "only groups"]
    first = woven(frame, **{name: FORMS[name] for name in names}).run()
    second = woven(frame, **{name: FORMS[name] for name in reversed(names)}).run()
    for name in names:
        assert rows(first.arrow(name)) == rows(second.arrow(name))


def test_a_declared_stream_takes_its_data_by_name_and_widens_them(frame: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "c.cql").write_text(catalog(q="SELECT SYMBOL, sum(Volume) AS v, avg(price) AS p … GROUP BY symbol"))
    loom = Loom(frame.sparkSession)
    loom.load(tmp_path / "c.cql")
    shuffled = frame.selectExpr(
        "CAST(volume AS SMALLINT) AS VOLUME", "CAST(price AS FLOAT) AS price", "symbol", "ts AS TS", "1 AS more"
    )
    loom.stream("trades", shuffled, rate=10)
    stream = loom.streams["trades"]
    assert (stream.time, stream.delay_ticks, stream.events_per_second) == ("TS", 10_000_000, 10)
    results = loom.run()
    assert results["q"].dtypes[2:] == [("symbol", "string"), ("v", "bigint"), ("p", "double")]
    assert loom.verify("q", results).ok


def test_a_value_that_differs_is_shown(frame: DataFrame) -> None:
    other = woven(frame.selectExpr("ts", "symbol", "price + if(volume = 3, 0.5, 0) AS price"), avg=AVERAGE).run()
    found = woven(frame, avg=AVERAGE).verify("avg", other)
    assert not found
    assert (found.missing, found.extra, found.different) == (0, 0, 3)
    assert found.first_difference == (
        "window_start = 2026-01-04 23:59:50+00:00, window_end = 2026-01-05 00:00:20+00:00, symbol = 'A':"
        " p = 11.25, Spark has 11.0"
    )
    assert "3 different\nfirst difference: window_start" in str(found)


def test_rows_that_are_missing_or_too_many_are_shown(frame: DataFrame) -> None:
    loom = woven(frame, avg=AVERAGE)
    fewer = loom.verify("avg", woven(frame.where("volume > 2"), avg=AVERAGE).run())
    assert not fewer.ok
    assert (fewer.missing, fewer.extra) == (3, 0)
    assert fewer.first_difference.startswith("missing is window_start = 2026-01-04 23:59:40+00:00")
    more = woven(frame.where("symbol = 'A'"), avg=AVERAGE).verify("avg", loom.run())
    assert more.missing == 0
    assert more.extra > 0
    assert "symbol = 'B'" in more.first_difference


def test_a_join_is_refused_for_the_tuples_that_there_are_and_not_for_an_assumed_rate(spark: SparkSession) -> None:
    text = "SELECT count(*) AS n FROM a [TUMBLE 1 hour] x JOIN a [TUMBLE 1 hour] y ON x.k <> y.k"
    few, many = Loom(spark), Loom(spark)
    few.stream("a", spark.sql("SELECT timestamp_seconds(id) AS ts, id % 3 AS k FROM range(300)"), time="ts")
    few.query("q", text)
    assert few.run().arrow("q")["n"].to_pylist() == [300 * 200]
    many.stream("a", spark.sql("SELECT timestamp_seconds(id DIV 100) AS ts, id % 3 AS k FROM range(90000)"), time="ts")
    many.query("q", text)
    with pytest.raises(WindloomError, match="would make too many pairs") as caught:
        many.run()
    assert "tuples counted of a: 90,000" in caught.value.detail
