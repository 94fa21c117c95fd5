"""The first day at work of a user of PySpark, with own data: each test begins where such a user began."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pytest

import windloom
from support.files import follow, put
from support.trades import ROWS, STREAM, WINDOW, trades
from windloom import Loom, WindloomError, sink
from windloom.errors import WindloomWarning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windloom.engine.handle import Handle

NOW = {"availableNow": True}
KEY = [("window_start", "ascending"), ("symbol", "ascending")]
#: Every fifth time is not known.
HOLEY = [(None if i % 5 == 2 else ts, *rest) for i, (ts, *rest) in enumerate(ROWS)]
#: One query per way in which tuples come to windows.
ASKED = {
    "flow": f"SELECT symbol, sum(volume) AS v, count(*) AS n {WINDOW} GROUP BY symbol",
    "large": f"SELECT symbol, max(price) AS m {WINDOW} WHERE volume > 12 GROUP BY symbol",
    "distinct": f"SELECT count(DISTINCT symbol) AS d {WINDOW}",
    "counted": "SELECT sum(volume) AS v FROM trades [ROWS 5 SLIDE 2]",
    "busy": "SELECT symbol, count(*) AS n FROM trades [SESSION GAP 20 seconds] GROUP BY symbol",
    "ever": "SELECT symbol, sum(volume) AS v FROM trades [LANDMARK SLIDE 1 minute] GROUP BY symbol",
    "pairs": "SELECT a.symbol, count(*) AS n FROM trades [RANGE 30 s SLIDE 10 s] a JOIN trades [RANGE 20 s] b"
    " ON a.symbol = b.symbol GROUP BY a.symbol",
    "rows": "SELECT RSTREAM symbol, volume FROM trades [RANGE 30 s SLIDE 30 s]",
}


def asking(loom: Loom, queries: dict[str, str] = ASKED) -> Loom:
    for name, text in queries.items():
        loom.query(name, text)
    return loom


# ---- rows without a time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_a_row_without_a_time_is_in_no_window_as_in_spark(spark: SparkSession, placement: str) -> None:
    loom = Loom(spark)
    loom.stream("trades", trades(spark, HOLEY), time="ts")
    asking(loom)
    with pytest.warns(WindloomWarning) as said:
        results = loom.run(placement=placement)
    in_process = "query 'rows' is answered in process: its answers are rows of the stream, or are made from kept rows"
    assert [str(warning.message) for warning in said] == [
        *([in_process] if placement == "executors" else []),
        "stream 'trades': 6 rows are in no window, because the time is NULL, unreadable or out of range (column 'ts',"
        " timestamp); untimed='stop' (--untimed stop) refuses such rows",
    ]
    assert results.stats.untimed == 6
    for name in ASKED:
        assert results.arrow(name).num_rows > 0, name
        assert loom.verify(name, results), name


def test_rows_without_a_time_of_a_file_are_left_out_too(spark: SparkSession, tmp_path: Path) -> None:
    trades(spark, HOLEY).coalesce(1).write.parquet(str(tmp_path / "trades"))
    loom = Loom(spark)
    loom.stream("trades", spark.read.parquet(str(tmp_path / "trades")), time="ts")
    asking(loom, {name: ASKED[name] for name in ("flow", "large")})
    for intake in ("woven", "native"):
        with pytest.warns(WindloomWarning, match="'trades': 6 rows are in no window"):
            results = loom.run(intake=intake, out=tmp_path / intake)
        assert loom.verify("flow", results)


def test_whoever_wants_every_row_in_a_window_says_stop(spark: SparkSession) -> None:
    for queries in (ASKED, {"rows": ASKED["rows"]}, {"counted": ASKED["counted"]}):
        loom = Loom(spark)
        loom.stream("trades", trades(spark, HOLEY), time="ts")
        asking(loom, queries)
        with pytest.raises(WindloomError, match="stream 'trades' has tuples without a usable time") as refused:
            loom.run(untimed="stop")
        assert "in 6 of its rows" in refused.value.detail
        assert "untimed='skip'" in refused.value.hint
    with pytest.raises(WindloomError, match="unknown choice untimed='drop'"):
        loom.run(untimed="drop")


def test_a_stream_goes_on_without_rows_that_have_no_time(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", HOLEY[:15])
    put(tmp_path / "in", "001", HOLEY[15:])
    loom, batch = Loom(spark), Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    batch.stream("trades", trades(spark, [row for row in HOLEY if row[0] is not None]), time="ts")
    for each in (loom, batch):
        each.query("flow", ASKED["flow"])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        handle = loom.start("memory", trigger=NOW, finish=True)
        assert handle.await_termination(300)
    told = [str(warning.message) for warning in said if warning.category is WindloomWarning]
    assert len(told) == 1, "later rounds are counted, and not told"
    assert told[0].startswith("stream 'trades': 3 rows are in no window")
    assert [progress.untimed for progress in handle.recent_progress] == [3, 3, 0]
    assert handle.arrow("flow").sort_by(KEY) == batch.run().arrow("flow").sort_by(KEY)


# ---- withWatermark ---------------------------------------------------------------------------------------------------


def test_the_delay_of_with_watermark_is_adopted(spark: SparkSession, tmp_path: Path) -> None:
    late = [*ROWS[:20], *((ROWS[i][0], "A", 1.0, 100) for i in range(5))]  # the last ones come two minutes late
    put(tmp_path / "in", "000", late[:20])
    put(tmp_path / "in", "001", late[20:])
    frame = follow(spark, tmp_path / "in").withWatermark("ts", "16 minutes")
    loom, batch = Loom(spark), Loom(spark)
    assert loom.stream("trades", frame).delay_ticks == 16 * 60 * 1_000_000, "the event time is adopted, too"
    batch.stream("trades", trades(spark, late), time="ts")
    for each in (loom, batch):
        each.query("flow", ASKED["flow"])
    handle = loom.start("memory", trigger=NOW, finish=True)
    assert handle.await_termination(300)
    assert [progress.late_dropped for progress in handle.recent_progress] == [0, 0, 0]
    assert handle.arrow("flow").sort_by(KEY) == batch.run().arrow("flow").sort_by(KEY)


def test_two_delays_that_differ_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    plain = follow(spark, tmp_path / "in")
    marked = plain.withWatermark("ts", "16 minutes")
    catalog = tmp_path / "trades.cql"
    catalog.write_text(STREAM, encoding="utf-8")

    def delay_of(frame: DataFrame, delay: str | None = None, *, declared: bool = False) -> int:
        loom = Loom(spark)
        if declared:
            loom.load(catalog)
        return loom.stream("trades", frame, time="ts", delay=delay).delay_ticks // 1_000_000

    assert delay_of(marked.withColumnRenamed("ts", "t").withColumnRenamed("t", "ts")) == 960
    assert delay_of(marked, "5 seconds") == 5, "what is said here holds"
    assert delay_of(plain, declared=True) == 10
    assert delay_of(plain.withWatermark("ts", "10 seconds"), declared=True) == 10
    assert delay_of(trades(spark).withWatermark("ts", "1 minute")) == 0, "Spark ignores watermarks of batch data"
    twice = plain.withWatermark("ts", "1 minute").union(marked)
    for frame, declared in ((twice, False), (marked.withWatermark("ts", "1 minute"), False), (marked, True)):
        with pytest.raises(WindloomError, match="stream 'trades' has two delays for 'ts'") as refused:
            delay_of(frame, declared=declared)
        assert "16 minutes" in refused.value.detail
        assert refused.value.hint.endswith("or say which holds: delay='16 minutes'")
    with pytest.warns(WindloomWarning, match=r"withWatermark\('at', '16 minutes'\) is not for its event time, 'ts'"):
        assert delay_of(marked.withColumnRenamed("ts", "at").selectExpr("at", "at + INTERVAL 1 hour AS ts")) == 0


# ---- answers that other programs read --------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_a_directory_of_answers_is_read_by_spark_pandas_and_duckdb_as_it_is(
    spark: SparkSession, tmp_path: Path, placement: str
) -> None:
    loom, out, beside = Loom(spark), tmp_path / "out", placement == "executors"
    loom.stream("trades", trades(spark), time="ts")
    # Windows of rows have positions instead of instants: their tables are read one by one.
    asking(loom, {name: text for name, text in ASKED.items() if name != "counted"})
    with pytest.warns(WindloomWarning, match="'rows' is answered in process") if beside else nullcontext():
        results = loom.run(placement=placement, out=out)
    counts = {name: results[name].count() for name in results}
    by_spark = spark.read.parquet(str(out))
    assert {row["query"]: row["count"] for row in by_spark.groupBy("query").count().collect()} == counts
    by_pandas = pd.read_parquet(out)
    assert by_pandas["query"].value_counts().to_dict() == counts
    files = f"read_parquet('{out}/*/*.parquet', union_by_name = true)"
    by_duckdb = duckdb.sql(f"SELECT * FROM {files}").to_arrow_table()
    assert {row["values"]: row["counts"] for row in by_duckdb["query"].value_counts().to_pylist()} == counts
    for columns in (by_spark.columns, by_pandas.columns, by_duckdb.column_names):
        assert {"query", "window_start", "window_end", "symbol", "v", "n", "m", "d", "volume"} <= set(columns)
    flow = by_spark.where("query = 'flow'").select("window_start", "symbol", "v").orderBy("window_start", "symbol")
    own = results["flow"].select("window_start", "symbol", "v").orderBy("window_start", "symbol")
    assert flow.collect() == own.collect()
    told = by_pandas[by_pandas["query"] == "flow"]
    assert sorted(told["window_start"].dt.tz_convert("UTC")) == sorted(
        results.arrow("flow")["window_start"].to_pylist()
    )


def test_answers_are_read_back_by_the_name_of_their_query(spark: SparkSession, tmp_path: Path) -> None:
    loom, out = Loom(spark), tmp_path / "out"
    loom.stream("trades", trades(spark), time="ts")
    asking(loom)
    loom.query("early", ASKED["flow"] + " EMIT EARLY EVERY 10 seconds")
    results = loom.run(out=out)
    found = windloom.read(out)
    assert list(found) == sorted([*ASKED, "early"])
    for name in found:
        assert found.arrow(name).num_rows == results.arrow(name).num_rows > 0, name
        assert found[name].columns == results[name].columns
        assert found[name].count() == results[name].count()
    assert found.grouping("flow") == ["symbol"]
    assert found.pandas("flow")["v"].sum() == sum(results.arrow("flow")["v"].to_pylist())
    about = found.summary()["flow"]
    assert (about.rows, about.text) == (results.arrow("flow").num_rows, ASKED["flow"])
    assert (about.first, about.last) == (
        min(results.arrow("flow")["window_start"].to_pylist()).replace(tzinfo=None),
        max(results.arrow("flow")["window_end"].to_pylist()).replace(tzinfo=None),
    )
    assert repr(found) == f"<answers of 9 queries in '{out}'>"
    assert "early" in found._repr_html_()
    with pytest.raises(KeyError, match="unknown query 'flaw'"):
        found["flaw"]


def test_a_stream_can_be_read_while_it_goes_on_and_a_query_changes_its_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "in", "000", ROWS[:15])
    loom, out = Loom(spark), tmp_path / "out"
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    loom.query("flow", ASKED["flow"])
    handle = loom.start(path=out, checkpoint=tmp_path / "checkpoint")
    handle.process_all_available()
    assert windloom.read(out).arrow("flow").sort_by(KEY) == handle.arrow("flow").sort_by(KEY)
    handle.replace("flow", ASKED["large"])
    put(tmp_path / "in", "001", ROWS[15:])
    handle.process_all_available()
    assert windloom.read(out).arrow("flow").column_names == handle.arrow("flow").column_names
    assert set(pd.read_parquet(out).columns) >= {"v", "n", "m"}
    handle.stop()


def test_a_directory_without_answers_says_what_it_is(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "manifest.json").write_text("{}")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "_manifest.json").write_text("{")
    for place, words in {
        "old": "was written by an earlier revision of Windloom",
        "broken": "_manifest.json' cannot be read",
        ".": "it has no '_manifest.json'",
        "none": "there is no such directory",
    }.items():
        with pytest.raises(WindloomError) as refused:
            windloom.read(tmp_path / place)
        assert words in str(refused.value)
    with pytest.raises(WindloomError, match="cannot read 's3://bucket/out'"):
        windloom.read("s3://bucket/out")
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    asking(loom, {"flow": ASKED["flow"]})
    with pytest.raises(WindloomError, match="was written by an earlier revision of Windloom"):
        loom.start(path=tmp_path / "old", checkpoint=tmp_path / "checkpoint")


# ---- a refusal writes nothing ----------------------------------------------------------------------------------------


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, with the bytes of files; the lock says who was there last."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name != "lock" or path.stat().st_size == 0
    }


FLOW = {"flow": ASKED["flow"]}
NOWHERE = sink("postgres", "postgresql://nobody@127.0.0.1:1/none")
BATCH, NO_DATA = object(), object()

#: What is wrong with a start: its queries, its arguments, what it is refused for.
WRONG_STARTS: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "a query was forgotten": ({}, {}, "there is no query to answer"),
    "the stream is a batch": (FLOW, {"frame": BATCH}, "is a batch DataFrame"),
    "the stream has no data": (FLOW, {"frame": NO_DATA}, "has no data"),
    "a trigger that is unknown": (FLOW, {"trigger": {"once": True}}, "unknown trigger"),
    "an end that does not come": (FLOW, {"finish": True, "trigger": None}, "needs a stream that ends"),
    "a negative time": (FLOW, {"keep": "-1 hour"}, "cannot be negative"),
    "a placement that is unknown": (FLOW, {"placement": "cloud"}, "unknown placement"),
    "rounds on executors": (FLOW, {"placement": "executors"}, "runs on the driver, and not on executors"),
    "a schedule without a budget": (FLOW, {"schedule": "edf"}, "schedule 'edf' is not used"),
    "an objective that is unknown": (FLOW, {"objective": "beauty"}, "beauty"),
    "charts with an unknown option": (FLOW, {"adapt": {"part": 3}}, "no option 'part'"),
    "an instant that is none": (FLOW, {"history": NOW, "handover": "noon"}, "handover is not an instant"),
    "a history that streams": (FLOW, {"history": "stream"}, "is a streaming DataFrame"),
    "a history of nobody": (FLOW, {"history": {"orders": "batch"}}, "no stream 'orders'"),
    "going on without a query of its own": (FLOW, {"without": ["flow"], "again": True}, "cannot go on without"),
    "a sink that is unknown": (FLOW, {"sink": "parket"}, "unknown sink"),
    "a sink without a place": (FLOW, {"path": None}, "needs a place of its own"),
    "a sink without a checkpoint": (FLOW, {"checkpoint": None}, "needs a place of its own"),
    "a sink that cannot take a query": (
        FLOW | {"counted": ASKED["counted"]},
        {"sink": "current"},
        "query 'counted' has no present result",
    ),
    "a sink that is not there, beside one that is": (FLOW, {"sink": ["current", NOWHERE]}, "PostgreSQL at"),
    "an address that cannot be read": (FLOW, {"sink": ["parquet", sink("webhook", "ftp://x")]}, "webhook"),
    "answers of another stream": (FLOW, {"path": "others"}, "holds the answers of another run"),
    "a place below a file": (FLOW, {"path": "a file/out"}, "a file/out"),
    "a checkpoint below a file": (FLOW, {"checkpoint": "a file/c"}, "a file/c"),
    "a plan that cannot be": (FLOW, {"strategy": "best"}, "unknown strategy 'best'"),
}


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stream that has had a round, and what it has read."""
    folder = tmp_path_factory.mktemp("begun")
    put(folder / "in", "000", ROWS)
    (folder / "a file").write_text("")
    (folder / "others").mkdir()
    (folder / "others" / "_manifest.json").write_text("{}")
    loom = Loom(spark)
    loom.stream("trades", follow(spark, folder / "in"), time="ts")
    asking(loom, FLOW)
    handle = loom.start("parquet", path=folder / "begun out", checkpoint=folder / "begun c", trigger=NOW)
    assert handle.await_termination(300)
    return folder


