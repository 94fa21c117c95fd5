"""Native partial aggregation: one `groupBy` by slice, signature and group, and the Spark SQL of these values.

Ticks of event time, the slice of a tick and the signature of a tuple are plain SQL text over the columns of the stream,
so that Spark compiles them into the scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.aggregates.aggregator import NativeAggregator
from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.tuples.signatures import SIGNATURE_BITS
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.model.time import INTEGER_UNITS, TICKS_PER_SECOND
from windloom.model.types import DataType, TypeKind
from windloom.plan.scans import NativeScan
from windloom.slicing.edges import EdgeClass
from windloom.slicing.slice_id import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, SliceId
from windloom.weave.files import FIRST_SECOND, LAST_SECOND
from windloom.weave.weave import Ticks

#: Always zero, because these ids are not negative; Spark does not know that.
_ZERO = "shiftright(monotonically_increasing_id(), 63)"


def tick_sql(stream: Stream) -> str:
    """Return microseconds since the epoch (0 for a relation); NULL if the time is NULL, unreadable or out of range."""
    if stream.is_relation:
        return "0L"  # all rows are in one slice
    column = Expression.of_column(stream.time).sql
    match stream.columns[stream.time].kind:
        case TypeKind.INTEGER:
            ticks = INTEGER_UNITS[stream.time_unit or "us"]
            first, last = _bounds(stream)
            # Not BETWEEN: Spark's window() would treat its two copies of one expression as two different windows.
            in_range = f"CAST({column} AS BIGINT) >= {first}L AND CAST({column} AS BIGINT) <= {last}L"
            return f"CASE WHEN {in_range} THEN CAST({column} AS BIGINT) * {ticks}L END"
        case TypeKind.TIMESTAMP_NTZ:
            # Clock readings without a zone stay as they are: a cast to TIMESTAMP would use the zone of the session.
            day = f"CAST(unix_date(CAST({column} AS DATE)) AS BIGINT) * 86400000000L"
            clock = f"(hour({column}) * 3600L + minute({column}) * 60L) * 1000000L"
            return f"({day} + {clock} + CAST(extract(SECONDS FROM {column}) * 1000000 AS BIGINT))"
        case TypeKind.TIMESTAMP:
            return f"unix_micros({column})"
        case _:
            return f"unix_micros(try_cast({column} AS TIMESTAMP))"


def counted_rate(frame: DataFrame, stream: Stream, range_ticks: int) -> tuple[int, float]:
    """Return how many tuples there are, and how many per second; all of them lie within a range, or in more."""
    tick = tick_sql(stream)
    row = frame.selectExpr("count(*) AS n", f"min({tick}) AS first", f"max({tick}) AS last").collect()[0]
    span = max(range_ticks, (row["last"] or 0) - (row["first"] or 0), 1)
    return row["n"], max(row["n"], 1) * TICKS_PER_SECOND / span


def has_time_sql(stream: Stream) -> str:
    """Return a condition for tuples that have a usable time, in words that a user may take over."""
    column = Expression.of_column(stream.time).sql
    match stream.columns[stream.time].kind:
        case TypeKind.INTEGER:
            first, last = _bounds(stream)
            return f"{column} BETWEEN {first} AND {last}"
        case TypeKind.TIMESTAMP_NTZ | TypeKind.TIMESTAMP:
            return f"{column} IS NOT NULL"
        case _:
            return f"try_cast({column} AS TIMESTAMP) IS NOT NULL"


def _bounds(stream: Stream) -> tuple[int, int]:
    """Return the first and the last usable time of an integer column, in its own unit."""
    ticks = INTEGER_UNITS[stream.time_unit or "us"]
    return FIRST_SECOND * TICKS_PER_SECOND // ticks, LAST_SECOND * TICKS_PER_SECOND // ticks


def timestamp_sql(stream: Stream) -> str:
    """Return the event time as a timestamp that Spark's own `window()` accepts."""
    if stream.columns[stream.time].kind in (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ):
        return Expression.of_column(stream.time).sql
    return f"timestamp_micros({tick_sql(stream)})"


