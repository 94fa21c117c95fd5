"""Makes a stream from a DataFrame and its declaration by the caller or a catalog; each mistake has its own error."""

from __future__ import annotations

import math
from datetime import timedelta

from windloom.errors import WindloomError, near_names
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.model.time import INTEGER_UNITS, format_duration, parse_duration
from windloom.model.types import DataType, TypeKind
from windloom.spark.api import DataFrame
from windloom.spark.frames import column_types, columns_of_one_name

_INSTANTS = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ)
_TIME_KINDS = (*_INSTANTS, TypeKind.DATE, TypeKind.STRING, TypeKind.INTEGER)


def make_stream(
    name: str,
    frame: DataFrame,
    declared: Stream | None,
    time: str | None,
    delay: str | timedelta | None,
    unit: str | None,
    rate: float | None,
) -> tuple[Stream, DataFrame]:
    """Return the stream, and its frame with the declared columns; the caller's arguments override the declaration."""
    _check_arguments(name, frame, time, rate)
    check_columns(f"stream '{name}'", frame, declared)
    if declared is not None:
        frame = match_declaration(declared, frame)
    columns = column_types(frame)
    column = _time_column(name, columns, time, declared)
    if declared is not None:
        if unit is None and column.lower() == declared.time.lower():
            unit = declared.time_unit
        rate = declared.events_per_second if rate is None else rate
    _check_time(name, column, columns[column], unit)
    delay_ticks = _delay(name, delay) if delay is not None else (declared.delay_ticks if declared else 0)
    return Stream(name, columns, column, delay_ticks, unit, rate), frame


def _delay(name: str, delay: str | timedelta) -> int:
    try:
        ticks = parse_duration(delay)
    except WindloomError as error:
        raise WindloomError(f"stream '{name}', its delay: {error.message}", error.detail, error.hint) from None
    if ticks < 0:
        raise WindloomError(
            f"stream '{name}': the delay cannot be negative",
            f"it is {format_duration(ticks)}",
            "for example delay='10 seconds'",
        )
    return ticks


def _check_arguments(name: str, frame: DataFrame, time: str | None, rate: float | None) -> None:
    if not name or not isinstance(name, str):
        raise WindloomError("a stream needs a name", f"it was given {name!r}", "loom.stream('trades', df, time='ts')")
    if not isinstance(frame, DataFrame):
        raise WindloomError(
            f"stream '{name}' needs a Spark DataFrame",
            f"it was given a {type(frame).__module__}.{type(frame).__qualname__}",
            "for example spark.read.parquet(path), or spark.createDataFrame(…)",
        )
    if time is not None and not isinstance(time, str):
        raise WindloomError(
            f"stream '{name}': the event time is given by the name of a column",
            f"it was given a {type(time).__qualname__}",
            "for example time='ts'; compute it with df.withColumn(…) first",
        )
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
    if rate is not None and not (is_number and math.isfinite(rate) and rate > 0):
        raise WindloomError(
            f"stream '{name}': the rate must be a positive number",
            f"it is {rate!r}",
            "give tuples per second: rate=1000",
        )


def _time_column(name: str, columns: dict[str, DataType], time: str | None, declared: Stream | None) -> str:
    """Return the time column, as it is spelled in the data."""
    time = time or (declared.time if declared else None)
    listed = f"its {'declared ' if declared else ''}columns are {', '.join(columns)}"
    if not time:
        likely = next((column for column, kind in columns.items() if kind.kind in _INSTANTS), "ts")
        raise WindloomError(f"stream '{name}' has no event time", listed, f"say which it is, such as time='{likely}'")
    column = Stream(name, columns).find_column(time)
    if column is None:
        raise WindloomError(f"stream '{name}' has no column '{time}'", listed, near_names(time, list(columns)))
    return column


def _check_time(stream: str, column: str, kind: DataType, unit: str | None) -> None:
    if kind.kind not in _TIME_KINDS:
        raise WindloomError(
            f"stream '{stream}': column '{column}' cannot be event time",
            f"it is of type {kind}",
            "use a timestamp column, or an integer column with unit='ms'",
        )
    if unit is not None and unit not in INTEGER_UNITS:
        raise WindloomError(
            f"stream '{stream}': unknown time unit '{unit}'",
            f"column '{column}' is of type {kind}",
            "use 's', 'ms' or 'us'",
        )
    if kind.kind is TypeKind.INTEGER and unit is None:
        raise WindloomError(
            f"stream '{stream}': the unit of column '{column}' is not known",
            f"it is of type {kind}: seconds, milliseconds or microseconds since 1970",
            "say which: unit='s', unit='ms' or unit='us'",
        )
    if kind.kind is not TypeKind.INTEGER and unit is not None:
        raise WindloomError(
            f"stream '{stream}': unit='{unit}' is for integer times",
            f"column '{column}' is of type {kind}",
            "leave it out",
        )


def check_columns(title: str, frame: DataFrame, declared: Stream | None) -> None:
    """Raise if the data has two columns of one name; of declared data, only the declared columns matter."""
    for names in columns_of_one_name(frame):
        if declared is None or declared.find_column(names[0]) is not None:
            first, second = names[:2]
            why = "names are compared without case" if first != second else "they have one name"
            raise WindloomError(
                f"{title}: a query cannot tell its columns '{first}' and '{second}' apart",
                f"{why}; its columns are {', '.join(frame.columns)}",
                "rename one of them, or leave it out, before it is registered: df.toDF(…), df.select(…)",
            )


def match_declaration(declared: Stream, frame: DataFrame) -> DataFrame:
    """Return the frame with the declared columns; numbers are widened to the declared type."""
    columns = column_types(frame)
    actual = Stream(declared.name, columns)
    chosen = []
    for name, kind in declared.columns.items():
        column = actual.find_column(name)
        if column is None:
            raise WindloomError(
                f"{declared.title} is declared with a column '{name}' that its data does not have",
                f"the columns of the data are {', '.join(columns)}",
                near_names(name, list(columns)),
            )
        quoted = Expression.of_column(column).sql
        if columns[column] == kind or kind.kind is TypeKind.OTHER:
            chosen.append(quoted)
        elif _widens(columns[column], kind):
            chosen.append(f"CAST({quoted} AS {kind}) AS {quoted}")
        else:
            raise WindloomError(
                f"{declared.title}: column '{name}' is not of its declared type",
                f"it is declared {kind}, and its data is {columns[column]}",
                f"declare it {columns[column]}, or cast the data",
            )
    return frame.selectExpr(*chosen)


def _widens(actual: DataType, declared: DataType) -> bool:
    if actual.kind is TypeKind.INTEGER and declared.kind is TypeKind.INTEGER:
        return actual.bits <= declared.bits
    return declared.name == "double" and (
        actual.name == "float" or (actual.kind is TypeKind.INTEGER and actual.bits <= 32)
    )