def refused_start(spark: SparkSession, folder: Path, queries: dict[str, str], given: dict[str, Any]) -> WindloomError:
    """The error of a start that is wrong: it leaves everything as it was."""
    given = dict(given)
    loom, frame, is_again = Loom(spark), given.pop("frame", None), given.pop("again", False)
    batch = trades(spark)
    if frame is NO_DATA:
        (folder / "trades.cql").write_text(STREAM, encoding="utf-8")
        loom.load(folder / "trades.cql")
    else:
        loom.stream("trades", batch if frame is BATCH else follow(spark, folder / "in"), time="ts")
    places = {"path": "begun out", "checkpoint": "begun c"} if is_again else {"path": "out", "checkpoint": "new/c"}
    arguments = {"sink": "parquet", "trigger": NOW, **places, **given}
    for name in ("path", "checkpoint"):
        arguments[name] = None if arguments[name] is None else folder / arguments[name]
    frames = {"stream": follow(spark, folder / "in"), "batch": batch}
    match arguments.get("history"):
        case str(kind):
            arguments["history"] = frames[kind]
        case {"orders": str(kind)}:
            arguments["history"] = {"orders": frames[kind]}
        case {"availableNow": _}:
            arguments["history"] = batch
    asking(loom, queries)
    before = tree(folder)
    with pytest.raises(WindloomError) as refused:
        loom.start(**arguments)
    assert tree(folder) == before, "something was written"
    assert refused.value.hint
    return refused.value


