"""Frames: watermarks, types of expressions on a stream, Arrow answers as frames, unions, HAVING and SELECT by Spark.

Frames with different columns are united in slots: these are named by type, so that the union is only as wide as its
widest part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windloom.aggregates.equivalents import near_functions
from windloom.errors import WindloomError, meant
from windloom.explain.words import spelled_out
from windloom.model.clauses import ADDED_COLUMNS, WINDOW_EDGES, SortKey
from windloom.model.expression import Expression
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.types import TIMESTAMP, DataType, TypeKind
from windloom.plan.plan import Shape
from windloom.spark.errors import first_line, quiet

#: The types of conditions; NULL is a condition that is never satisfied.
CONDITIONS = (TypeKind.BOOLEAN, TypeKind.NULL)

#: Settings that change the type of an expression for which we have a rule.
_TYPE_SETTINGS = (
    "spark.sql.timestampType",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled",
    "spark.sql.legacy.integralDivide.returnBigint",
    "spark.sql.legacy.literal.pickMinimumPrecision",
)
#: Settings that change the meaning of expressions, and the values under which expressions have their usual meaning.
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
}
#: Spark's key for the delay, in milliseconds, in the metadata of a column; columns keep it when they are renamed.
_WATERMARK_DELAY = "spark.watermarkDelayMs"
_PLACEHOLDER = re.compile(r"\b(?:__[ag]\d+|window_start|window_end)\b")


def column_types(frame: DataFrame) -> dict[str, DataType]:
    return {name: DataType.parse(kind) for name, kind in frame.dtypes}


def empty_frame(spark: SparkSession, stream: Stream) -> DataFrame:
    """Return a frame with the columns of a declared stream and no rows, to ask Spark about types."""
    return spark.createDataFrame([], ddl_of_columns({name: kind.name for name, kind in stream.columns.items()}))


def watermarked_columns(frame: DataFrame) -> dict[str, int]:
    """Return the delays, in ticks, of the columns of a streaming frame that have a watermark."""
    if not frame.isStreaming:  # Spark ignores watermarks of batch data
        return {}
    return {
        field.name: _ticks(field.metadata[_WATERMARK_DELAY])
        for field in frame.schema.fields
        if _WATERMARK_DELAY in (field.metadata or {})
    }


def watermarks_in(frame: DataFrame) -> list[tuple[str, int]]:
    """Return every `withWatermark` from which a frame was made: its column, as it was then called, and its delay.

    A remote session does not show them: then only those that columns still have are returned.
    """
    if not hasattr(frame, "_jdf"):
        return list(watermarked_columns(frame).items())
    jvm: Any = frame.sparkSession._jvm
    milliseconds = jvm.org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark.getDelayMs
    nodes = _watermark_nodes(frame._jdf.queryExecution().analyzed())
    return [(str(node.eventTime().name()), _ticks(milliseconds(node.delay()))) for node in nodes]


def _watermark_nodes(plan: Any) -> Iterator[Any]:
    if plan.nodeName() == "EventTimeWatermark":
        yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _watermark_nodes(children.apply(number))


def _ticks(milliseconds: int) -> int:
    return int(milliseconds) * TICKS_PER_SECOND // 1_000


def expression_types(
    frame: DataFrame, expressions: Iterable[Expression], *, one_by_one: bool = True
) -> dict[str, DataType]:
    """Return the types of expressions by their SQL, from Spark's analyzer.

    Raises for expressions that Spark rejects, or whose values it cannot repeat. One analysis asks for all; if it fails,
    expressions are asked for one by one, to name the one that Spark rejects.
    """
    wanted = list(dict.fromkeys(expressions))
    if not wanted:
        return {}
    try:
        with quiet():
            analyzed = frame.select(*(F.expr(expression.sql).alias(f"x{i}") for i, expression in enumerate(wanted)))
            kinds = [kind for _, kind in analyzed.dtypes]
    except AnalysisException as error:
        if len(wanted) > 1 and one_by_one:
            return {sql: kind for expression in wanted for sql, kind in expression_types(frame, [expression]).items()}
        hint = _hint(frame.sparkSession, error) if one_by_one else "correct it"
        raise WindloomError(f"Spark cannot evaluate '{wanted[0]}'", first_line(error), hint) from None
    try:
        columns = analyzed._jdf.queryExecution().analyzed().expressions()
        flags = [bool(columns.apply(i).deterministic()) for i in range(len(wanted))]
    except Exception:  # a remote session does not show it; the parser refuses such functions by name
        flags = [True] * len(wanted)
    if not all(flags):
        raise WindloomError(
            f"'{wanted[flags.index(False)]}' gives another value every time it is evaluated",
            "an answer must not depend on when or how often a tuple is read",
            "compute it once, into a column of the stream",
        )
    return {expression.sql: DataType.parse(kind) for expression, kind in zip(wanted, kinds, strict=True)}


def _hint(spark: SparkSession, error: AnalysisException) -> str:
    """Return what to do about an expression that Spark rejects."""
    if error.getCondition() != "UNRESOLVED_ROUTINE":
        return "correct the expression, or cast the columns in it"
    parameters = error.getMessageParameters() or {}
    name = str(parameters.get("routineName", "")).split(".")[-1].strip("`")
    # Only here: executors, which import this module, need no parser.
    from windloom.language.sql.syntax import why_refused

    known = [str(row[0]) for row in spark.sql("SHOW FUNCTIONS").collect()]
    close = near_functions(name, (each for each in known if why_refused(each, 1) is None))
    return meant(close) if close else "Spark knows no function of that name; use the functions of Spark SQL"


def has_usual_types(spark: SparkSession) -> bool:
    """Return whether the session gives expressions the same types as our own rules."""
    try:
        registered = spark._jsparkSession.sessionState().catalog().listTemporaryFunctions().size()
    except Exception:  # a remote session does not show it
        return False
    # A function that the user has registered may hide a function of Spark.
    return not registered and all(spark.conf.get(name, None) is None for name in _TYPE_SETTINGS)


@dataclass(frozen=True, slots=True)
class OutputsOfTypes:
    """The expressions of a query over its groupings and aggregates, and the types of these."""

    query: Query
    groups: list[DataType]
    aggregates: list[DataType]
    time: DataType = TIMESTAMP  # of the edges of windows

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for queries that differ only in their windows."""
        return self.query.outputs, self.query.having, self.time, *self.groups, *self.aggregates

    @property
    def columns(self) -> dict[str, DataType]:
        groups = {f"__g{i}": kind for i, kind in enumerate(self.groups)}
        aggregates = {f"__a{i}": kind for i, kind in enumerate(self.aggregates)}
        return groups | aggregates | dict.fromkeys(WINDOW_EDGES, self.time)

    @property
    def expressions(self) -> list[Expression]:
        """All expressions; the condition of HAVING, if there is one, is the last."""
        expressions = [output.expression for output in self.query.outputs if output.expression is not None]
        return expressions if self.query.having is None else [*expressions, self.query.having]


