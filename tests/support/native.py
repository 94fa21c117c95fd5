"""What Spark computes natively, in plain Python: partials of tuples, for tests of the step without a JVM."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_, or_, xor
from typing import Any

import numpy as np
import pyarrow as pa

from support.catalogs import COLUMNS
from support.native_lists import entry_types, with_entries
from windloom.aggregates.arrow import arrow_type
from windloom.model import TypeKind
from windloom.plan import Plan
from windloom.plan.physical import SIGNATURE_BITS, PlannedComponent, Scan
from windloom.slicing import PaneSlice

Row = Mapping[str, Any]

_PICKS = ("min_by", "max_by", "first", "last")


def partials_table(one: Scan, rows: Sequence[Row]) -> pa.Table:
    """One line a (slice, signature, group), as `read_partials` expects them; predicates are bare boolean columns."""
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        satisfied = [row[predicate.columns[0]] is True for predicate in one.predicates]
        if (one.where is not None and row[one.where.columns[0]] is not True) or (
            one.only_signed and not any(satisfied[fed.bit] for fed in one.feeds if fed.bit is not None)
        ):
            continue
        words = [satisfied[first : first + SIGNATURE_BITS] for first in range(0, len(satisfied), SIGNATURE_BITS)]
        signature = [sum(1 << bit for bit, holds in enumerate(word) if holds) for word in words]
        tick = np.array([row.get("position", row["tick"])], np.int64)  # windows of rows are of positions
        if isinstance(one.slice_id, PaneSlice):
            pane = one.slice_id.edges
            start = int(tick[0] - (tick[0] - pane.residue) % pane.period)
        else:
            start = int(one.edges.last_edge(tick)[0])
        key = (*signature, *(_key(row[str(expression.column)]) for expression in one.group_by))
        cells.setdefault((start, *key), []).append(row)
    kinds = [pa.int64(), *(arrow_type(kind) for kind in one.key_types)]
    columns: list[list[Any]] = [[key[i] if key[i] != "NaN" else math.nan for key in cells] for i in range(len(kinds))]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    for planned in one.components:
        if planned.card.by_value:
            arrays += [pa.nulls(len(cells), kind) for kind in entry_types(planned)]
            continue
        fields = [_fields(planned, members) for members in cells.values()]
        for position, kind in enumerate(_field_types(planned)):
            arrays.append(pa.array([field[position] for field in fields], kind))
    table = pa.Table.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    return with_entries(one, table, list(cells.values()))


def partials_of_plan(plan: Plan, rows: Sequence[Row] | Mapping[str, Sequence[Row]]) -> dict[int, pa.Table]:
    """Of rows by stream; or of rows alone, for plans that read one stream."""
    found = rows if isinstance(rows, Mapping) else {scan.stream: rows for scan in plan.scans}
    return {scan.number: partials_table(scan, found.get(scan.stream, ())) for scan in plan.scans}


def _key(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _field_types(planned: PlannedComponent) -> list[pa.DataType]:
    kind = planned.component.kind
    if kind in ("count", "count(*)"):
        return [pa.int64()]
    assert planned.argument_type is not None
    if kind in _PICKS:
        by = planned.component.by
        return [pa.int64() if by is None else arrow_type(COLUMNS[str(by.column)]), arrow_type(planned.argument_type)]
    if kind in ("min", "max", "bit_and", "bit_or", "bit_xor"):
        return [arrow_type(planned.argument_type)]
    if kind == "moments":
        return [pa.int64(), pa.float64(), pa.float64()]
    if planned.argument_type.kind is TypeKind.FLOAT:
        return [pa.float64(), pa.float64()]
    if planned.argument_type.kind is TypeKind.DECIMAL:
        return [pa.decimal128(min(38, planned.argument_type.precision + 10), planned.argument_type.scale)]
    return [pa.int64()] * len(planned.fields)


def _order(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _pick(lowest: bool, by: Sequence[Any], values: Sequence[Any]) -> tuple[Any, Any]:
    """Of structs (by, value) the lowest or the highest, as Spark orders them: NULL before all else."""
    pairs = [pair for pair in zip(by, values, strict=True) if pair[0] is not None]
    keys = [(_order(first), second is not None, None if second is None else _order(second)) for first, second in pairs]
    return pairs[keys.index((min if lowest else max)(keys))] if pairs else (None, None)


def _fields(planned: PlannedComponent, rows: Sequence[Row]) -> tuple[Any, ...]:
    kind, where = planned.component.kind, planned.component.where
    if where is not None:
        rows = [row for row in rows if row[str(where.column)] is True]
    if kind == "count(*)":
        return (len(rows),)
    assert planned.component.argument is not None
    values = [row[str(planned.component.argument.column)] for row in rows]
    if kind in _PICKS:
        by = planned.component.by
        return _pick(
            kind in ("min_by", "first"), [row["tick" if by is None else str(by.column)] for row in rows], values
        )
    values = [value for value in values if value is not None]
    if kind == "count":
        return (len(values),)
    if not values:
        return (0, None, None) if kind == "moments" else (None,) * len(planned.fields)
    if kind in ("min", "max"):
        return ((min if kind == "min" else max)(values, key=_order),)
    if kind in ("bit_and", "bit_or", "bit_xor"):
        return (reduce({"bit_and": and_, "bit_or": or_, "bit_xor": xor}[kind], values),)
    if kind == "moments":
        numbers = np.array([float(value) for value in values])
        with np.errstate(invalid="ignore"):
            return len(numbers), float(numbers.mean()), float(numbers.var())
    if isinstance(values[0], float):
        heads = [float(np.float32(v)) if abs(v) < 1e38 else v for v in values]
        tails = [v - h if abs(v) < 1e38 else 0.0 for v, h in zip(values, heads, strict=True)]
        return float(sum(heads)), float(sum(tails))
    if isinstance(values[0], Decimal) or len(planned.fields) == 1:
        return (sum(values[1:], values[0]),)
    return sum(v >> 32 for v in values), sum(v & 0xFFFFFFFF for v in values)
