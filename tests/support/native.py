"""What Spark computes, in plain Python: partials and projected tuples, for tests of the step without a JVM."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_, or_, xor
from typing import Any

import numpy as np
import pyarrow as pa

from support.sketches import bucket_of, packed_register_of
from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.tuples.signatures import SIGNATURE_BITS
from windloom.model import DataType, Expression, TypeKind
from windloom.model.types import arrow_type
from windloom.plan.plan import Plan
from windloom.plan.scans import NativeScan, Signature, WovenScan
from windloom.rounds.lateness import before_round
from windloom.slicing.slice_id import PaneSlice
from windloom.state.state import State
from windloom.weave.round_input import ScanResult, take_partials, take_together, take_tuples
from windloom_tools.oracle.moments import OF_ONE, pair_of, shape_of
from windloom_tools.oracle.scalars import scalar

Row = Mapping[str, Any]

_PICKS = ("min_by", "max_by", "first", "last")


def partials_table(plan: Plan, scan: NativeScan, rows: Sequence[Row]) -> pa.Table:
    """One line per (slice, signature, group), as `read_partials` expects them."""
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        signature = _signature(scan.signature, row)
        if signature is None:
            continue
        tick = np.array([row["tick"]], np.int64)
        if isinstance(scan.slice_id, PaneSlice):
            pane = scan.slice_id.edges
            start = int(tick[0] - (tick[0] - pane.residue) % pane.period)
        else:
            start = int(scan.edges.last_edge(tick)[0])
        key = (*signature, *(_key(value_of(expression, row)) for expression in scan.group_by))
        cells.setdefault((start, *key), []).append(row)
    kinds = [pa.int64(), *(arrow_type(kind) for kind in scan.key_types)]
    columns: list[list[Any]] = [[key[i] if key[i] != "NaN" else math.nan for key in cells] for i in range(len(kinds))]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    columns_of = _columns(plan, scan.stream)
    for planned in scan.components:
        fields = [fields_of(planned, members) for members in cells.values()]
        for position, kind in enumerate(field_types(planned, columns_of)):
            arrays.append(pa.array([field[position] for field in fields], kind))
    return pa.Table.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])


def tuples_table(plan: Plan, scan: WovenScan, rows: Sequence[Row]) -> pa.Table:
    """Projected tuples, as `weave.tuples` expects them; rows have a `position` where tuples are counted."""
    kept = [(row, signature) for row in rows if (signature := _signature(scan.signature, row)) is not None]
    columns: dict[str, pa.Array] = {"tick": pa.array([row["tick"] for row, _ in kept], pa.int64())}
    if scan.counted_by is not None:
        columns["position"] = pa.array([row["position"] for row, _ in kept], pa.int64())
    for word in range(scan.signature.words):
        columns[f"s{word}"] = pa.array([signature[word] for _, signature in kept], pa.int64())
    sketched, kinds = _sketched(plan, scan), _projected_kinds(plan, scan)
    for i, column in enumerate(scan.columns):
        if i in sketched:
            kind, name = sketched[i]
            summary = {"buckets": bucket_of, "registers": packed_register_of}[kind]
            values = [None if row[name] is None else summary(row[name]) for row, _ in kept]
            columns[f"x{i}"] = pa.array(values, pa.int64())
        else:
            kind = kinds.get(column.sql)
            values = [scalar(column.sql)(row) for row, _ in kept]
            columns[f"x{i}"] = pa.array(values, pa.bool_() if kind is None else arrow_type(kind))
    return pa.table(columns)


def value_of(expression: Expression, row: Row) -> Any:
    return scalar(expression.sql)(row)


def _columns(plan: Plan, stream: str) -> Mapping[str, DataType]:
    return plan.stream(stream).columns


def _projected_kinds(plan: Plan, scan: WovenScan) -> dict[str, DataType]:
    """The types of projected columns by their SQL; what is not told is a condition."""
    found = {Expression.of_column(name).sql: kind for name, kind in _columns(plan, scan.stream).items()}
    for fed in scan.feeds:
        partial_set = plan.sets[fed.number]
        found |= {
            expression.sql: kind for expression, kind in zip(partial_set.group_by, partial_set.group_types, strict=True)
        }
        for planned in partial_set.components:
            if planned.component.argument is not None and planned.argument_type is not None:
                found[planned.component.argument.sql] = planned.argument_type
            others = zip(planned.component.others, planned.other_types, strict=True)
            found |= {other.sql: kind for other, kind in others}
    return found


def taken_of_plan(
    plan: Plan, rows: Sequence[Row] | Mapping[str, Sequence[Row]], state: State | None = None
) -> ScanResult:
    """What a round takes in of rows, of one stream or by stream, but for sets that count tuples."""
    before = before_round(plan, state or State())
    parts = []
    for scan in plan.scans:
        own = rows.get(scan.stream, ()) if isinstance(rows, Mapping) else rows
        if isinstance(scan, NativeScan):
            parts.append(take_partials(plan, scan, partials_table(plan, scan, own), before[scan.stream]))
        elif scan.counted_by is None:
            parts.append(take_tuples(plan, scan, tuples_table(plan, scan, own), before[scan.stream]))
    return take_together(parts) if parts else ScanResult()


def _signature(signature: Signature, row: Row) -> list[int] | None:
    """The words of a tuple's signature; None if no query wants it. NULL is not satisfied."""
    if signature.where is not None and value_of(signature.where, row) is not True:
        return None
    satisfied = [value_of(predicate, row) is True for predicate in signature.predicates]
    if signature.only_signed and not any(satisfied[: signature.wanting]):
        return None
    words = [satisfied[first : first + SIGNATURE_BITS] for first in range(0, len(satisfied), SIGNATURE_BITS)]
    return [sum(1 << bit for bit, holds in enumerate(word) if holds) for word in words]