def check_outputs(spark: SparkSession, outputs: OutputsOfTypes) -> None:
    """Raise if Spark rejects expressions over aggregates, given the types of the groupings and aggregates."""
    query = outputs.query
    frame = spark.createDataFrame([], ddl_of_columns({name: kind.name for name, kind in outputs.columns.items()}))
    try:
        types = expression_types(frame, outputs.expressions)
    except WindloomError as error:
        message, detail = spelled_out(query, error.message), spelled_out(query, error.detail)
        raise WindloomError(message, detail, error.hint) from None
    if query.having is not None and (kind := types[query.having.sql]).kind not in CONDITIONS:
        raise WindloomError(
            f"the HAVING condition '{spelled_out(query, query.having.sql)}' is not a condition",
            f"it is of type {kind}",
            "compare it with something",
        )


def can_evaluate(spark: SparkSession, wanted: Iterable[OutputsOfTypes]) -> bool:
    """Return whether `check_outputs` would accept all of these; one analysis asks for all."""
    columns: dict[str, str] = {}
    renamed: list[Expression] = []
    conditions: list[str] = []
    for number, outputs in enumerate(wanted):
        columns |= {f"__{number}{name}": kind.name for name, kind in outputs.columns.items()}
        texts = [_PLACEHOLDER.sub(rf"__{number}\g<0>", expression.sql) for expression in outputs.expressions]
        renamed += [Expression(text) for text in texts]
        conditions += texts[-1:] if outputs.query.having is not None else []
    frame = spark.createDataFrame([], ddl_of_columns(columns))
    try:
        types = expression_types(frame, renamed, one_by_one=False)
    except WindloomError:
        return False
    return all(types[sql].kind in CONDITIONS for sql in conditions)


def ddl_of(shape: Shape, *, with_query: bool = False) -> str:
    """Return the columns that the step makes for a shape, as a Spark schema."""
    fields = [("window_start", shape.time), ("window_end", shape.time), *shape.groups, *shape.columns]
    ddl = ", ".join(f"{quoted(name)} {kind.name}" for name, kind in fields)  # names may be there twice
    return f"query string, {ddl}" if with_query else ddl


def ddl_of_columns(columns: Mapping[str, str]) -> str:
    """Return names and Spark types as a Spark schema."""
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())


