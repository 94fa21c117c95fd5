"""Expressions over aggregates: the evaluator may decline, but never differs from Spark, in value or in type."""

from __future__ import annotations

import os

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from support.expressions import KINDS, Drawn, Grammar, evaluated, nasty_rows, read, same
from windloom.plan.expressions import NotKnownError
from windloom.rounds.evaluate import DeclinedError
from windloom.spark.frames import arrow_frame

_ROWS = 64
_AT_ONCE = 40
_EXAMPLES = int(os.environ.get("WINDLOOM_EXPRESSIONS", "6"))


def _frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return arrow_frame(spark, table, "row int, " + ", ".join(f"{name} {kind}" for name, kind in KINDS.items()))


def _accepted(drawn: Drawn, table: pa.Table) -> dict[int, object]:
    """Values by row, of rows for which the evaluator does not decline."""
    found: dict[int, object] = {}
    for row in range(table.num_rows):
        try:
            found[row] = evaluated(drawn.node, table.slice(row, 1))[0].as_py()
        except (DeclinedError, pa.ArrowInvalid):
            continue
    return found


def _check_together(drawn: Drawn, table: pa.Table, alone: dict[int, object]) -> None:
    """Rows that were evaluated one by one give the same together, unless they are declined together."""
    try:
        together = evaluated(drawn.node, table.take(pa.array(alone, pa.int32())))
    except (DeclinedError, pa.ArrowInvalid):
        return
    for row, value in zip(alone, together.to_pylist(), strict=True):
        assert same(value, alone[row]), (drawn.text, table.slice(row, 1).to_pylist())


def _check(frame: DataFrame, table: pa.Table, expressions: list[Drawn]) -> None:
    analyzed = frame.select(*(F.expr(one.sql).alias(f"x{i}") for i, one in enumerate(expressions)))
    kinds = [kind for _, kind in analyzed.dtypes]
    for one, kind in zip(expressions, kinds, strict=True):
        assert one.node.kind.name == kind, one.text
    accepted = [_accepted(one, table) for one in expressions]
    asked = [
        F.expr(f"CASE WHEN row IN ({', '.join(map(str, rows)) or '-1'}) THEN ({one.sql}) END").alias(f"x{i}")
        for i, (one, rows) in enumerate(zip(expressions, accepted, strict=True))
    ]
    answers = frame.select("row", *asked).toArrow()
    answers = answers.take(pa.compute.sort_indices(answers["row"]))
    for i, (one, rows) in enumerate(zip(expressions, accepted, strict=True)):
        told = answers[f"x{i}"].to_pylist()
        for row, value in rows.items():
            where = (one.text, table.slice(row, 1).to_pylist(), value, told[row])
            assert same(value, told[row]), where
        _check_together(one, table, rows)


@st.composite
def expressions(draw: st.DrawFn) -> list[Drawn]:
    """Some that are known; of those that are not, nothing can be said."""
    grammar = Grammar(draw(st.randoms(use_true_random=False)).choice)
    found: list[Drawn] = []
    while len(found) < _AT_ONCE:
        try:
            found.append(read(grammar.expression(draw(st.integers(1, 3)))))
        except NotKnownError:
            continue
    return found


def test_random_expressions_give_what_spark_gives(spark: SparkSession) -> None:
    table = nasty_rows(_ROWS)
    frame = _frame(spark, table).cache()

    @settings(max_examples=_EXAMPLES, deadline=None)
    @given(expressions())
    def check(drawn: list[Drawn]) -> None:
        _check(frame, table, drawn)

    try:
        check()
    finally:
        frame.unpersist()
