"""What a query picks by one order comes from one tuple, the same one however the tuples come."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.trades import settings
from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EPOCH = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
_SCHEMA = "ts timestamp, k string, a int, b string, x double, t timestamp"
_COLUMNS = ("ts", "k", "a", "b", "x", "t")

#: How each kind of pick chooses: the column that orders, and whether the tuple is the last one in the order.
_PICKS = {
    "first(a) AS f1, first(b) AS f2, first(x) AS f3": ("ts", False, "abx"),
    "last(b) AS l1, last(t) AS l2, last(a) AS l3": ("ts", True, "bta"),
    "max_by(x, a) AS m1, max_by(b, a) AS m2, max_by(t, a) AS m3": ("a", True, "xbt"),
    "min_by(b, x) AS n1, min_by(a, x) AS n2": ("x", False, "ba"),
}
_SELECTED = ", ".join(_PICKS)
#: The first is answered by definition, too; others have windows that find their cells in another way.
_TEXTS = {
    "q": f"SELECT k, {_SELECTED} FROM s [RANGE 40 seconds SLIDE 20 seconds] GROUP BY k",
    "sessions": f"SELECT k, {_SELECTED} FROM s [SESSION GAP 5 seconds] GROUP BY k",
    "landmark": f"SELECT k, {_SELECTED} FROM s [LANDMARK SLIDE 1 minute] GROUP BY k",
    "alone": "SELECT k, last(b) AS l, max_by(x, a) AS m FROM s [RANGE 40 seconds SLIDE 20 seconds] GROUP BY k",
    "filtered": "SELECT last(a) FILTER (WHERE a > 0) AS p, last(b) FILTER (WHERE a > 0) AS q FROM s [TUMBLE 1 minute]",
}


def drawn(seed: int, count: int) -> list[dict[str, Any]]:
    """Tuples of which many tie: few instants, few values of each column, and NULL among them."""
    rng = random.Random(seed)
    return [
        {
            "ts": _EPOCH + datetime.timedelta(seconds=rng.randrange(0, 240, 4)),
            "k": rng.choice("uv"),
            "a": rng.choice([None, -1, 1, 2]),
            "b": rng.choice([None, "", "p", "q"]),
            "x": rng.choice([None, float("nan"), -1.5, 0.5]),
            "t": rng.choice([None, _EPOCH, _EPOCH + datetime.timedelta(days=1)]),
        }
        for _ in range(count)
    ]


def order_of(value: Any) -> tuple[Any, ...]:
    """Spark's order: NULL first, NaN last."""
    if value is None:
        return ()
    return (1, 0) if value != value else (0, value)


def picked(tuples: Iterable[dict[str, Any]], by: str, last: bool, columns: str) -> tuple[Any, ...]:
    """The values of the tuple that is first or last by (the order, the values that are picked)."""
    found = [(row[by], *(row[name] for name in columns)) for row in tuples if row[by] is not None]
    ordered = sorted(found, key=lambda values: [order_of(value) for value in values])
    return ordered[-1 if last else 0][1:] if ordered else (None,) * len(columns)


def expected(tuples: list[dict[str, Any]], text_range: int = 40, slide: int = 20) -> dict[tuple[Any, ...], Any]:
    """Every window and key of the first text with what it picks, by definition."""
    answers = {}
    for end in range(slide, 240 + text_range, slide):
        until = _EPOCH + datetime.timedelta(seconds=end)
        since = until - datetime.timedelta(seconds=text_range)
        for key in "uv":
            own = [row for row in tuples if since <= row["ts"] < until and row["k"] == key]
            if own:
                answers[until, key] = [
                    value for by, last, names in _PICKS.values() for value in picked(own, by, last, names)
                ]
    return answers


def answered(table: Any) -> dict[tuple[Any, ...], Any]:
    names = [name for name in table.column_names if name not in ("window_start", "window_end", "k")]
    return {(row["window_end"], row.get("k")): [row[name] for name in names] for row in table.to_pylist()}


