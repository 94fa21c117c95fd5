"""Makes streams and queries from what callers and catalogs declare; each mistake has its own error."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from windloom.errors import WindloomError, WindloomWarning, near_names
from windloom.model.clauses import USUAL_PRIORITY, Urgency
from windloom.model.expression import Expression
from windloom.model.stream import Relation, Stream
from windloom.model.time import INTEGER_UNITS, parse_duration, spoken_duration
from windloom.model.types import DataType, TypeKind
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import column_types, watermarked_columns, watermarks_in
from windloom.spark.sources.read import files_in, find_format, find_source

_INSTANTS = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ)
_TIME_KINDS = (*_INSTANTS, TypeKind.DATE, TypeKind.STRING, TypeKind.INTEGER)
_OPTIONS = re.compile(r"\s*(WITHIN|PRIORITY)\b", re.IGNORECASE)


def read_stream(spark: SparkSession, name: str, path: str | Path, known: Mapping[str, Stream]) -> DataFrame:
    """Return the file or directory as the data of a stream; text needs the types that a loaded catalog declares."""
    declared, place = known.get(name), Path(path)
    files = files_in(place) if place.is_dir() else [place]
    if declared is None and files and (kind := find_format(files[:1], Stream(name, {}))[0]) in ("csv", "json"):
        raise WindloomError(
            f"stream '{name}': the types of the columns in '{path}' are not known",
            f"{kind.upper()} is text, and no catalog declares the stream",
            f"give a DataFrame, spark.read.{kind}('{path}', schema='ts TIMESTAMP, …'), or load a catalog first:"
            f" windloom init '{path}' drafts one",
        )
    return find_source(declared or Stream(name, {}), str(path)).read(spark)


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
        _say_zone(declared, frame)
        frame = match_declaration(declared, frame)
    columns, watermarks = column_types(frame), watermarked_columns(frame)
    if time is None and declared is None and len(watermarks) == 1:
        (time,) = watermarks
    column = _time_column(name, columns, time, declared)
    if declared is not None:
        if unit is None and column.lower() == declared.time.lower():
            unit = declared.time_unit
        rate = declared.events_per_second if rate is None else rate
    _check_time(name, column, columns[column], unit)
    if delay is not None:
        delay_ticks = _delay(name, delay)
    else:
        delay_ticks = _delay_of_frame(name, column, watermarks, frame, declared.delay_ticks if declared else 0)
    return Stream(name, columns, column, delay_ticks, unit, rate), frame


def _delay_of_frame(
    name: str, column: str, watermarks: Mapping[str, int], frame: DataFrame, declared_ticks: int
) -> int:
    """Return the delay of the catalog or of `withWatermark`, which must not differ; 0 if there is neither."""
    if column not in watermarks:
        for other, ticks in watermarks.items():
            warnings.warn(
                f"stream '{name}': withWatermark('{other}', '{spoken_duration(ticks)}') is not for its event time,"
                f" '{column}', whose delay is {spoken_duration(declared_ticks)}; delay=… changes it",
                WindloomWarning,
                stacklevel=5,
            )
        return declared_ticks
    ticks = watermarks[column]
    found = watermarks_in(frame)
    names = {other for other, delay in found if delay == ticks}  # the column may have been renamed since
    delays = sorted({delay for other, delay in found if other in names} | {ticks})
    facts = [f"withWatermark says {' and '.join(map(spoken_duration, delays))}"]
    if declared_ticks:
        facts.append(f"the catalog says {spoken_duration(declared_ticks)}")
    if len({*delays, declared_ticks or ticks}) > 1:
        raise WindloomError(
            f"stream '{name}' has two delays for '{column}'",
            "; ".join(facts),
            f"leave one of them out, or say which holds: delay='{spoken_duration(max(*delays, declared_ticks))}'",
        )
    return ticks


def _delay(name: str, delay: str | timedelta) -> int:
    try:
        ticks = parse_duration(delay)
    except WindloomError as error:
        raise WindloomError(f"stream '{name}', its delay: {error.message}", error.detail, error.hint) from None
    if ticks < 0:
        raise WindloomError(
            f"stream '{name}': the delay cannot be negative",
            f"it is {spoken_duration(ticks)}",
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
    is_case_sensitive = str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    names_by_key: dict[str, list[str]] = {}
    for name in frame.columns:
        names_by_key.setdefault(name if is_case_sensitive else name.lower(), []).append(name)
    for names in names_by_key.values():
        if len(names) > 1 and (declared is None or declared.find_column(names[0]) is not None):
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
        quoted, given = Expression.of_column(column).sql, columns[column]
        fits_double = given.name == "float" or (given.kind is TypeKind.INTEGER and given.bits <= 32)
        fits_integer = given.kind is kind.kind is TypeKind.INTEGER and given.bits <= kind.bits
        if given == kind or kind.kind is TypeKind.OTHER:
            chosen.append(quoted)
        elif fits_integer or _is_local_time(given, kind) or (kind.name == "double" and fits_double):
            chosen.append(f"CAST({quoted} AS {kind}) AS {quoted}")
        else:
            raise WindloomError(
                f"{declared.title}: column '{name}' is not of its declared type",
                f"it is declared {kind}, and its data is {given}",
                f"declare it {given}, or cast the data",
            )
    return frame.selectExpr(*chosen)


def _is_local_time(given: DataType, declared: DataType) -> bool:
    """Return whether data holds times without a zone, where instants are declared: the session's zone makes these."""
    return given.kind is TypeKind.TIMESTAMP_NTZ and declared.kind is TypeKind.TIMESTAMP


