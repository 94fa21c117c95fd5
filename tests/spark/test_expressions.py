"""Expressions over aggregates: the evaluator may decline, but never differs from Spark, in value or in type."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from support.expressions import KINDS, Drawn, Grammar, evaluated, nasty_rows, read, same
from windloom.expressions.arithmetic import DeclinedError
from windloom.expressions.types import NotKnownError
from windloom.spark.frames import arrow_frame

TABLE = nasty_rows(64)
_AT_ONCE = 60
_EXAMPLES = int(os.environ.get("WINDLOOM_EXPRESSIONS", "6"))


def _frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return arrow_frame(spark, table, "row int, " + ", ".join(f"{name} {kind}" for name, kind in KINDS.items()))


def _accepted(drawn: Drawn, table: pa.Table) -> dict[int, object]:
    """Values by row, of rows for which the evaluator does not decline."""
    with suppress(DeclinedError, pa.ArrowInvalid):
        return dict(enumerate(evaluated(drawn.node, table).to_pylist()))
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


def _in_order(frame: DataFrame) -> pa.Table:
    answers = frame.toArrow()
    return answers.take(pa.compute.sort_indices(answers["row"]))


def _check(frame: DataFrame, table: pa.Table, expressions: list[Drawn]) -> None:
    analyzed = frame.select(*(F.expr(expression.sql).alias(f"x{i}") for i, expression in enumerate(expressions)))
    kinds = [kind for _, kind in analyzed.dtypes]
    for expression, kind in zip(expressions, kinds, strict=True):
        assert expression.node.kind.name == kind, expression.text
    accepted = [_accepted(expression, table) for expression in expressions]
    asked = [
        F.expr(f"CASE WHEN row IN ({', '.join(map(str, rows)) or '-1'}) THEN ({expression.sql}) END").alias(f"x{i}")
        for i, (expression, rows) in enumerate(zip(expressions, accepted, strict=True))
    ]
    answers = _in_order(frame.select("row", *asked))
    for i, (expression, rows) in enumerate(zip(expressions, accepted, strict=True)):
        told = answers[f"x{i}"].to_pylist()
        if not all(same(value, told[row]) for row, value in rows.items()):
            # Of expressions that differ in the order of operands only, Spark evaluates one for all.
            told = _in_order(frame.select("row", asked[i]))[f"x{i}"].to_pylist()
        for row, value in rows.items():
            where = (expression.text, table.slice(row, 1).to_pylist(), value, told[row])
            assert same(value, told[row]), where
        _check_together(expression, table, rows)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    # Spark multiplies the constants of `2147483647 * x * 2147483647` with each other first, and always overflows.
    rules = "spark.sql.optimizer.excludedRules"
    spark.conf.set(rules, "org.apache.spark.sql.catalyst.optimizer.ReorderAssociativeOperator")
    cached = _frame(spark, TABLE).cache()
    yield cached
    cached.unpersist()
    spark.conf.unset(rules)


def test_operators_give_what_spark_gives_on_every_pair_of_types(frame: DataFrame) -> None:
    texts = [
        f"max({left}) {op} max({right})"
        for op in ("+", "-", "*", "/", "%", "DIV", "=", "<")
        for left in "yilfgcdew"
        for right in "jmhgcdew"
    ]
    _check_known(frame, texts, least=400)


def test_functions_and_casts_give_what_spark_gives_on_every_type(frame: DataFrame) -> None:
    names = ["abs", "negative", "round", "floor", "ceil", "sqrt", "isnan", "isnull"]
    texts = [f"{function}(max({name}))" for function in names for name in "yilfgcdew"]
    texts += [f"round(max({name}), {digits})" for digits in (1, 2, 7) for name in "ilfgcdew"]
    kinds = ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,10)"]
    texts += [f"CAST(max({name}) AS {kind})" for kind in kinds for name in "yilfgcdew"]
    pairs = [(left, right) for left in "ilfgcew" for right in "jhgde"] + [("s", "u"), ("p", "p"), ("t", "t")]
    for function in ("coalesce", "nullif", "greatest", "least", "try_divide"):
        texts += [f"{function}(max({left}), max({right}))" for left, right in pairs]
    _check_known(frame, texts, least=250)


def _check_known(frame: DataFrame, texts: list[str], least: int) -> None:
    """Those of the expressions that are known, many by one Spark job; `least` so many are."""
    known = []
    for text in texts:
        with suppress(NotKnownError):
            known.append(read(text))
    assert len(known) >= least
    for first in range(0, len(known), _AT_ONCE):
        _check(frame, TABLE, known[first : first + _AT_ONCE])


@settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
@example(seed=98745)  # constants on both sides of a column
def test_random_expressions_give_what_spark_gives(frame: DataFrame, seed: int) -> None:
    draw = random.Random(seed)
    grammar = Grammar(draw.choice)
    found: list[Drawn] = []
    while len(found) < _AT_ONCE:
        with suppress(NotKnownError):
            found.append(read(grammar.expression(draw.randint(1, 3))))
    _check(frame, TABLE, found)