def same(found: dict[Any, list[Any]], wanted: dict[Any, list[Any]]) -> None:
    def plain(answers: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
        return {key: [order_of(value) for value in values] for key, values in answers.items()}

    assert plain(found) == plain(wanted)


def frame_of(spark: SparkSession, tuples: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame([tuple(row[name] for name in _COLUMNS) for row in tuples], _SCHEMA)


def loom_over(spark: SparkSession, frame: DataFrame, texts: dict[str, str]) -> Loom:
    loom = Loom(spark)
    loom.stream("s", frame, time="ts", delay="10 minutes")
    for name, text in texts.items():
        loom.query(name, text)
    return loom


def batch(*without: str, verifies: bool = False, **options: Any) -> Callable[..., dict[str, Any]]:
    texts = {name: text for name, text in _TEXTS.items() if name not in without}

    def run(spark: SparkSession, tuples: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
        loom = loom_over(spark, frame_of(spark, tuples).repartition(3), texts)
        results = loom.run(**options)
        assert not verifies or folder.name == "again" or all(loom.verify(name).ok for name in texts)
        return {name: results.arrow(name) for name in texts}

    return run


def rounds(spark: SparkSession, tuples: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    for number in range(4):
        part = frame_of(spark, tuples[number::4]).coalesce(1)
        part.write.mode("append").parquet(str(folder / "in"))
    source = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    loom = loom_over(spark, source, _TEXTS)
    handle = loom.start("memory", checkpoint=folder / "checkpoint", trigger={"availableNow": True}, finish=True)
    handle.await_termination()
    return {name: handle.arrow(name) for name in _TEXTS}


def operator(spark: SparkSession, tuples: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    loom = loom_over(spark, frame_of(spark, tuples).repartition(3), {"q": _TEXTS["q"]})
    with settings(spark, spark__sql__shuffle__partitions="2"):
        return {"q": loom.answers("q").toArrow()}


_WAYS = {
    "woven": batch(intake="woven", verifies=True),
    "native": batch("sessions", intake="native"),
    "executors": batch(placement="executors"),
    "rounds": rounds,
    "operator": operator,
}


@pytest.mark.parametrize("way", _WAYS)
def test_picks_of_one_order_come_from_one_tuple_of_those_that_tie(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    tuples = drawn(7, 400)
    tables = _WAYS[way](spark, tuples, tmp_path)
    same(answered(tables["q"]), expected(tuples))
    if way == "executors":
        return  # for the sake of time
    shuffled = random.Random(1).sample(tuples, len(tuples))
    again = _WAYS[way](spark, shuffled, tmp_path / "again")
    for name, table in tables.items():
        same(answered(table), answered(again[name]))


def test_a_struct_is_picked_from_one_tuple_and_named_as_spark_names_it(spark: SparkSession) -> None:
    frame = frame_of(
        spark, [row | {"ts": row["ts"] + datetime.timedelta(microseconds=i)} for i, row in enumerate(drawn(3, 90))]
    )
    frame.createOrReplaceTempView("s")
    window = "FROM s GROUP BY window(ts, '40 seconds'), k"
    texts = {
        "named": f"SELECT k, max_by(struct(a, upper(b), x AS c), ts) AS best {window}",
        "field": f"SELECT k, min_by(struct(a, b), ts).b AS b, last(struct(a, s.b)) AS l {window}",
        "filtered": f"SELECT k, max_by(struct(a, b), ts) FILTER (WHERE a > 1 AND x > 0) AS m {window}",
        "nulls": f"SELECT k, max_by(struct(a), CASE WHEN a > 1 THEN ts END) AS m {window}",
    }
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    for name, text in texts.items():
        loom.query(name, text)
    results = loom.run()
    for name, text in texts.items():
        truth = spark.sql(text.replace("last(struct(a, s.b))", "max_by(struct(a, s.b), ts)"))
        assert results[name].schema.simpleString() == truth.schema.simpleString()
        found, wanted = (sorted(map(repr, each.toArrow().to_pylist())) for each in (results[name], truth))
        assert found == wanted
    with pytest.raises(WindloomError, match="two fields 'a'"):
        loom.query("twice", f"SELECT max_by(struct(a, a), x) AS m {window}")
