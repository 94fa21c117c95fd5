"""Row queries in a plan: which tuples of a stream are kept, and how rows are made of them.

A *store* is what is kept of the tuples of one stream for all row queries, and for questions. A *planned row query*
determines the order in which its strands are joined. A Spark job of the round makes the rows from the stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from windloom.aggregates.registry import PlannedComponent
from windloom.model.expression import Expression
from windloom.model.predicate import Predicate, implies
from windloom.model.query import Query
from windloom.model.rows import RowInput, RowQuery
from windloom.model.stream import Stream
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.types import DataType, TypeKind
from windloom.statistics.set_statistics import ASSUMED, DEFAULT_ROUND_SECONDS, Origin


@dataclass(frozen=True, slots=True)
class StrandRate:
    """The estimates of a strand: tuples of its stream per second, the share that it wants, distinct values of its keys.

    `origin` is that of the rate; `knows_values` is true if values were observed, false if they were assumed. A round
    spans `round_seconds` of event time.
    """

    stream_rate: float
    share: float = 1.0
    values: float = 1.0
    origin: Origin = ASSUMED
    knows_values: bool = False
    round_seconds: float = DEFAULT_ROUND_SECONDS

    @property
    def rate(self) -> float:
        """Tuples of the strand per second."""
        return self.stream_rate * self.share


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A user's query, or a side of joins, in its place in a plan."""

    query: Query

    @property
    def name(self) -> str:
        return self.query.name

    @property
    def columns(self) -> tuple[int, ...]:
        """Which aggregate of the query fills each column of the shape."""
        return self.query.aggregate_columns


@dataclass(frozen=True, slots=True)
class PlannedRows(PlannedPart):
    """A query of rows, or of aggregates over them.

    `orders` has, for every selection, its joined strands in the order in which they are joined. `pairs` is the number
    of rows that a round is expected to make, and `rates` are the estimates of each strand; neither counts for equality.
    Over aggregates, `components` are those of the query, with the types of their arguments.
    """

    shape: int
    orders: tuple[tuple[int, ...], ...]
    components: tuple[PlannedComponent, ...] = ()
    rates: tuple[StrandRate, ...] = field(default=(), compare=False)
    pairs: float = field(default=0.0, compare=False)

    @property
    def rows(self) -> RowQuery:
        assert self.query.rows is not None
        return self.query.rows

    @property
    def is_aggregated(self) -> bool:
        return not self.rows.columns

    @property
    def is_summarised(self) -> bool:
        """Whether its aggregates are kept as partials of rows, by first and last end; otherwise Spark answers them."""
        return (
            self.is_aggregated
            and self.rows.has_lifetimes
            and all(planned_component.aggregator.is_native for planned_component in self.components)
        )

    @property
    def columns(self) -> tuple[int, ...]:
        """Which aggregate of the query fills each column of the shape; empty for a query that reports rows."""
        return self.query.aggregate_columns if self.is_aggregated else ()


@dataclass(frozen=True, slots=True)
class Retention:
    """The stored part of a stream: these columns of the tuples that satisfy one of the predicates.

    `predicates` is None if every tuple is kept. Tuples are kept as long as a row query needs them, and for `keep_ticks`
    behind the frontier of the stream. `types` are those of the columns.
    """

    stream: str
    columns: tuple[str, ...]
    types: tuple[DataType, ...]
    predicates: tuple[Predicate, ...] | None
    keep_ticks: int = 0

    @property
    def wheres(self) -> tuple[str, ...] | None:
        """The predicates as texts, for the record."""
        return None if self.predicates is None else tuple(predicate.sql for predicate in self.predicates)

    def holds(self, columns: Iterator[str] | tuple[str, ...], wanted: Predicate | None) -> bool:
        """Return whether every tuple that a predicate wants is kept, with these columns."""
        if not set(columns) <= set(self.columns):
            return False
        if self.predicates is None:
            return True
        return wanted is not None and any(implies(wanted, predicate) for predicate in self.predicates)


