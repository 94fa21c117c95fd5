"""Native partial aggregation: one `groupBy` by slice, signature and group."""

from __future__ import annotations

from itertools import chain

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.model.stream import Stream
from windloom.plan.scans import NativeScan
from windloom.spark.intake.native import component_sql, input_sql, signature_sql, slice_sql, tick_sql


def partials_frame(scan: NativeScan, stream: Stream, frame: DataFrame, *, timed: bool = True) -> DataFrame:
    """`slice`, `s0…` (signature), `g0…`, each component's fields `c0…`; if `timed`, also `first` and `seen`, the ticks.

    There is one row per (slice, signature, group) that holds a tuple. `slice_starts` gives the starts of slices.
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


def _used_by(scan: NativeScan, what: str) -> list[set[int | None]]:
    """For each of the scan's components or grouping columns, the bits of the sets that use it."""
    count = len(scan.components if what == "components" else scan.group_by)
    found: list[set[int | None]] = [set() for _ in range(count)]
    for fed in scan.feeds:
        for position in fed.components if what == "components" else fed.groups:
            found[position].add(fed.bit)
    return found


def _guarded(sql: str, scan: NativeScan, bits: set[int | None]) -> str:
    """The expression, evaluated only for tuples that some set wants: it may fail for tuples that predicates exclude."""
    if None in bits or sql.isidentifier():
        return sql
    predicates = scan.signature.predicates
    satisfied = " OR ".join(f"({predicates[bit].sql})" for bit in sorted(bit for bit in bits if bit is not None))
    return f"CASE WHEN {satisfied} THEN {sql} END"