def _sketched(plan: Plan, scan: WovenScan) -> dict[int, tuple[str, str]]:
    """Columns that hold what a sketch keeps of a value: its kind, and the column of the value."""
    return {
        read.argument: (planned.component.kind, str(planned.component.argument.column))
        for fed in scan.feeds
        for planned, read in zip(plan.sets[fed.number].components, fed.components, strict=True)
        if planned.component.kind in ("buckets", "registers")
    }


def _key(value: Any) -> Any:
    """As Spark groups: all NaN are one, and so are 0.0 and -0.0."""
    if not isinstance(value, float):
        return value
    return "NaN" if math.isnan(value) else value + 0.0


def field_types(planned: PlannedComponent, columns: Mapping[str, DataType]) -> list[pa.DataType]:
    kind = planned.component.kind
    if kind in ("count", "count(*)"):
        return [pa.int64()]
    assert planned.argument_type is not None
    if kind in _PICKS:
        by = planned.component.by
        values = [arrow_type(each) for each in (planned.argument_type, *planned.other_types)]
        return [pa.int64() if by is None else arrow_type(columns[str(by.column)]), *values]
    if kind in ("min", "max", "bit_and", "bit_or", "bit_xor"):
        return [arrow_type(planned.argument_type)]
    if kind == "moments":
        return [pa.int64(), pa.float64(), pa.float64()]
    if kind in ("comoments", "four_moments"):
        return [pa.int64(), *[pa.float64()] * (len(planned.fields) - 1)]
    if planned.argument_type.kind is TypeKind.FLOAT:
        return [pa.float64(), pa.float64()]
    if planned.argument_type.kind is TypeKind.DECIMAL:
        return [pa.decimal128(min(38, planned.argument_type.precision + 10), planned.argument_type.scale)]
    return [pa.int64()] * len(planned.fields)


def _order(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _pick(lowest: bool, others: int, structs: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The lowest or the highest of the structs (by, value …) whose first field is known, as Spark orders them."""
    known = [each for each in structs if each[0] is not None]
    keys = [tuple((value is not None, None if value is None else _order(value)) for value in each) for each in known]
    if not known:
        return (None,) * (2 + others)
    return known[keys.index((min if lowest else max)(keys))]


def _spread(numbers: Sequence[float]) -> float:
    return pair_of("covar_pop", [(number, number) for number in numbers]) or 0.0


def _paired(pairs: Sequence[tuple[float, float]]) -> tuple[Any, ...]:
    """The regression functions of Spark, and the least value of each column, which is its mean if it is constant."""
    if not pairs:
        return 0, *[None] * 7
    firsts, seconds = zip(*pairs, strict=True)
    means = (float(np.mean(column)) for column in (firsts, seconds))
    sums = (pair_of(name, pairs) for name in ("regr_syy", "regr_sxx", "regr_sxy"))
    return len(pairs), *means, *sums, min(firsts, key=_order), min(seconds, key=_order)


def fields_of(planned: PlannedComponent, rows: Sequence[Row]) -> tuple[Any, ...]:
    kind, where = planned.component.kind, planned.component.where
    if where is not None:
        rows = [row for row in rows if value_of(where, row) is True]
    if kind == "count(*)":
        return (len(rows),)
    assert planned.component.argument is not None
    values = [value_of(planned.component.argument, row) for row in rows]
    if kind in _PICKS:
        by = planned.component.by
        ranked = [row["tick"] if by is None else value_of(by, row) for row in rows]
        others = [[value_of(other, row) for row in rows] for other in planned.component.others]
        return _pick(kind in ("min_by", "first"), len(others), list(zip(ranked, values, *others, strict=True)))
    if kind == "comoments":
        assert planned.component.by is not None
        pairs = [(value, value_of(planned.component.by, row)) for value, row in zip(values, rows, strict=True)]
        return _paired([(float(first), float(second)) for first, second in pairs if None not in (first, second)])
    values = [value for value in values if value is not None]
    if kind == "count":
        return (len(values),)
    if not values:
        return (0, *[None] * (len(planned.fields) - 1)) if kind.endswith("moments") else (None,) * len(planned.fields)
    if kind in ("min", "max"):
        return ((min if kind == "min" else max)(values, key=_order),)
    if kind in ("bit_and", "bit_or", "bit_xor"):
        return (reduce({"bit_and": and_, "bit_or": or_, "bit_xor": xor}[kind], values),)
    if kind == "four_moments":
        numbers = list(map(float, values))
        spread = _spread(numbers)
        mean = float(np.mean(numbers))
        return (len(numbers), mean, spread, *(shape_of(name, numbers) for name in OF_ONE), min(numbers, key=_order))
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