#: Bytes that a value of a type takes in a file, before compression; values of other types take as much as a text.
_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4, "void": 0}
_WIDTHS |= dict.fromkeys(("bigint", "double", "timestamp", "timestamp_ntz"), 8)
_TEXT_WIDTH = 16
#: The share of these bytes that is left after compression: neighbouring tuples have much in common.
_COMPRESSED = 0.6


@dataclass(frozen=True, slots=True)
class StoreSize:
    """The time, tuples and bytes that a store is expected to hold; `origin` is that of the rate of its stream."""

    ticks: int
    tuples: float
    bytes: float
    origin: Origin


def kept_ticks(store: Retention, rows: Iterable[PlannedRows]) -> int:
    """Return the ticks behind the watermark that a store reaches: those that the user and row queries ask for."""
    needed = [
        strand.window.range_ticks + (0 if planned.rows.within else strand.window.slide_ticks)
        for planned in rows
        for strand in strands_over(planned.rows, store.stream)
    ]
    return max([store.keep_ticks, *needed])


def store_size(store: Retention, rows: Iterable[PlannedRows], stream_rate: float, origin: Origin) -> StoreSize:
    """Return the size of a store when it is full."""
    rows = list(rows)
    share = 1.0
    if store.predicates is not None:
        shares = {
            strand.condition: rate.share
            for planned in rows
            for strand, rate in zip(planned.rows.strands, planned.rates, strict=True)
            if strand.stream == store.stream
        }
        share = min(1.0, sum(shares.values()))
    ticks = kept_ticks(store, rows)
    tuples = stream_rate * share * ticks / TICKS_PER_SECOND
    width = _COMPRESSED * (8 + sum(_WIDTHS.get(kind.name, _TEXT_WIDTH) for kind in store.types))
    return StoreSize(ticks, tuples, tuples * width, origin)


def strands_over(rows: RowQuery, stream: str) -> tuple[RowInput, ...]:
    """Return the strands of a row query that read one stream."""
    return tuple(strand for strand in rows.strands if strand.stream == stream)


# Interval joins of two streams by plain keys, which need no Spark job: recognises them among the row queries.

#: Types whose keys are equal if their Arrow values are. Floats are not among them, because zero has a sign.
_ALIKE = (
    TypeKind.INTEGER,
    TypeKind.DECIMAL,
    TypeKind.BOOLEAN,
    TypeKind.STRING,
    TypeKind.DATE,
    TypeKind.TIMESTAMP,
    TypeKind.TIMESTAMP_NTZ,
)


@dataclass(frozen=True, slots=True)
class NearJoin:
    """The keys that are equal on both sides, and the columns of pairs, by side (0 or 1) and name in the stream."""

    within_ticks: int
    keys: tuple[tuple[str, str], ...]
    columns: tuple[tuple[int, str], ...]


def near_join(planned: PlannedRows, streams: Mapping[str, Stream]) -> NearJoin | None:
    """Return the interval join of a query; None if the query is not such a join, so that Spark makes its rows."""
    rows = planned.rows
    if not rows.within or planned.is_aggregated:
        return None
    (selection,) = rows.selections
    strands = selection.strands
    ticks = selection.attached[0].within_ticks if selection.attached else None
    if len(strands) != 2 or ticks is None or any(strand.where is not None for strand in strands):
        return None
    column_of = {
        f"{Expression.of_column(strand.alias).sql}.{Expression.of_column(name).sql}": (side, name)
        for side, strand in enumerate(strands)
        for name in strand.columns
    }
    keys = []
    for condition in selection.conditions:
        left, equals, right = condition.expression.sql.partition(" = ")
        pair = sorted(column_of[column] for column in (left, right) if column in column_of)
        if not equals or [side for side, _ in pair] != [0, 1]:
            return None
        kinds = [streams[strand.stream].columns[name] for strand, (_, name) in zip(strands, pair, strict=True)]
        if kinds[0] != kinds[1] or kinds[0].kind not in _ALIKE:
            return None
        keys.append((pair[0][1], pair[1][1]))
    columns = [column_of.get(column.expression.sql) for column in selection.columns]
    plain = tuple(column for column in columns if column is not None)
    return NearJoin(ticks, tuple(keys), plain) if keys and len(plain) == len(columns) else None
