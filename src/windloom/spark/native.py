"""Spark SQL for what is ours: ticks of event time, the slice of a tick, the components of an aggregate.

All of it is plain SQL text over the stream's columns, so that Spark compiles it into the scan.
"""

from __future__ import annotations

from windloom.model.aggregate import ComponentKind
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.model.time import INTEGER_UNITS, TICKS_PER_SECOND
from windloom.model.types import DataType, TypeKind
from windloom.plan.physical import PlannedComponent
from windloom.slicing.identify import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, SliceId

#: Years 0001 to 9999, which is what Spark's timestamps hold.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799

#: Below this magnitude a double has a finite 24-bit head.
_HEAD_LIMIT = "1e38D"


def tick_sql(stream: Stream) -> str:
    """Microseconds since the epoch; NULL where the time is NULL, unreadable or out of range."""
    column = Expression.of_column(stream.time).sql
    match stream.columns[stream.time].kind:
        case TypeKind.INTEGER:
            ticks = INTEGER_UNITS[stream.time_unit or "us"]
            first, last = _FIRST_SECOND * TICKS_PER_SECOND // ticks, _LAST_SECOND * TICKS_PER_SECOND // ticks
            # Not BETWEEN: Spark's window() would take its two copies of one expression for two different windows.
            in_range = f"CAST({column} AS BIGINT) >= {first}L AND CAST({column} AS BIGINT) <= {last}L"
            return f"CASE WHEN {in_range} THEN CAST({column} AS BIGINT) * {ticks}L END"
        case TypeKind.TIMESTAMP_NTZ:
            # Clock readings without a zone, as they stand: casting to TIMESTAMP would go through the session's zone.
            day = f"CAST(unix_date(CAST({column} AS DATE)) AS BIGINT) * 86400000000L"
            clock = f"(hour({column}) * 3600L + minute({column}) * 60L) * 1000000L"
            return f"({day} + {clock} + CAST(extract(SECONDS FROM {column}) * 1000000 AS BIGINT))"
        case TypeKind.TIMESTAMP:
            return f"unix_micros({column})"
        case _:
            return f"unix_micros(try_cast({column} AS TIMESTAMP))"


def timestamp_sql(stream: Stream) -> str:
    """The same instant as a timestamp that Spark's own `window()` accepts."""
    if stream.columns[stream.time].kind in (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ):
        return Expression.of_column(stream.time).sql
    return f"timestamp_micros({tick_sql(stream)})"


def instant_sql(ticks: str, kind: DataType) -> str:
    """A column of ticks as a timestamp of the stream's own kind."""
    if kind.kind is TypeKind.TIMESTAMP_NTZ:
        return f"timestampadd(MICROSECOND, {ticks}, TIMESTAMP_NTZ '1970-01-01 00:00:00')"
    return f"timestamp_micros({ticks})"


def slice_sql(slice_id: SliceId, tick: str) -> str:
    """Start of the slice (or pane) that holds the tick."""
    match slice_id:
        case RegularSlice(edges=one) | PaneSlice(edges=one):
            return _last_edge(tick, one.period, one.residue)
        case GreatestSlice(classes=classes):
            return f"greatest({', '.join(_last_edge(tick, one.period, one.residue) for one in classes)})"
        case LookupSlice():
            within = f"pmod({_minus(tick, slice_id.origin)}, {slice_id.composite_ticks}L)"
            table = ", ".join(f"{entry}L" for entry in slice_id.table)
            pane = f"CAST({within} DIV {slice_id.pane_ticks}L AS INT) + 1"
            return f"({tick} - {within} + element_at(array({table}), {pane}))"


def _last_edge(tick: str, period: int, residue: int) -> str:
    return f"({tick} - pmod({_minus(tick, residue)}, {period}L))"


def _minus(tick: str, ticks: int) -> str:
    return f"{tick} - {ticks}L" if ticks else tick


def component_sql(planned: PlannedComponent, argument: str) -> tuple[str, ...]:
    """One aggregate for each of the component's fields; `argument` is the column that holds its argument."""
    double = f"CAST({argument} AS DOUBLE)"
    head = f"CAST(CAST({argument} AS FLOAT) AS DOUBLE)"
    match planned.component.kind:
        case ComponentKind.COUNT_STAR:
            return ("count(1)",)
        case ComponentKind.COUNT:
            return (f"count({argument})",)
        case ComponentKind.MIN | ComponentKind.MAX as kind:
            return (f"{kind.value}({argument})",)
        case ComponentKind.MOMENTS:
            return (f"count({argument})", f"avg({double})", f"var_pop({double})")
        case ComponentKind.SUM:
            if len(planned.fields) == 1:
                return (f"sum({argument})",)
            summed = planned.argument_type.kind if planned.argument_type is not None else TypeKind.OTHER
            if summed is TypeKind.DECIMAL:
                return (f"try_sum({argument})", f"count({argument})")
            if summed is TypeKind.INTEGER:
                return (f"sum(shiftright({argument}, 32))", f"sum({argument} & 4294967295L)")
            is_small = f"abs({argument}) < {_HEAD_LIMIT}"
            return (
                f"sum(if({is_small}, {head}, {double}))",
                f"sum(if({is_small}, {double} - {head}, 0D))",
            )
        case kind:
            raise KeyError(kind)  # a list: see `spark.lists`
