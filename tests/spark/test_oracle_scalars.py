"""The oracle's reading of scalar expressions is Spark's."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from support.frames import frame_of
from support.join_catalogs import COLUMNS, random_row
from windloom_tools.oracle.scalars import scalar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPRESSIONS = [
    "i + n", "i - n * 2", "-i", "- (i + 1)", "i * i - i", "x * i", "x + d", "d * d", "d + i", "d - 1.5", "i / 2",
    "n / i",
    "i % 3", "n % 3", "i DIV 2", "x + 1E2", "x * 2D", "abs(n)", "i = 1", "i <> 1", "f = f", "z > 1e300", "z >= z",
    "f < 1.0D", "f <= f", "k < 'b'", "k = 'a' OR b", "k = 'a' AND b", "NOT b", "b IS NULL", "b IS NOT NULL",
    "b IS TRUE",
    "b IS NOT FALSE", "i IS DISTINCT FROM 1", "i <=> NULL", "f <=> f", "k IN ('a', 'b')", "k NOT IN ('a', NULL)",
    "i IN (1, 2, NULL)", "i BETWEEN 0 AND 2", "i NOT BETWEEN 0 AND 2", "k LIKE 'a%'", "k NOT LIKE '_'", "k || 'x'",
    "CASE WHEN b THEN i ELSE n END", "CASE WHEN b THEN x END", "CASE i WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE k END",
    "coalesce(i, n, 0)", "if(b, i, -1)", "nullif(i, 1)", "greatest(i, n, 2)", "least(x, z)", "upper(k)", "length(k)",
    "CAST(i AS DOUBLE) * x", "CAST(i AS DECIMAL(12,2)) + d", "CAST(d AS DOUBLE)", "CAST(i AS BIGINT) * n", "NULL",
    "CAST(NULL AS BOOLEAN)", "i > 0 AND (b OR x IS NULL) AND NOT k = 'c'", "isnan(z)", "isnotnull(i)",
    "DATE '2024-01-02'",
]  # fmt: skip


def test_scalars_are_evaluated_as_spark_does(spark: SparkSession) -> None:
    rng = random.Random(3)
    rows = [random_row(rng.choice, tick) for tick in range(60)]
    # Spark refuses to divide by zero, and the oracle does not say what then happens.
    rows = [{**row, "i": 1 if row["i"] == 0 else row["i"]} for row in rows]
    frame = frame_of(spark, [tuple(row.values()) for row in rows], ", ".join(f"{n} {t}" for n, t in COLUMNS.items()))
    wanted = frame.orderBy("tick").selectExpr(*(f"{sql} AS c{i}" for i, sql in enumerate(EXPRESSIONS))).toArrow()
    for sql, column in zip(EXPRESSIONS, wanted.columns, strict=True):
        for row, value in zip(rows, column.to_pylist(), strict=True):
            assert _same(scalar(sql)(row), value), (sql, row, scalar(sql)(row), value)


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, Decimal) or isinstance(theirs, Decimal):
        return ours is not None and theirs is not None and ours == theirs
    return type(ours) is type(theirs) and (ours == theirs or (ours != ours and theirs != theirs))
