"""The registry behind a loom: streams with their data, queries, and the types of what queries evaluate."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from windloom.errors import WindloomError, near_names
from windloom.language import parse_catalog, parse_query
from windloom.model.expression import Expression
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.model.time import INTEGER_UNITS, parse_duration
from windloom.model.types import DataType, TypeKind
from windloom.plan.physical import Plan
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.frames import column_types, empty_frame, expression_types

_TIME_KINDS = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ, TypeKind.DATE, TypeKind.STRING, TypeKind.INTEGER)


class Registry:
    """What has been registered; every method leaves it unchanged when it raises."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session  # asked only where a type or an answer needs Spark
        self.streams: dict[str, Stream] = {}
        self.queries: dict[str, Query] = {}
        self._frames: dict[str, DataFrame] = {}
        self._types: dict[tuple[str, str], DataType] = {}

    def add_stream(
        self,
        name: str,
        frame: DataFrame,
        time: str | None,
        delay: str | timedelta | None,
        unit: str | None,
        rate: float | None,
    ) -> Stream:
        declared = self.streams.get(name)
        if name in self._frames:
            raise WindloomError(f"stream '{name}' is already registered", hint="use another name, or a new Loom")
        if not isinstance(frame, DataFrame):
            raise WindloomError(
                f"stream '{name}' needs a Spark DataFrame, not {type(frame).__name__}",
                hint="for example spark.read.parquet(path)",
            )
        columns = column_types(frame)
        time = time or (declared.time if declared else None)
        if not time:
            raise WindloomError(f"stream '{name}' has no event time", hint="say which column it is: time='ts'")
        stream = Stream(name, columns, time)
        column = stream.find_column(time)
        if column is None:
            raise WindloomError(f"stream '{name}' has no column '{time}'", hint=near_names(time, list(columns)))
        unit = unit or (declared.time_unit if declared else None)
        _check_time(name, column, columns[column], unit)
        delay_ticks = parse_duration(delay) if delay is not None else (declared.delay_ticks if declared else 0)
        if delay_ticks < 0:
            raise WindloomError(f"stream '{name}': the delay cannot be negative", hint="for example delay='10 seconds'")
        rate = rate if rate is not None else (declared.events_per_second if declared else None)
        if rate is not None and rate <= 0:
            raise WindloomError(f"stream '{name}': the rate must be positive, not {rate}", hint="events a second")
        if declared is not None:
            frame = _match_declaration(declared, frame, columns)
            columns = column_types(frame)
        made = Stream(name, columns, column, delay_ticks, unit, rate)
        queries = {
            # The declaration may have spelled columns differently or have had fewer: bind again to the real ones.
            key: parse_query(key, query.text, {**self.streams, name: made}) if query.stream == name else query
            for key, query in self.queries.items()
        }
        self.streams[name], self._frames[name], self.queries = made, frame, queries
        # What was learnt from a declaration may not hold for the data.
        self._types = {key: kind for key, kind in self._types.items() if key[0] != name}
        return made

    def add_query(self, name: str, text: str) -> Query:
        if not name or not isinstance(name, str):
            raise WindloomError("a query needs a name", hint="loom.query('avg_1h', 'SELECT …')")
        if name in self.queries:
            raise WindloomError(f"query '{name}' is already registered", hint="use another name")
        query = parse_query(name, text, self.streams)
        if query.stream in self._frames:
            self._check_types(query)
        self.queries[name] = query
        return query

    def load(self, path: str | Path) -> None:
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise WindloomError(
                f"cannot read the catalog '{file}'", str(error), "give the path of a .cql file in UTF-8"
            ) from None
        catalog = parse_catalog(text, source=file.name)
        streams, queries = dict(self.streams), dict(self.queries)
        for declared in catalog.streams:
            stream = declared.stream
            if stream.name in streams:
                raise WindloomError(f"stream '{stream.name}' is already registered", hint="remove it from the catalog")
            streams[stream.name] = stream
        for entry in catalog.queries:
            if entry.name in queries:
                raise WindloomError(f"query '{entry.name}' is already registered", hint="use another name")
            queries[entry.name] = entry.parse(streams)
        self.streams, self.queries = streams, queries

    def frames(self, plan: Plan) -> dict[str, DataFrame]:
        """The data of every stream the plan reads; refuses streams without data and streams that never end."""
        for stream in plan.streams:
            frame = self._frames.get(stream.name)
            if frame is None:
                raise WindloomError(
                    f"stream '{stream.name}' has no data",
                    hint=f"give it some: loom.stream('{stream.name}', df), or --stream {stream.name}=PATH",
                )
            if frame.isStreaming:
                raise WindloomError(
                    f"stream '{stream.name}' is a streaming DataFrame, and a batch run ends",
                    hint="read it as a batch (spark.read instead of spark.readStream)",
                )
        return {stream.name: self._frames[stream.name] for stream in plan.streams}

    def types(self) -> dict[tuple[str, str], DataType]:
        """Types of all expressions, from the data where there is some, else from the declaration."""
        missing: dict[str, list[Expression]] = {}
        for query in self.queries.values():
            for expression in query.expressions:
                if (query.stream, expression.sql) not in self._types:
                    missing.setdefault(query.stream, []).append(expression)
        for stream, expressions in missing.items():
            self._learn_types(stream, expressions)
        for query in self.queries.values():
            _check_query_types(query, self._types)
        return self._types

    def _check_types(self, query: Query) -> None:
        unknown = [one for one in query.expressions if (query.stream, one.sql) not in self._types]
        self._learn_types(query.stream, unknown)
        _check_query_types(query, self._types)

    def _learn_types(self, stream: str, expressions: list[Expression]) -> None:
        known = self.streams[stream].columns
        for one in expressions:
            if one.column is not None:
                self._types[stream, one.sql] = known[one.column]
        computed = [one for one in expressions if one.column is None]
        if not computed:
            return
        frame = self._frames.get(stream)
        if frame is None:
            frame = empty_frame(self._session(), self.streams[stream])
        for sql, kind in expression_types(frame, computed).items():
            self._types[stream, sql] = kind

    def unknown_query(self, name: str) -> WindloomError:
        return WindloomError(f"unknown query '{name}'", hint=near_names(name, list(self.queries)))