def _say_zone(declared: Stream, frame: DataFrame) -> None:
    """Say once in which zone times without a zone are read."""
    columns = column_types(frame)
    actual = Stream(declared.name, columns)
    found = [(name, actual.find_column(name), kind) for name, kind in declared.columns.items()]
    local = [name for name, column, kind in found if column is not None and _is_local_time(columns[column], kind)]
    if local:
        zone = str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))
        names = ", ".join(f"'{name}'" for name in local)
        warnings.warn(
            f"{declared.title}: the times in {names} have no zone, and are read as times of the session's zone, {zone}"
            " (spark.sql.session.timeZone); declare them TIMESTAMP_NTZ to read them as they are",
            WindloomWarning,
            stacklevel=5,
        )


#: A relation as the user gives it: one version for good, or a function that returns the current one.
Given = DataFrame | Callable[[], DataFrame]

_EXAMPLE = "for example loom.relation('person', lambda: spark.read.parquet(path))"


@dataclass(frozen=True, slots=True)
class RelationSource:
    """A relation with its data."""

    relation: Relation
    given: Given

    def current(self) -> DataFrame:
        """Return the current version, with the columns of the relation."""
        frame = _frame_of(self.relation.name, self.given)
        columns, name = column_types(frame), self.relation.name
        for column, kind in self.relation.columns.items():
            if columns.get(column) != kind:
                raise WindloomError(
                    f"relation '{name}': its function gives another schema than before",
                    f"column '{column}' was {kind}, and is {columns[column]}"
                    if column in columns
                    else f"column '{column}' is missing: {near_names(column, list(columns))}",
                    "give a DataFrame with the columns of the first one; for others, register a relation of its own",
                )
        return (
            frame
            if list(columns) == list(self.relation.columns)
            else frame.select(*["`" + column.replace("`", "``") + "`" for column in self.relation.columns])
        )


