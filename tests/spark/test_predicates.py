"""Spark selects the same tuples by the normal form of a predicate as by the predicate itself."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pyspark.sql.functions import current_timestamp, expr

from support.predicates import COLUMNS, GUARDED, Grammar, evaluate, random_row, read
from windloom import Loom
from windloom.spark.native import partials_frame
from windloom.spark.projection import projected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items() if name != "ts")


_DRAWN = random.Random(7)
_ROWS = [random_row(_DRAWN.choice) for _ in range(150)]


def satisfied(spark: SparkSession, asked: list[str]) -> list[list[bool]]:
    """For each predicate, in one job, whether each tuple satisfies it."""
    frame = spark.createDataFrame([tuple(row.values()) for row in _ROWS], _SCHEMA)
    rows = frame.selectExpr(*(f"({each}) IS TRUE" for each in asked)).collect()
    return [list(column) for column in zip(*rows, strict=True)]


def test_normal_forms_of_random_predicates_select_the_same_tuples(spark: SparkSession) -> None:
    grammar = Grammar(random.Random(6).choice)
    written = list(dict.fromkeys(grammar.predicate() for _ in range(200)))
    found = satisfied(spark, [*written, *(read(each).sql for each in written)])
    for each, wanted, normal in zip(written, found, found[len(written) :], strict=False):
        assert normal == wanted, f"{each}  →  {read(each).sql}"
        assert [evaluate(each, row) is True for row in _ROWS] == wanted, each  # so the evaluator is right, too


def test_guards_hold_in_a_projection_of_many_predicates(spark: SparkSession) -> None:
    grammar = Grammar(random.Random(8).choice, guarded=GUARDED)
    drawn = [grammar.predicate() for _ in range(400)]
    written = list(dict.fromkeys(each for each in drawn if GUARDED in each))
    for each, found in zip(written, satisfied(spark, [read(each).guarded_sql for each in written]), strict=True):
        assert found == [evaluate(each, row) is True for row in _ROWS], f"{each}  →  {read(each).guarded_sql}"


def test_predicates_are_evaluated_once_although_tuples_are_left_out_by_them(spark: SparkSession) -> None:
    rng = random.Random(9)
    rows = [random_row(rng.choice) for _ in range(150)]
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], _SCHEMA).withColumn("ts", current_timestamp())
    loom = Loom(spark)
    loom.stream("events", frame, time="ts")
    wheres = ["x > 0.325", "a > 3", "b = 2", "f < 0.5", "q"]
    for number, where in enumerate(wheres):
        loom.query(f"q{number}", f"SELECT max(b) AS m FROM events [TUMBLE 1 hour] WHERE {where}")
    wanted = sum(any(evaluate(where, row) is True for where in wheres) for row in rows)
    for intake, make in (("native", partials_frame), ("woven", projected)):
        (scan,) = loom.plan(intake=intake).scans
        assert scan.signature.only_signed
        made = make(scan, loom.streams["events"], frame)  # type: ignore[operator]
        assert made._jdf.queryExecution().optimizedPlan().toString().count("0.325") == 1
        found = made.agg(expr("sum(c0)" if intake == "native" else "count(*)")).first()
        assert found is not None
        assert found[0] == wanted < len(rows)