def _check_time(stream: str, column: str, kind: DataType, unit: str | None) -> None:
    if kind.kind not in _TIME_KINDS:
        raise WindloomError(
            f"stream '{stream}': column '{column}' cannot be event time",
            f"it is of type {kind}",
            "use a timestamp column, or an integer column with unit='ms'",
        )
    if unit is not None and unit not in INTEGER_UNITS:
        raise WindloomError(f"stream '{stream}': unknown time unit '{unit}'", hint="use 's', 'ms' or 'us'")
    if kind.kind is TypeKind.INTEGER and unit is None:
        raise WindloomError(
            f"stream '{stream}': column '{column}' is an integer, and its unit is not known",
            hint="say which: unit='s', unit='ms' or unit='us'",
        )
    if kind.kind is not TypeKind.INTEGER and unit is not None:
        raise WindloomError(
            f"stream '{stream}': unit='{unit}' is for integer times, and column '{column}' is of type {kind}",
            hint="leave the unit out",
        )


def _match_declaration(declared: Stream, frame: DataFrame, columns: dict[str, DataType]) -> DataFrame:
    """The declared columns must be there; numbers are widened to the declared type."""
    actual = Stream(declared.name, columns)
    chosen = []
    for name, kind in declared.columns.items():
        column = actual.find_column(name)
        if column is None:
            raise WindloomError(
                f"stream '{declared.name}' is declared with a column '{name}' that its data do not have",
                hint=near_names(name, list(columns)),
            )
        quoted = Expression.of_column(column).sql
        if columns[column] == kind or kind.kind is TypeKind.OTHER:
            chosen.append(quoted)
        elif _widens(columns[column], kind):
            chosen.append(f"CAST({quoted} AS {kind}) AS {Expression.of_column(name).sql}")
        else:
            raise WindloomError(
                f"stream '{declared.name}': column '{name}' is declared {kind}, and its data are {columns[column]}",
                hint=f"declare it {columns[column]}, or cast the data",
            )
    return frame.selectExpr(*chosen)


def _widens(actual: DataType, declared: DataType) -> bool:
    if actual.kind is TypeKind.INTEGER and declared.kind is TypeKind.INTEGER:
        return actual.bits <= declared.bits
    return declared.name == "double" and (
        actual.name == "float" or (actual.kind is TypeKind.INTEGER and actual.bits <= 32)
    )


def _check_query_types(query: Query, types: dict[tuple[str, str], DataType]) -> None:
    try:
        for aggregate in query.aggregates:
            argument = aggregate.argument
            aggregate.result_type(None if argument is None else types[query.stream, argument.sql])
        for grouping in query.group_by:
            kind = types[query.stream, grouping.expression.sql]
            if not kind.is_groupable:
                raise WindloomError(
                    f"cannot group by '{grouping.expression}'", f"it is of type {kind}", "group by its fields instead"
                )
        if query.where is not None and types[query.stream, query.where.sql].kind not in (
            TypeKind.BOOLEAN,
            TypeKind.NULL,
        ):
            raise WindloomError(
                f"the WHERE condition '{query.where}' is not a condition",
                f"it is of type {types[query.stream, query.where.sql]}",
                "compare it with something",
            )
    except WindloomError as error:
        raise WindloomError(f"query '{query.name}': {error.message}", error.detail, error.hint) from None
