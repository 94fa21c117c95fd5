"""Mistakes through the API: each is a WindloomError with message, detail and hint, and leaves nothing behind."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.bad_input import BAD_QUERIES
from support.trades import ROWS, STREAM, WINDOW, catalog, trades
from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    cached = trades(spark).persist()
    cached.count()
    yield cached
    cached.unpersist()


@pytest.fixture
def loom(frame: DataFrame) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, time="ts")
    return loom


def refusal(action: Callable[[], object]) -> WindloomError:
    """The error of an action, checked to say what happened, a fact, and what to do."""
    with pytest.raises(WindloomError) as caught:
        action()
    error = caught.value
    assert error.message
    assert error.detail
    assert error.hint
    assert error.message[0].islower() or error.message.startswith(("Spark", "WHERE")), "begins in lower case"
    return error


@pytest.mark.parametrize("mistake", BAD_QUERIES)
def test_a_mistake_in_a_query_is_refused_when_it_is_registered(loom: Loom, mistake: str) -> None:
    text, words = BAD_QUERIES[mistake]
    error = refusal(lambda: loom.query("wrong", text.replace("…", WINDOW)))
    assert error.message.startswith("query 'wrong': ")
    for word in words:
        assert word in str(error)
    assert not loom.queries


def test_of_an_unknown_function_only_functions_that_a_query_may_call_are_suggested(loom: Loom) -> None:
    hints = {
        name: refusal(lambda name=name: loom.query("q", f"SELECT max({name}(price)) AS m {WINDOW}")).hint
        for name in ("rnadn", "sqrtt", "xyzzyx", "var")
    }
    assert "'rand" not in hints["rnadn"], "it gives another answer each time"
    assert hints["sqrtt"].startswith("did you mean 'sqrt'")
    assert hints["var"] == "did you mean 'var_samp'?", "var_pop looks more alike, and means another"
    assert hints["xyzzyx"] == "Spark knows no function of that name; use the functions of Spark SQL"


@pytest.mark.parametrize("mistake", ["an aggregate of a computed string", "an unknown function over aggregates"])
def test_of_a_catalog_the_wrong_query_is_named_once_there_are_data(
    frame: DataFrame, tmp_path: Path, mistake: str
) -> None:
    text, words = BAD_QUERIES[mistake]
    (tmp_path / "c.cql").write_text(catalog(fine="SELECT sum(price * 2) AS s …", wrong=text, good="SELECT count(*) …"))
    loom = Loom(frame.sparkSession)
    loom.load(tmp_path / "c.cql")
    loom.stream("trades", frame)
    error = refusal(loom.run)
    assert error.message.startswith("query 'wrong': ")
    assert words[0] in str(error)


def test_a_query_name_is_taken_once(loom: Loom, tmp_path: Path) -> None:
    loom.query("same", f"SELECT count(*) {WINDOW}")
    error = refusal(lambda: loom.query("same", f"SELECT max(price) {WINDOW}"))
    assert error.message == "query 'same' is already registered"
    assert "count(*)" in error.detail, "the first one is shown"
    text = f"CREATE QUERY new AS SELECT sum(price) {WINDOW};\nCREATE QUERY same AS SELECT sum(price) {WINDOW};"
    (tmp_path / "c.cql").write_text(text)
    assert refusal(lambda: loom.load(tmp_path / "c.cql")).message == "query 'same' is already registered"
    assert list(loom.queries) == ["same"], "all of a catalog or nothing"


def test_a_stream_name_is_taken_once(loom: Loom, frame: DataFrame, tmp_path: Path) -> None:
    given = frame.selectExpr("*", "1 AS more")
    assert refusal(lambda: loom.stream("trades", given, time="ts")).message == "stream 'trades' is already registered"
    (tmp_path / "c.cql").write_text(STREAM)
    assert "'c.cql' creates it again, at line 1" in refusal(lambda: loom.load(tmp_path / "c.cql")).detail


def test_a_name_in_other_letters_is_the_same_name(loom: Loom, frame: DataFrame, tmp_path: Path) -> None:
    loom.relation("person", frame)
    for what, add in {"stream": loom.stream, "relation": loom.relation}.items():
        name = {"stream": "trades", "relation": "person"}[what]
        error = refusal(lambda add=add, name=name: add(name.upper(), frame))
        assert error.message == f"{what} '{name.upper()}' cannot be registered"
        assert error.detail == f"there is a {what} '{name}', and names are compared without case"
    (tmp_path / "c.cql").write_text(STREAM.replace("trades", "Trades"))
    error = refusal(lambda: loom.load(tmp_path / "c.cql"))
    assert error.message == "stream 'trades' is already registered"
    assert error.detail == "'c.cql' creates 'Trades', which is the same name, at line 1"
    assert list(loom.streams) == ["trades"]


STREAMS: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"name": ""}, "a stream needs a name"),
    "a name that is no text": ({"name": 7}, "a stream needs a name"),
    "no DataFrame": ({"df": [1, 2]}, "needs a Spark DataFrame"),
    "no time": ({"time": None}, "has no event time"),
    "an unknown time column": ({"time": "tz"}, "has no column 'tz'"),
    "a time that is a Column": ({"time": 3}, "by the name of a column"),
    "a time of the wrong type": ({"time": "price"}, "column 'price' cannot be event time"),
    "an integer time without a unit": ({"time": "volume"}, "the unit of column 'volume' is not known"),
    "an unknown unit": ({"time": "volume", "unit": "ns"}, "unknown time unit 'ns'"),
    "a unit for a timestamp": ({"unit": "ms"}, "unit='ms' is for integer times"),
    "a negative delay": ({"delay": "-1 second"}, "the delay cannot be negative"),
    "a negative timedelta": ({"delay": datetime.timedelta(seconds=-1)}, "the delay cannot be negative"),
    "a delay of months": ({"delay": "1 month"}, "'month' is not a duration of fixed length"),
    "a delay that is no duration": ({"delay": "soon"}, "cannot read the duration 'soon'"),
    "a delay without a unit": ({"delay": 10}, "a duration must be text or a timedelta"),
    "a rate of zero": ({"rate": 0}, "the rate must be a positive number"),
    "a rate that is no number": ({"rate": "fast"}, "the rate must be a positive number"),
    "a rate without end": ({"rate": float("inf")}, "the rate must be a positive number"),
}


@pytest.mark.parametrize("mistake", STREAMS)
def test_a_mistake_in_a_stream_is_refused(frame: DataFrame, mistake: str) -> None:
    given, words = STREAMS[mistake]
    loom = Loom(frame.sparkSession)
    error = refusal(lambda: loom.stream(**{"name": "trades", "df": frame, "time": "ts", **given}))
    assert words in error.message
    assert not loom.streams


DECLARED = {
    "a declared column that is missing": (
        "price AS preis",
        "declared with a column 'price' that its data does not have",
    ),
    "a declared column of another type": ("symbol AS price", "column 'price' is not of its declared type"),
    "a number that would not fit": (
        "CAST(price AS DECIMAL(38,0)) AS price",
        "column 'price' is not of its declared type",
    ),
}


@pytest.mark.parametrize("mistake", DECLARED)
def test_data_that_do_not_match_their_declaration_are_refused(frame: DataFrame, tmp_path: Path, mistake: str) -> None:
    column, words = DECLARED[mistake]
    (tmp_path / "c.cql").write_text(STREAM)
    loom = Loom(frame.sparkSession)
    loom.load(tmp_path / "c.cql")
    assert words in refusal(lambda: loom.stream("trades", frame.selectExpr("ts", "symbol", column, "volume"))).message


def test_a_time_column_that_is_not_declared_is_refused(frame: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "c.cql").write_text(STREAM)
    loom = Loom(frame.sparkSession)
    loom.load(tmp_path / "c.cql")
    error = refusal(lambda: loom.stream("trades", frame.selectExpr("*", "ts AS arrived"), time="arrived"))
    assert error.message == "stream 'trades' has no column 'arrived'"
    assert error.detail == "its declared columns are ts, symbol, price, volume"


RUNS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown strategy": ({"strategy": "weave"}, "unknown strategy 'weave'"),
    "no strategy": ({"strategy": None}, "unknown strategy 'None'"),
    "an unknown slicing": ({"slicing": "slices"}, "unknown slicing 'slices'"),
    "an unknown technique": ({"technique": "slick"}, "unknown technique 'slick'"),
    "a technique that an aggregate does not allow": ({"technique": "prefix_ring"}, "which max(price) is"),
    "an unknown placement": ({"placement": "cloud"}, "unknown placement 'cloud'"),
    "no buckets": ({"placement": "executors", "buckets": 0}, "the number of buckets cannot be 0"),
    "buckets that are no number": (
        {"placement": "executors", "buckets": "many"},
        "the number of buckets cannot be 'many'",
    ),
    "an output on another machine": ({"out": "hdfs://server/answers"}, "cannot write to"),
}


@pytest.mark.parametrize("mistake", RUNS)
def test_a_mistake_in_a_run_is_refused(loom: Loom, tmp_path: Path, mistake: str) -> None:
    given, words = RUNS[mistake]
    loom.query("high", f"SELECT max(price) AS high {WINDOW}")
    error = refusal(lambda: loom.run(**{"out": tmp_path / "out", **given}))
    assert words in error.message
    assert not list(tmp_path.iterdir())


def test_a_loom_needs_a_session() -> None:
    assert refusal(lambda: Loom(None)).message == "a loom needs a Spark session"  # type: ignore[arg-type]


def test_a_loom_without_queries_has_nothing_to_do(loom: Loom) -> None:
    for action in (loom.run, loom.explain, loom.plan):
        assert refusal(action).message == "there is no query to plan"


def test_formats_and_names_that_do_not_exist(loom: Loom) -> None:
    loom.query("high", f"SELECT max(price) AS high {WINDOW}")
    assert refusal(lambda: loom.explain("pdf")).message == "unknown format 'pdf'"
    for action in (loom.verify, lambda name: loom.explain(query=name)):
        error = refusal(lambda action=action: action("hihg"))
        assert (error.message, error.hint) == ("unknown query 'hihg'", "did you mean 'high'?")


def test_a_stream_without_data_cannot_be_run(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "c.cql").write_text(catalog(n="SELECT count(*) …"))
    loom = Loom(spark)
    loom.load(tmp_path / "c.cql")
    assert refusal(loom.run).message == "stream 'trades' has no data"
    assert loom.explain().startswith("Plan: 1 query")


def test_a_streaming_frame_can_be_explained_but_not_run(spark: SparkSession) -> None:
    loom = Loom(spark)
    loom.stream("ticks", spark.readStream.format("rate").load(), time="timestamp")
    loom.query("n", "SELECT count(*) AS n FROM ticks [TUMBLE 1 minute]")
    assert loom.explain().startswith("Plan: 1 query")
    assert refusal(loom.run).message == "stream 'ticks' is a streaming DataFrame"


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "no CREATE STREAM"), ("/* later */ ;", "no CREATE STREAM"), ("CREATE VIEW v", "unknown statement")],
)
def test_a_catalog_without_statements_is_refused(spark: SparkSession, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "c.cql").write_text(text)
    assert words in refusal(lambda: Loom(spark).load(tmp_path / "c.cql")).message


def test_a_catalog_that_cannot_be_read_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "bytes.cql").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.cql", tmp_path, tmp_path / "bytes.cql"):
        assert refusal(lambda path=path: Loom(spark).load(path)).message == f"cannot read the catalog '{path}'"


# What only the data can tell, on both placements: the error crosses Spark's Python worker with all it says.

HUGE = [(ts, symbol, price, 2**62) for ts, symbol, price, _ in ROWS]
UNKNOWN = [(None if i % 10 == 3 else ts, *rest) for i, (ts, *rest) in enumerate(ROWS)]

FAILING: dict[str, tuple[list[tuple[Any, ...]], str, dict[str, Any], str, tuple[str, ...], str]] = {
    "a sum that overflows": (
        HUGE,
        "SELECT symbol, sum(volume) AS s … GROUP BY symbol",
        {},
        "query 'q': a value does not fit its type",
        ("window [2026-01-0", "group ", " is out of range"),
        "wider type",
    ),
    "times that are NULL": (
        UNKNOWN,
        "SELECT symbol, count(*) AS n … WHERE volume > 1000 GROUP BY symbol",
        {},
        "stream 'trades' has tuples without a usable time",
        ("column 'ts' (timestamp)", "in 3 of its rows"),
        "IS NOT NULL",
    ),
    "times that are no times": (
        ROWS,
        "SELECT count(*) AS n …",
        {"time": "symbol"},
        "stream 'trades' has tuples without a usable time",
        ("column 'symbol' (string)", "in 30 of its rows"),
        'df.where("try_cast(symbol AS TIMESTAMP) IS NOT NULL")',
    ),
    "times that are out of range": (
        [*ROWS, (*ROWS[0][:3], 2**62)],
        "SELECT count(*) AS n …",
        {"time": "volume", "unit": "s"},
        "stream 'trades' has tuples without a usable time",
        ("column 'volume' (bigint)", "in 1 of its rows"),
        'df.where("volume BETWEEN -',
    ),
    "a division by zero inside an aggregate": (
        ROWS,
        "SELECT sum(price / (volume - 3)) AS s …",
        {},
        "Spark cannot evaluate stream 'trades'",
        ("[DIVIDE_BY_ZERO]", "in price / (volume - 3), asked by 'q'"),
        "try_",
    ),
    "a cast in WHERE that fails": (
        ROWS,
        "SELECT count(*) AS n … WHERE CAST(symbol AS INT) > 0",
        {},
        "Spark cannot evaluate stream 'trades'",
        ("[CAST_INVALID_INPUT]", "in CAST(symbol AS INT), asked by 'q'"),
        "try_",
    ),
    "a text that is no timestamp": (
        ROWS,
        "SELECT max(to_timestamp(symbol, 'yyyy')) AS m …",
        {},
        "Spark cannot evaluate stream 'trades'",
        ("[CANNOT_PARSE_TIMESTAMP]",),
        "try_",
    ),
}


@pytest.mark.parametrize("placement", ["driver", "executors"])
@pytest.mark.parametrize("mistake", FAILING)
def test_what_only_the_data_tell(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], mistake: str, placement: str
) -> None:
    rows, text, given, message, facts, hint = FAILING[mistake]
    loom = Loom(spark)
    loom.stream("trades", trades(spark, rows), **{"time": "ts", **given})
    loom.query("q", text.replace("…", WINDOW))
    cached = spark.sparkContext._jsc.getPersistentRDDs().size()
    capfd.readouterr()
    error = refusal(lambda: loom.run(placement=placement, out=tmp_path / "deep" / "out", untimed="stop"))
    assert error.message == message
    for fact in facts:
        assert fact in error.detail
    assert hint in error.hint
    assert not list(tmp_path.iterdir()), "nothing is left behind"
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == cached
    written = capfd.readouterr()
    assert written.out + written.err == "", "the error says it once"


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_of_many_queries_those_that_ask_for_what_failed_are_named(loom: Loom, placement: str) -> None:
    for number in range(9):
        loom.query(
            f"fine{number}", f"SELECT symbol, sum(price / (volume - {300 + number})) AS s {WINDOW} GROUP BY symbol"
        )
    loom.query("inside", f"SELECT max(1 + price / (volume - 3)) AS m {WINDOW}")
    loom.query("filter", f"SELECT count(*) AS n {WINDOW} WHERE price / (volume - 3) > 1")
    error = refusal(lambda: loom.run(placement=placement))
    assert "in price / (volume - 3), asked by " in error.detail
    assert {"'inside'", "'filter'"} == set(error.detail.split("asked by ")[1].split("\n")[0].split(", "))


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_a_division_by_zero_over_aggregates_is_told_in_sparks_words(
    loom: Loom, tmp_path: Path, capfd: pytest.CaptureFixture[str], placement: str
) -> None:
    loom.query("fine", f"SELECT symbol, max(price) AS m {WINDOW} GROUP BY symbol")
    loom.query("zero", f"SELECT symbol, sum(volume) / (count(*) - count(*)) AS s {WINDOW} GROUP BY symbol")
    results = loom.run(placement=placement)
    assert results.arrow("fine").num_rows > 0, "other queries are answered"
    capfd.readouterr()
    for action in (lambda: results.arrow("zero"), lambda: loom.run(placement=placement, out=tmp_path / "out")):
        error = refusal(action)
        assert error.message == "Spark cannot evaluate query 'zero'"
        assert "[DIVIDE_BY_ZERO]" in error.detail
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("second", ["Volume", "volume"])
def test_columns_of_one_name_are_refused_and_both_are_named(frame: DataFrame, second: str) -> None:
    double = frame.selectExpr("*", f"price AS {second}")
    for what in ("stream", "relation"):
        loom = Loom(frame.sparkSession)
        error = refusal(
            lambda loom=loom, what=what: (
                loom.stream("trades", double, time="ts") if what == "stream" else loom.relation("trades", double)
            )
        )
        assert error.message == f"{what} 'trades': a query cannot tell its columns 'volume' and '{second}' apart"
        assert not loom.streams


def test_of_declared_data_only_the_declared_columns_need_names_of_their_own(frame: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "c.cql").write_text(STREAM)
    loom = Loom(frame.sparkSession)
    loom.load(tmp_path / "c.cql")
    assert (
        "'volume' and 'Volume'" in refusal(lambda: loom.stream("trades", frame.selectExpr("*", "1 AS Volume"))).message
    )
    loom.stream("trades", frame.selectExpr("*", "1 AS extra", "2 AS Extra"))
    loom.query("n", f"SELECT count(*) AS n {WINDOW}")
    assert loom.run().arrow("n").num_rows > 0


def test_what_is_not_the_users_to_fix_passes_unchanged(loom: Loom, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr("windloom.engine.batch.run_batch", broken)
    loom.query("n", f"SELECT count(*) AS n {WINDOW}")
    with pytest.raises(RuntimeError, match="a bug of ours"):
        loom.run()
