"""Frames in and out: types of expressions on a stream, Arrow answers as frames, expressions over aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windloom.errors import WindloomError
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.plan.physical import Shape


def column_types(frame: DataFrame) -> dict[str, DataType]:
    return {name: DataType.parse(kind) for name, kind in frame.dtypes}


def empty_frame(spark: SparkSession, stream: Stream) -> DataFrame:
    """A frame with a declared stream's columns and no rows, to ask Spark about types."""
    fields = ", ".join(f"{_quoted(name)} {kind.name}" for name, kind in stream.columns.items())
    return spark.createDataFrame([], fields)


def expression_types(frame: DataFrame, expressions: Iterable[Expression]) -> dict[str, DataType]:
    """Types of expressions by their SQL, from Spark's analyzer; refuses what Spark refuses or cannot repeat."""
    wanted = list(dict.fromkeys(expressions))
    if not wanted:
        return {}
    try:
        analyzed = frame.select(*(F.expr(one.sql).alias(f"x{i}") for i, one in enumerate(wanted)))
        kinds = [kind for _, kind in analyzed.dtypes]
    except AnalysisException as error:
        if len(wanted) > 1:
            return {sql: kind for one in wanted for sql, kind in expression_types(frame, [one]).items()}
        raise WindloomError(
            f"Spark cannot evaluate '{wanted[0]}'", str(error).strip().split("\n", 1)[0], "correct the expression"
        ) from None
    _refuse_nondeterministic(analyzed, wanted)
    return {one.sql: DataType.parse(kind) for one, kind in zip(wanted, kinds, strict=True)}


def _refuse_nondeterministic(analyzed: DataFrame, wanted: list[Expression]) -> None:
    try:
        columns = analyzed._jdf.queryExecution().analyzed().expressions()
        flags = [bool(columns.apply(i).deterministic()) for i in range(len(wanted))]
    except Exception:  # a remote session cannot be asked; the language refuses the functions it knows by name
        return
    for one, deterministic in zip(wanted, flags, strict=True):
        if not deterministic:
            raise WindloomError(
                f"'{one}' gives another value every time it is evaluated",
                "an answer must not depend on when or how often a tuple is read",
                "compute it once, into a column of the stream",
            )


def ddl_of(shape: Shape, *, with_query: bool = False) -> str:
    """The step's columns of a shape as a Spark schema."""
    fields = [("window_start", shape.time), ("window_end", shape.time), *shape.groups, *shape.columns]
    names = ["query string"] if with_query else []
    names += [f"{_quoted(name)} {kind.name}" for name, kind in fields]
    return ", ".join(names)


def arrow_frame(spark: SparkSession, table: pa.Table, ddl: str) -> DataFrame:
    """A frame of an Arrow table; the schema is given, so that no setting of the session changes it."""
    data: Any = table
    return spark.createDataFrame(data, schema=ddl)


def finish(frame: DataFrame, shape: Shape, keep: tuple[str, ...] = ()) -> DataFrame:
    """HAVING and expressions over aggregates, by Spark itself; `keep` names further columns to carry along."""
    if shape.having is not None:
        frame = frame.where(shape.having)
    if shape.select is None:
        names = [name for name, _ in shape.groups + shape.columns]
        return frame.select(*(F.col(_quoted(name)) for name in [*keep, "window_start", "window_end", *names]))
    computed = [F.expr(sql).alias(name) for name, sql in shape.select]
    return frame.select(*keep, "window_start", "window_end", *computed)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def output_types(spark: SparkSession, shape: Shape) -> Mapping[str, str]:
    """Names and Spark types of a shape's answer columns, expressions over aggregates included."""
    empty = spark.createDataFrame([], ddl_of(shape))
    return dict(finish(empty, shape).dtypes)
