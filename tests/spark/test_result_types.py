"""What our rules say of the type of an expression is what Spark's analyzer says, in every session."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING

import pytest

from windloom.expressions.functions import FUNCTIONS
from windloom.expressions.typing import certain_type
from windloom.language.sql.join_names import expression_type
from windloom.model import DataType, Expression
from windloom.model.expression import ColumnRef, apply

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMES = {
    "tiny": "tinyint",
    "small": "smallint",
    "a": "int",
    "b": "int",
    "c": "bigint",
    "r": "float",
    "x": "double",
    "d": "decimal(10,2)",
    "e": "decimal(18,0)",
    "f": "decimal(5,5)",
    "g": "decimal(38,10)",
    "s": "string",
    "t": "string",
    "p": "boolean",
    "q": "boolean",
    "day": "date",
    "ts": "timestamp",
    "local": "timestamp_ntz",
    "raw": "binary",
    "arr": "array<int>",
}
_COLUMNS = {name: DataType.parse(kind) for name, kind in _NAMES.items()}
_LITERALS = """
    0 1 -7 2147483647 2147483648 -2147483648 12345678901234567890 3L 4S 5Y 1.5 0.05 -2.50 5. .25 1E3 1.5D 2.5F 1BD
    'a' '12' '2024-01-01' NULL TRUE FALSE
""".split()  # noqa: SIM905
_LITERALS += ["DATE '2024-02-29'", "TIMESTAMP '2024-02-29 12:00:00'"]
_SHAPES = """
    {} + {}; {} - {}; {} * {}; {} / {}; {} % {}; {} DIV {}; {} & {}; {} | {}; {} ^ {}; {} || {}; -{}; ~{};
    {} = {}; {} <> {}; {} < {}; {} >= {}; {} <=> {}; {} IS DISTINCT FROM {}; {} IS NULL; {} IS NOT NULL; {} IS TRUE;
    NOT {}; {} AND {}; {} OR {}; {} IN ({}, {}); {} NOT IN ({}); {} BETWEEN {} AND {}; {} LIKE {}; {} NOT ILIKE {};
    {} RLIKE {}; {} LIKE ANY ({}, {}); CASE WHEN {} THEN {} END; CASE WHEN {} THEN {} WHEN {} THEN {} ELSE {} END;
    CASE {} WHEN {} THEN {} ELSE {} END; round({}); round({}, 1); round({}, -1); bround({}, 3); mod({}, {});
    pmod({}, {}); EXTRACT(HOUR FROM {}); EXTRACT(week FROM {}); TRIM({}); TRIM(BOTH {} FROM {}); substring({}, {}, {});
    position({}, {}); CAST({} AS DECIMAL); CAST({} AS DECIMAL(12, 4)); CAST({} AS TIMESTAMP); TRY_CAST({} AS INT);
    CAST({} AS BIGINT); CAST({} AS DOUBLE); CAST({} AS STRING); CAST({} AS DATE); CAST({} AS BOOLEAN);
    TRY_CAST({} AS TIMESTAMP_NTZ); CAST({} AS BINARY); CAST({} AS VARCHAR(3))
""".split(";")  # noqa: SIM905

_SESSIONS = [(ansi, loss) for ansi in ("true", "false") for loss in ("true", "false")]
_A_SELECT = 250
_MOST_CALLS = 20  # of a function with so many arguments


def _leaf(draw: random.Random) -> str:
    return draw.choice(list(_NAMES)) if draw.random() < 0.75 else draw.choice(_LITERALS)


def _expression(draw: random.Random, depth: int) -> str:
    if depth == 0 or draw.random() < 0.1:
        return _leaf(draw)
    if draw.random() < 0.5:
        shape = draw.choice(_SHAPES).strip()
    else:
        holes = draw.choice((1, 1, 1, 2, 2, 3))
        shape = f"{draw.choice(list(FUNCTIONS))}({', '.join(['{}'] * holes)})"
    return shape.format(*(f"({_expression(draw, depth - 1)})" for _ in range(shape.count("{}"))))


def _typed(draw: random.Random, how_many: int, depth: int) -> dict[str, str]:
    """Random expressions to which the rules give a type; most random ones mean nothing, and get none."""
    found: dict[str, str] = {}
    while len(found) < how_many:
        sql = _expression(draw, depth)
        kind = expression_type(Expression(sql), _COLUMNS)
        if kind is not None:
            found[sql] = kind.name
    return found


@contextmanager
def _session(spark: SparkSession, ansi: str, loss: str) -> Iterator[None]:
    wanted = {"spark.sql.ansi.enabled": ansi, "spark.sql.decimalOperations.allowPrecisionLoss": loss}
    before = {name: spark.conf.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def _spark_types(frame: DataFrame, sqls: Sequence[str]) -> list[str]:
    """One analysis for all; where Spark refuses them, halves tell which it is."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    from windloom.spark.errors import quiet

    try:
        with quiet():
            return [kind for _, kind in frame.select(*(F.expr(sql) for sql in sqls)).dtypes]
    except AnalysisException as error:
        if len(sqls) == 1:
            return [f"refused: {error}"]
    middle = len(sqls) // 2
    return _spark_types(frame, sqls[:middle]) + _spark_types(frame, sqls[middle:])


def _assert_as_spark(spark: SparkSession, typed: dict[str, str]) -> None:
    frame = spark.createDataFrame([], ", ".join(f"{name} {kind}" for name, kind in _NAMES.items()))
    sqls = list(typed)
    for ansi, loss in _SESSIONS:
        with _session(spark, ansi, loss):
            parts = [sqls[at : at + _A_SELECT] for at in range(0, len(sqls), _A_SELECT)]
            kinds = [kind for part in parts for kind in _spark_types(frame, part)]
        told = {sql: kind for sql, kind in zip(sqls, kinds, strict=True) if kind != typed[sql]}
        assert not told, {sql: (typed[sql], kind) for sql, kind in told.items()}


@pytest.mark.parametrize(("depth", "how_many"), [(1, 500), (2, 400), (3, 150)])
def test_random_expressions_have_the_types_that_spark_gives_them(
    spark: SparkSession, depth: int, how_many: int
) -> None:
    _assert_as_spark(spark, _typed(random.Random(depth), how_many, depth))


def test_every_function_that_has_a_rule_has_the_type_that_spark_gives_it(spark: SparkSession) -> None:
    typed: dict[str, str] = {}
    draw = random.Random(7)
    for name in FUNCTIONS:
        for holes in (1, 2, 3):
            calls = {}
            for columns in product(_COLUMNS, repeat=holes):
                kind = certain_type(apply(name, *map(ColumnRef, columns)), _COLUMNS)
                if kind is not None:
                    calls[f"{name}({', '.join(columns)})"] = kind.name
            typed.update(draw.sample(sorted(calls.items()), min(len(calls), _MOST_CALLS)))
    assert {sql.split("(")[0] for sql in typed} == set(FUNCTIONS)
    _assert_as_spark(spark, typed)