@pytest.mark.parametrize("mistake", WRONG_STARTS)
def test_a_start_that_is_refused_writes_nothing(spark: SparkSession, begun: Path, mistake: str) -> None:
    queries, given, said = WRONG_STARTS[mistake]
    assert said in str(refused_start(spark, begun, queries, given))
    if "again" not in given:  # the same with a checkpoint that exists, if it is about something else
        assert str(refused_start(spark, begun, queries, {"checkpoint": "begun c", **given}))


def test_a_start_that_forgot_a_query_can_be_corrected(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", ROWS)
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    with pytest.raises(WindloomError, match="there is no query to answer"):
        loom.start("parquet", path=tmp_path / "out", checkpoint=tmp_path / "c", trigger=NOW)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    loom = Loom(spark)
    loom.stream("sales", follow(spark, tmp_path / "in"), time="ts", delay="1 minute")
    loom.query("flow", ASKED["flow"].replace("trades", "sales"))
    handle = loom.start("parquet", path=tmp_path / "out", checkpoint=tmp_path / "c", trigger=NOW, finish=True)
    assert handle.await_termination(300)
    assert handle.arrow("flow").num_rows > 0


# ---- the names of StreamingQuery -------------------------------------------------------------------------------------


def test_a_handle_answers_to_the_names_of_a_streaming_query(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", ROWS)
    places = {"path": tmp_path / "out", "checkpoint": tmp_path / "c"}

    def start(**more: Any) -> Handle:
        loom = Loom(spark)
        loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
        loom.query("flow", ASKED["flow"])
        return loom.start("parquet", **places, **more)

    query = start(name="desk")
    query.processAllAvailable()
    assert query.isActive
    assert query.name == "desk"
    assert [each.name for each in spark.streams.active] == ["desk"]
    assert query.lastProgress is query.progress
    assert query.lastProgress is not None
    assert (query.lastProgress["batchId"], query.lastProgress["numInputRows"]) == (0, len(ROWS))
    assert query.lastProgress["durationMs"]["triggerExecution"] >= query.lastProgress["durationMs"]["step"]
    assert [progress.round for progress in query.recentProgress] == [0]
    assert {"message", "isDataAvailable", "isTriggerActive"} <= set(query.status)
    assert query.awaitTermination(0.01) is False
    other = Loom(spark)
    other.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    other.query("flow", ASKED["flow"])
    with pytest.raises(WindloomError, match="there is a stream 'desk' already"):
        other.start("memory", name="desk")
    query.stop()
    assert not query.isActive
    assert query.exception() is None
    assert query.awaitTermination() is True
    again = start(trigger=NOW)
    assert again.awaitTermination(300)
    assert (again.id, again.name) == (query.id, None)
    assert again.runId != query.runId