def instant_sql(ticks: str, kind: DataType) -> str:
    """Return a column of ticks as a timestamp of the stream's type; positions of tuples stay numbers."""
    if kind.kind is TypeKind.INTEGER:
        return ticks
    if kind.kind is TypeKind.TIMESTAMP_NTZ:
        return f"timestampadd(MICROSECOND, {ticks}, TIMESTAMP_NTZ '1970-01-01 00:00:00')"
    return f"timestamp_micros({ticks})"


def slice_sql(slice_id: SliceId, tick: str) -> str:
    """Return what identifies the slice (or pane) of a tick: its number if slices have equal lengths, or its start.

    A division per tuple, instead of a remainder and a subtraction, saves a tenth of the time of a whole `groupBy`.
    """
    match slice_id:
        case RegularSlice(edges=edges) | PaneSlice(edges=edges):
            return f"({tick} + {_shift(edges)}L) DIV {edges.period}L"
        case GreatestSlice(classes=classes):
            last = (f"({tick} - pmod({_minus(tick, edges.residue)}, {edges.period}L))" for edges in classes)
            return f"greatest({', '.join(last)})"
        case LookupSlice():
            within = f"pmod({_minus(tick, slice_id.origin)}, {slice_id.composite_ticks}L)"
            table = ", ".join(f"{entry}L" for entry in slice_id.table)
            pane = f"CAST({within} DIV {slice_id.pane_ticks}L AS INT) + 1"
            return f"({tick} - {within} + element_at(array({table}), {pane}))"


def _shift(edges: EdgeClass) -> int:
    """Return a shift that makes every tick positive, and every edge a multiple of the period."""
    return (1 << 62) // edges.period * edges.period - edges.residue


def _minus(tick: str, ticks: int) -> str:
    return f"{tick} - {ticks}L" if ticks else tick


def signature_sql(predicates: Sequence[Expression], *, is_tested: bool = False) -> list[str]:
    """Return a bigint for every 63 predicates, with one bit for each that is satisfied; NULL is not satisfied.

    If `is_tested`, tuples are left out by their signature. To do that, Spark would evaluate all predicates once more,
    below the projection: the code for thirty predicates is then larger than what Java compiles (8,000 bytes), and is
    interpreted, several times slower. Spark does not move a condition below an expression that it takes for random.

    >>> signature_sql([Expression("a > 1"), Expression("b")])
    ['if(a > 1, 1L, 0L) | if(b, 2L, 0L)']
    """
    words = []
    for first in range(0, len(predicates), SIGNATURE_BITS):
        part = predicates[first : first + SIGNATURE_BITS]
        word = " | ".join(f"if({expression.sql}, {1 << bit}L, 0L)" for bit, expression in enumerate(part))
        words.append(f"{word} | {_ZERO}" if is_tested else word)
    return words


def input_sql(planned: PlannedComponent, tick: str) -> tuple[str, ...]:
    """Return the inputs of a component, read from a tuple: its argument, if it has one, and what picks compare."""
    component, aggregator = planned.component, planned.aggregator
    assert isinstance(aggregator, NativeAggregator), "others are woven"
    read = aggregator.inputs(component, tick)
    if component.where is None:
        return read
    # Every aggregate skips NULL. If the condition is not satisfied, nothing is evaluated, and nothing can fail.
    # A bare NULL has no type, and needs one to be a condition.
    satisfied = f"CAST({component.where.sql} AS BOOLEAN)"
    return tuple(f"CASE WHEN {satisfied} THEN {sql} END" for sql in read or ("1",))


def component_sql(planned: PlannedComponent, inputs: Sequence[str]) -> tuple[str, ...]:
    """Return an aggregate per field of the component; `inputs` are the columns that hold its `input_sql`."""
    aggregator = planned.aggregator
    assert isinstance(aggregator, NativeAggregator)
    return aggregator.native_sql(planned, inputs)