def arrow_frame(spark: SparkSession, table: pa.Table, ddl: str | StructType) -> DataFrame:
    """Return an Arrow table as a frame; the schema is given, so that no setting of the session changes it."""
    data: Any = table
    return spark.createDataFrame(data, schema=ddl)


def finish(frame: DataFrame, shape: Shape, keep: tuple[str, ...] = ()) -> DataFrame:
    """Apply HAVING and expressions over aggregates with Spark itself; `keep` names further columns to keep."""
    if shape.having is not None:
        frame = frame.where(shape.having.sql)
    if shape.select is None:
        names = [name for name, _ in shape.groups + shape.columns]
        return frame.select(*(F.col(quoted(name)) for name in [*keep, "window_start", "window_end", *names]))
    computed = [F.expr(expression.sql).alias(name) for name, expression in shape.select]
    return frame.select(*keep, "window_start", "window_end", *computed)


def presented_frame(rows: DataFrame, query: Query) -> DataFrame:
    """Return the rows of a query with the columns and in the order that its text asks for."""
    presentation = query.presentation
    if presentation.order:
        rows = rows.orderBy(*map(_sorted_by, presentation.order))
    if presentation.columns is None:
        return rows
    window = F.struct(*(F.col(edge).alias(name) for edge, name in zip(WINDOW_EDGES, ("start", "end"), strict=True)))
    columns = [
        (window if shown.column is None else F.col(quoted(shown.column))).alias(shown.name)
        for shown in presentation.columns
    ]
    return rows.select(*columns, *ADDED_COLUMNS.get(query.emission.kind, ()))


def _sorted_by(key: SortKey) -> Column:
    column = F.col(quoted(key.column))
    if key.is_descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def quoted(name: str) -> str:
    """Return a column as Spark SQL names it."""
    return "`" + name.replace("`", "``") + "`"


def slot_names(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return a slot for each type name: the type and a running number among columns of that type.

    >>> slot_names(["bigint", "decimal(10,2)", "bigint", "array<int>"])
    ('bigint__0', 'decimal_10_2__0', 'bigint__1', 'array_int__0')
    """
    used: dict[str, int] = {}
    names = []
    for kind in kinds:
        number = used[kind] = used.get(kind, -1) + 1
        words = "_".join(re.findall(r"\w+", kind))
        names.append(f"{words}__{number}")
    return tuple(names)


def union_all(frames: Sequence[DataFrame]) -> DataFrame:
    """Return all rows of frames with the same columns; by halves, as Spark analyses the inputs of each union again."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return union_all(frames[:half]).unionAll(union_all(frames[half:]))


def unite(frames: Sequence[DataFrame], tag: str) -> tuple[DataFrame, list[tuple[str, ...]]]:
    """Return all rows of frames with different columns, and the slots of each frame; `tag` is the frame's number."""
    slots = [slot_names(kind for _, kind in frame.dtypes) for frame in frames]
    kinds: dict[str, str] = {}
    for frame, own in zip(frames, slots, strict=True):
        kinds.update(zip(own, (kind for _, kind in frame.dtypes), strict=True))
    aligned = []
    for number, (frame, own) in enumerate(zip(frames, slots, strict=True)):
        nulls = {slot: F.lit(None).cast(kind).alias(slot) for slot, kind in kinds.items() if slot not in own}
        columns = (nulls.get(slot, F.col(slot)) for slot in sorted(kinds))
        aligned.append(frame.toDF(*own).select(F.lit(number).alias(tag), *columns))
    return union_all(aligned), slots


def session_zone(spark: SparkSession) -> str:
    """Return the zone in which the session shows instants."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def has_usual_meaning(spark: SparkSession) -> bool:
    """Return whether expressions mean in this session what they mean in Spark by default."""
    return all(str(spark.conf.get(name, usual)).lower() == usual for name, usual in _MEANING.items())


def finish_together(
    spark: SparkSession, parts: Sequence[tuple[Shape, pa.Table]], *, with_query: bool = False
) -> list[pa.Table]:
    """Return the finished rows of each table, from one Spark job for all; `with_query`: the first column is `query`."""
    keep = ("query",) if with_query else ()
    frames = [
        finish(arrow_frame(spark, table, ddl_of(shape, with_query=with_query)), shape, keep) for shape, table in parts
    ]
    if len(frames) == 1:
        return [frames[0].toArrow()]
    united, slots = unite(frames, "part")
    rows = united.toArrow()
    return [
        rows.filter(pc.equal(rows["part"], number)).select(list(slots[number])).rename_columns(frame.columns)
        for number, frame in enumerate(frames)
    ]