def make_relation(name: str, given: Given, declared: Relation | None, retroactive: bool | None) -> RelationSource:
    """Return the relation, with the columns that are declared or that its data has now."""
    if not name or not isinstance(name, str):
        raise WindloomError("a relation needs a name", f"it was given {name!r}", "loom.relation('person', df)")
    if retroactive is not None and not isinstance(retroactive, bool):
        raise WindloomError(
            f"relation '{name}': retroactive says yes or no", f"it is {retroactive!r}", "use True or False"
        )
    if not isinstance(given, DataFrame) and not callable(given):
        raise WindloomError(
            f"relation '{name}' needs a Spark DataFrame, or a function that gives one",
            f"it was given a {type(given).__module__}.{type(given).__qualname__}",
            _EXAMPLE,
        )
    if retroactive is None:
        retroactive = True if declared is None else declared.is_retroactive
    frame = _frame_of(name, given)
    check_columns(f"relation '{name}'", frame, declared)
    if declared is not None:
        _say_zone(declared, frame)
        frame = match_declaration(declared, frame)
        matched: Given = (
            frame if isinstance(given, DataFrame) else (lambda: match_declaration(declared, _frame_of(name, given)))
        )
        return RelationSource(Relation(name, dict(declared.columns), is_retroactive=retroactive), matched)
    return RelationSource(Relation(name, column_types(frame), is_retroactive=retroactive), given)


def refuse_taken_name(name: str, what: str, known: Mapping[str, Stream]) -> None:
    """Raise if FROM could not tell a new stream or relation from a known one, of another kind or spelled otherwise."""
    for other, source in known.items():
        kind = "relation" if source.is_relation else "stream"
        if str(name).lower() != other.lower() or (name, what) == (other, kind):
            continue
        fact, hint = "FROM calls both by their names", "give one of them another name"
        if what == kind:
            fact = "names are compared without case"
            hint = f"give it another name; if it is the same {what}, call it '{other}'"
        raise WindloomError(f"{what} '{name}' cannot be registered", f"there is a {kind} '{other}', and {fact}", hint)


def _frame_of(name: str, given: Given) -> DataFrame:
    try:
        with as_windloom_errors(f"the function of relation '{name}'"):
            frame = given if isinstance(given, DataFrame) else given()
    except WindloomError:
        raise
    except Exception as error:  # whatever the user's own code raises
        raise WindloomError(
            f"relation '{name}': its function failed",
            f"{type(error).__name__}: {error}",
            "mend it; a stream that stopped goes on where it was when it is started again with its checkpoint",
        ) from error
    if not isinstance(frame, DataFrame):
        raise WindloomError(
            f"relation '{name}': its function gives no Spark DataFrame",
            f"it gave a {type(frame).__module__}.{type(frame).__qualname__}",
            _EXAMPLE,
        )
    if frame.isStreaming:
        raise WindloomError(
            f"relation '{name}' is a streaming DataFrame",
            "a relation is a table that is read as a whole, version by version",
            f"read it with spark.read; or register it as a stream: loom.stream('{name}', df, time=…)",
        )
    return frame


def with_urgency(name: str, text: str, within: str | timedelta | None, priority: int | None) -> str:
    """Return the text as it is registered: urgency is part of it, so that it is kept wherever the text is kept.

    >>> with_urgency("q", "SELECT …", "30 seconds", 2)
    'WITHIN 30 seconds PRIORITY 2 AS SELECT …'
    """
    if within is None and priority is None:
        return text
    if _OPTIONS.match(text):
        raise WindloomError(
            f"query '{name}' says twice how urgent it is",
            "its text begins with WITHIN or PRIORITY",
            "leave within and priority out, or take them out of the text",
        )
    if priority is not None and (isinstance(priority, bool) or not isinstance(priority, int)):
        raise WindloomError(
            f"query '{name}': a priority is a whole number", f"it is {priority!r}", "1 is answered first, 9 last"
        )
    try:
        ticks = None if within is None else parse_duration(within)
        urgency = Urgency(ticks, USUAL_PRIORITY if priority is None else priority)
    except WindloomError as error:
        raise WindloomError(f"query '{name}': {error.message}", error.detail, error.hint) from None
    return f"{urgency} AS {text}" if str(urgency) else text
