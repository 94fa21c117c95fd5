"""Relations on Spark: how they are given, when they are read again, and live streams that read them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.files import put_round
from support.frames import frame_of
from windloom import Loom
from windloom.errors import WindloomError
from windloom.model import DataType, Relation
from windloom.spark.relations import SeenFrame
from windloom.spark.sources.read import RelationFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PERSON, ORDERS = "id int, city string, age int", "tick bigint, user int, amount int"
BY_CITY = """SELECT p.city, sum(o.amount) AS spent FROM orders [TUMBLE 10 microseconds] o
    JOIN person p ON o.user = p.id GROUP BY p.city"""
FOUND = """SELECT count(*) AS n FROM orders [TUMBLE 10 microseconds] o LEFT SEMI JOIN shop k ON o.user = k.id"""


def people(spark: SparkSession, *rows: tuple[int, str, int]) -> DataFrame:
    return frame_of(spark, rows, PERSON)


# ---- how relations are given ----------------------------------------------------------------------------------------

BAD: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "no DataFrame": (lambda spark: [1], ("relation 'person' needs a Spark DataFrame, or a function", "builtins.list")),
    "a function of something else": (lambda spark: lambda: [1], ("its function gives no Spark DataFrame", "list")),
    "a function that fails": (lambda spark: lambda: 1 // 0, ("its function failed", "ZeroDivisionError")),
    "a file that is not there": (
        lambda spark: lambda: spark.read.parquet("/nowhere/person.parquet"),
        ("the function of relation 'person'", "PATH_NOT_FOUND"),
    ),
    "a stream": (
        lambda spark: spark.readStream.format("rate").load(),
        ("relation 'person' is a streaming DataFrame", "loom.stream('person'"),
    ),
}


@pytest.mark.parametrize("mistake", BAD)
def test_what_is_no_table_is_refused_and_named(spark: SparkSession, mistake: str) -> None:
    given, words = BAD[mistake]
    with pytest.raises(WindloomError) as caught:
        Loom(spark).relation("person", given(spark))
    assert all(word in str(caught.value) for word in words), caught.value
    assert caught.value.hint


def test_names_are_those_of_one_thing(spark: SparkSession) -> None:
    loom, frame = Loom(spark), people(spark, (1, "x", 2))
    loom.relation("person", frame)
    with pytest.raises(WindloomError, match="relation 'person' is already registered"):
        loom.relation("person", frame.selectExpr("*", "1 AS more"))
    with pytest.raises(WindloomError, match="stream 'Person' cannot be registered") as caught:
        loom.stream("Person", frame.selectExpr("*", "current_timestamp() AS ts"), time="ts")
    assert "there is a relation 'person'" in caught.value.detail
    with pytest.raises(WindloomError, match="retroactive says yes or no"):
        loom.relation("other", frame, retroactive="no")  # type: ignore[arg-type]
    assert loom.relations == {"person": Relation("person", loom.relations["person"].columns)}


def test_a_declaration_is_matched_and_may_be_overridden(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "c.cql").write_text("CREATE NONRETROACTIVE RELATION person (id BIGINT, city STRING);")
    loom = Loom(spark)
    loom.load(tmp_path / "c.cql")
    with pytest.raises(WindloomError, match="relation 'person' is declared with a column 'city' that its data"):
        loom.relation("person", frame_of(spark, [(1, "x")], "id int, town string"))
    with pytest.raises(WindloomError, match="relation 'person': column 'id' is not of its declared type"):
        loom.relation("person", frame_of(spark, [("1", "x")], "id string, city string"))
    made = loom.relation("person", lambda: people(spark, (1, "x", 2)))
    assert (made.is_retroactive, made.columns["id"]) == (False, DataType.parse("bigint"))
    other = Loom(spark)
    other.load(tmp_path / "c.cql")
    assert other.relation("person", people(spark), retroactive=True).is_retroactive


def test_queries_wait_for_data_and_say_so(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "c.cql").write_text(
        f"CREATE STREAM orders (tick BIGINT, user INT, amount INT) TIME tick UNIT us;"
        f"CREATE RELATION person (id INT, city STRING, age INT); CREATE QUERY q AS {BY_CITY};"
    )
    loom = Loom(spark)
    loom.load(tmp_path / "c.cql")
    assert "Relation person: retroactive" in loom.explain()
    loom.stream("orders", frame_of(spark, [(5, 1, 7)], ORDERS))
    with pytest.raises(WindloomError, match="relation 'person' has no data") as caught:
        loom.run()
    assert caught.value.hint == "give it some: loom.relation('person', df), or --relation person=PATH"


def test_a_function_that_gives_another_schema_stops_the_run(spark: SparkSession) -> None:
    given = [people(spark, (1, "x", 2)), frame_of(spark, [(1, "x")], "id int, town string")]
    loom = Loom(spark)
    loom.stream("orders", frame_of(spark, [(5, 1, 7)], ORDERS), time="tick", unit="us")
    loom.relation("person", lambda: given.pop(0))
    loom.query("q", BY_CITY)
    with pytest.raises(WindloomError, match="relation 'person': its function gives another schema") as caught:
        loom.run()
    assert "column 'city' is missing" in caught.value.detail


def test_a_condition_must_be_one(spark: SparkSession) -> None:
    loom = Loom(spark)
    loom.stream("orders", frame_of(spark, [(5, 1, 7)], ORDERS), time="tick", unit="us")
    loom.relation("person", people(spark), retroactive=False)
    text = "SELECT count(*) FROM orders [TUMBLE 1 second] o LEFT JOIN person p ON o.user + p.id"
    with pytest.raises(WindloomError, match=r"query 'q': the condition .* is not a condition"):
        loom.query("q", text)


# ---- when they are read again ---------------------------------------------------------------------------------------


def write(path: Path, rows: list[tuple[int, str, int]], when: int) -> None:
    columns = dict(zip(("id", "city", "age"), zip(*rows, strict=True), strict=True))
    schema = pa.schema([("id", pa.int32()), ("city", pa.string()), ("age", pa.int32())])
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}, schema), path)
    os.utime(path, (when, when))


def test_files_tell_whether_a_frame_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "person.parquet"
    write(file, [(1, "x", 2)], 1_000_000)

    def current() -> DataFrame:
        return spark.read.schema(PERSON).parquet(str(file)).where("age > 1")

    first = SeenFrame.of(current())
    assert first.is_same(first.frame)
    assert first.is_same(current())
    assert not first.is_same(spark.read.schema(PERSON).parquet(str(file)))
    write(file, [(1, "y", 2)], 1_000_001)
    assert not first.is_same(current())
    made = SeenFrame.of(people(spark, (1, "x", 2)))
    assert made.files is None
    assert not made.is_same(people(spark, (1, "x", 2))), "what only memory holds is read to find out"


def test_a_path_gives_the_same_frame_until_its_files_change(spark: SparkSession, tmp_path: Path) -> None:
    relation = Relation(
        "person", {name: DataType.parse(kind) for name, kind in (column.split() for column in PERSON.split(", "))}
    )
    (tmp_path / "p").mkdir()
    write(tmp_path / "p" / "0.parquet", [(1, "x", 2)], 1_000_000)
    current = RelationFiles(spark, relation, str(tmp_path / "p"))
    first = current()
    assert current() is first
    write(tmp_path / "p" / "1.parquet", [(2, "y", 2)], 1_000_000)
    assert current() is not first
    assert current().count() == 2


# ---- streams --------------------------------------------------------------------------------------------------------


def test_a_live_stream_sees_new_versions_and_goes_on_after_a_stop(spark: SparkSession, tmp_path: Path) -> None:
    """Of both kinds, with a question, a query that is added, and EXPLAIN on the way."""
    versions = {number: people(spark, (1, "x", number), (2, "yz"[number % 2], 30)) for number in range(5)}
    known = {number: people(spark, (1, "", 0)) if number < 2 else people(spark) for number in range(5)}
    now = {"round": 0}

    def start() -> Any:
        loom = Loom(spark)
        source = spark.readStream.schema(ORDERS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "orders"))
        loom.stream("orders", source, time="tick", unit="us")
        loom.relation("person", lambda: versions[now["round"]])
        loom.relation("shop", lambda: known[now["round"]], retroactive=False)
        loom.query("by_city", BY_CITY)
        loom.query("found", FOUND)
        given = {"path": str(tmp_path / "out"), "checkpoint": str(tmp_path / "checkpoint"), "keep": "1 second"}
        return loom.start("parquet", **given)

    def bring(number: int) -> None:
        now["round"] = number
        rows = [{"tick": 10 * number + at, "user": at, "amount": at} for at in (1, 2, 3)]
        put_round(tmp_path / "orders", number, rows, ORDERS)
        handle.process_all_available()

    (tmp_path / "orders").mkdir()
    handle = start()
    bring(0)
    bring(1)
    assert handle.progress.relations["person"]["version"] == 2
    assert "version       2 since round 1, 2 rows" in handle.explain()
    asked = handle.ask(BY_CITY.replace("sum(o.amount) AS spent", "max(p.age) AS oldest"))
    assert rows_of(asked.table) == [(10, "x", 1), (10, "z", 30)]
    added = handle.add("ages", BY_CITY.replace("p.city, sum(o.amount) AS spent", "p.city, sum(p.age) AS ages"))
    assert added.round == 2
    bring(2)
    handle.stop()
    handle = start()  # the version of the last round is read again, and may have changed meanwhile
    bring(3)
    wanted = [(10, "x", 1), (10, "z", 2), (20, "x", 1), (20, "y", 2), (30, "x", 1), (30, "z", 2)]
    assert rows_of(handle.arrow("by_city")) == wanted
    assert rows_of(handle.arrow("found")) == [(10, 1), (20, 1)], "tuples of rounds 2 and 3 met an empty shop"
    ages = rows_of(handle.arrow("ages"))
    assert ages[-2:] == [(30, "x", 3), (30, "z", 30)]
    assert all(age in [(10, "x", 2), (10, "y", 30), (20, "x", 2), (20, "y", 30)] for age in ages[:-2])
    handle.stop()


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Ends of windows as ticks, then everything else."""
    table = table.drop_columns("window_start")
    table = table.set_column(0, "window_end", table["window_end"].cast(pa.int64()))
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_a_checkpoint_knows_its_relations(spark: SparkSession, tmp_path: Path) -> None:
    put_round(tmp_path / "orders", 0, [{"tick": 1, "user": 1, "amount": 1}], ORDERS)

    def start(given: DataFrame, retroactive: bool) -> Any:
        loom = Loom(spark)
        loom.stream("orders", spark.readStream.schema(ORDERS).parquet(str(tmp_path / "orders")), time="tick", unit="us")
        loom.relation("person", given, retroactive=retroactive)
        loom.query("by_city", BY_CITY)
        return loom.start("memory", checkpoint=str(tmp_path / "c"), trigger={"availableNow": True})

    start(people(spark, (1, "x", 2)), True).await_termination(300)
    with pytest.raises(WindloomError, match="the checkpoint belongs to another catalog") as caught:
        start(people(spark, (1, "x", 2)), False)
    assert "relation 'person' is not retroactive here and retroactive in the checkpoint" in caught.value.detail
    with pytest.raises(WindloomError) as caught:
        start(frame_of(spark, [(1, "x")], "id bigint, city string"), True)
    assert "relation 'person': column 'id' is bigint here and int in the checkpoint" in caught.value.detail