def partials_frame(scan: NativeScan, stream: Stream, frame: DataFrame, *, timed: bool = True) -> DataFrame:
    """Return `slice`, `s0…` (signature), `g0…` and each component's fields `c0…`; if `timed`, also `first` and `seen`.

    There is one row per (slice, signature, group) that holds a tuple, with its first and last tick.
    """
    tick, signature = tick_sql(stream), scan.signature
    if signature.where is not None:
        # Rows without a time pass every predicate, so that they can be refused or counted.
        frame = frame.where(f"({signature.where.sql}) OR {tick} IS NULL")
    inputs = [
        tuple(_guarded(sql, scan, used) for sql in input_sql(planned, tick))
        for planned, used in zip(scan.components, _used_by(scan, "components"), strict=True)
    ]
    names = {sql: f"x{i}" for i, sql in enumerate(dict.fromkeys(chain.from_iterable(inputs)))}
    groups = [f"g{i}" for i in range(len(scan.group_by))]
    keys = [
        expression.sql if expression.column is not None else _guarded(expression.sql, scan, used)
        for expression, used in zip(scan.group_by, _used_by(scan, "groups"), strict=True)
    ]
    words = signature_sql(signature.predicates, is_tested=signature.only_signed)
    projected = frame.selectExpr(
        f"{slice_sql(scan.slice_id, tick)} AS slice",
        *(f"{word} AS s{i}" for i, word in enumerate(words)),
        *(f"{key} AS {name}" for key, name in zip(keys, groups, strict=True)),
        *(f"{sql} AS {name}" for sql, name in names.items()),
        f"{tick} AS tick",
    )
    signed = [f"s{i}" for i in range(len(words))]
    if signature.only_signed:
        wanted = [
            f"({name} & {bits}L) <> 0L" for name, bits in zip(signed, signature.wanting_bits, strict=True) if bits
        ]
        projected = projected.where(" OR ".join(["slice IS NULL", *wanted]))
    aggregates: list[str] = []
    for planned, read in zip(scan.components, inputs, strict=True):
        aggregates += component_sql(planned, [names[sql] for sql in read])
    fields = [F.expr(f"{sql} AS c{i}") for i, sql in enumerate(aggregates)]
    clock = [F.expr("min(tick) AS first"), F.expr("max(tick) AS seen")] if timed else []
    return projected.groupBy("slice", *signed, *groups).agg(*fields, *clock)


def timed_partials(scan: NativeScan, table: pa.Table) -> tuple[pa.Table, Ticks]:
    """Return the partials whose slice is known, with its start and without their ticks, and the ticks that all span."""
    slices = table.column(0)
    if isinstance(scan.slice_id, RegularSlice | PaneSlice):  # numbers of slices
        edges = scan.slice_id.edges
        slices = pc.subtract(pc.multiply(slices, edges.period), _shift(edges))
    table = table.set_column(0, "slice", slices)
    untimed = 0
    if slices.null_count:
        known = pc.is_valid(slices)
        untimed = pc.sum(table.filter(pc.invert(known)).column(1 + len(scan.key_types))).as_py()
        table = table.filter(known)
    if "seen" not in table.column_names:
        return table, Ticks(untimed=untimed)
    ticks = Ticks.between(table.column("first"), table.column("seen"), untimed)
    return table.drop_columns(["first", "seen"]), ticks


def _used_by(scan: NativeScan, what: str) -> list[set[int | None]]:
    """Return, for each of the scan's components or grouping columns, the bits of the sets that use it."""
    count = len(scan.components if what == "components" else scan.group_by)
    bits: list[set[int | None]] = [set() for _ in range(count)]
    for fed in scan.feeds:
        for position in fed.components if what == "components" else fed.groups:
            bits[position].add(fed.bit)
    return bits


def _guarded(sql: str, scan: NativeScan, bits: set[int | None]) -> str:
    """Return the expression, evaluated only for tuples that some set wants: it may fail for others."""
    if None in bits or sql.isidentifier():
        return sql
    predicates = scan.signature.predicates
    satisfied = " OR ".join(f"({predicates[bit].sql})" for bit in sorted(bit for bit in bits if bit is not None))
    return f"CASE WHEN {satisfied} THEN {sql} END"
