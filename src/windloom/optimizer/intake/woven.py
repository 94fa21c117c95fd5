"""A woven scan for sets of one stream: every distinct condition is a bit, every distinct expression a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from windloom.aggregates.registry import PlannedComponent
from windloom.expressions.functions import truth
from windloom.expressions.node import Node, columns_of
from windloom.expressions.types import NotKnownError
from windloom.expressions.typing import resolve
from windloom.kernels.tuples.set_tuples import ComponentInput
from windloom.kernels.tuples.signatures import Bits
from windloom.kernels.tuples.tuples import TICK
from windloom.language.sql.join_names import tuple_tree
from windloom.model.expression import Expression
from windloom.model.predicate import Predicate
from windloom.model.stream import Stream
from windloom.model.types import DataType, TypeKind
from windloom.model.windows import Window
from windloom.optimizer.intake.signatures import SignatureBits, is_fed, sign
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.rows import PlannedRows, Retention, strands_over
from windloom.plan.scans import (
    FEW_CELLS,
    LocalColumn,
    LocalProjection,
    ProjectedColumn,
    RetainedColumns,
    Signature,
    WovenFeed,
    WovenScan,
)


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a scan stores of its tuples, and the strands that read it: name of the query, window, predicate.

    `time` is the column, if any, that has the same value as the tick of a tuple, so that it is not fetched from
    Spark twice.
    """

    store: Retention
    strands: tuple[tuple[str, Window, Predicate | None], ...]
    time: str | None = None


def keeping_of(store: Retention, rows: Sequence[PlannedRows], stream: Stream) -> Keeping:
    strands = (
        (planned_rows.name, strand) for planned_rows in rows for strand in strands_over(planned_rows.rows, store.stream)
    )
    is_instant = not stream.is_relation and stream.columns[stream.time].kind is TypeKind.TIMESTAMP
    named = tuple((name, strand.window, strand.condition) for name, strand in strands)
    return Keeping(store, named, stream.time if is_instant else None)


def woven_scan(
    number: int,
    sets: Sequence[PartialSet],
    watched: Sequence[PartialSet] = (),
    why: str = "",
    keeping: Keeping | None = None,
    *,
    sees_all: bool = False,
) -> WovenScan:
    """Return the woven scan of sets of one stream, sliced by time, or by positions that are counted in one way.

    `watched` are sets that the scan does not feed, but whose late tuples it reports. With `sees_all`, tuples that no
    set wants are read too.
    """
    counted_by = sets[0].counted_by if sets else None
    stored: list[Predicate | None] = []  # for which tuples are kept, and by which strands select them
    if keeping is not None:
        stored += [None] if keeping.store.predicates is None else keeping.store.predicates
        stored += [predicate for _, _, predicate in keeping.strands]
    # Positions count all tuples, whether a query wants them or not.
    signed = sign([*sets, *watched], stored, pushes=counted_by is None and not sees_all)
    predicates = list(signed.predicates)
    filters = _filter_bits(sets, signed, predicates)
    columns = _WovenColumns()
    for key in counted_by or ():
        columns.place(key, ())
    feeds = []
    for partial_set in sets:
        bit = signed.bit(partial_set.predicate)
        groups = tuple(columns.place(expression, (bit,)) for expression in partial_set.group_by)
        reads = tuple(_read(planned, bit, filters, columns) for planned in partial_set.components)
        feeds.append(WovenFeed(partial_set.number, bit, groups, reads))
    kept = None if keeping is None else _kept(keeping, signed, columns)
    return WovenScan(
        number,
        keeping.store.stream if keeping is not None else (*sets, *watched)[0].stream,
        Signature(signed.pushed, tuple(predicates), len(signed.predicates), signed.only_signed),
        columns.projected(),
        _with_finer(feeds, {partial_set.number: partial_set for partial_set in sets}),
        counted_by,
        tuple((partial_set.number, signed.bit(partial_set.predicate)) for partial_set in watched),
        why,
        kept=kept,
    )


def whole_scans(plan: Plan) -> Plan:
    """Return the plan with one woven scan per stream that sees every tuple, so that its tuples show its frontier.

    A stream whose tuples are also counted has one more scan for each way to count them; the one with slices of time is
    the first. A scan is `local` if its tuples can be projected without Spark.
    """
    scans: list[WovenScan] = []
    read = [each for each in plan.sets if not each.is_relation]
    kinds = dict.fromkeys((each.stream, each.counted_by) for each in read)
    for name, counted_by in sorted(kinds, key=lambda kind: kind[1] is not None):
        own = [each for each in read if (each.stream, each.counted_by) == (name, counted_by)]
        sets = [each for each in own if is_fed(each)]
        rest = [each for each in own if not is_fed(each)]
        scan = woven_scan(len(scans), sets, () if sets else rest, "it sees every tuple of its stream", sees_all=True)
        local = local_projection(scan, plan.stream(name))
        scans.append(replace(scan, local=None if isinstance(local, str) else local))
    return replace(plan, scans=tuple(scans))


def _kept(keeping: Keeping, signed: SignatureBits, columns: _WovenColumns) -> RetainedColumns:
    store = keeping.store
    positions = tuple(
        None if name == keeping.time else columns.place(Expression.of_column(name), ()) for name in store.columns
    )
    bits = None if store.predicates is None else [signed.bit(predicate) for predicate in store.predicates]
    stored_bits = None if bits is None or None in bits else tuple(sorted(bit for bit in bits if bit is not None))
    strands = ((name, window, signed.bit(predicate)) for name, window, predicate in keeping.strands)
    conditions = {predicate.sql: signed.bit(predicate) for _, _, predicate in keeping.strands if predicate is not None}
    return RetainedColumns(store.columns, positions, stored_bits, tuple(strands), tuple(conditions.items()))


def _filter_bits(sets: Sequence[PartialSet], signed: SignatureBits, predicates: list[Expression]) -> dict[str, int]:
    """Return the bit of the condition of every FILTER; new ones follow the predicates of sets.

    A condition is evaluated only for tuples that a query with it wants; for others it may fail.
    """
    bit_of = dict(signed.bits)
    users: dict[str, tuple[Expression, set[int | None]]] = {}
    for partial_set in sets:
        for planned in partial_set.components:
            where = planned.component.where
            if where is not None:
                users.setdefault(where.sql, (where, set()))[1].add(signed.bit(partial_set.predicate))
    for sql in sorted(users):
        if sql in bit_of:
            continue
        where, wanted = users[sql]
        condition = f"CAST({sql} AS BOOLEAN)"  # a bare NULL has no type, and needs one to be a condition
        if None not in wanted and where.column is None:
            guards = [f"({predicates[bit].sql})" for bit in sorted(bit for bit in wanted if bit is not None)]
            condition = f"CASE WHEN {' OR '.join(guards)} THEN {condition} END"
        bit_of[sql] = len(predicates)
        predicates.append(Expression(condition, where.columns))
    return bit_of


class _WovenColumns:
    """Every distinct column once, with the bits of the queries that read it."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._readers: list[set[Bits]] = []
        self._is_plain: list[bool] = []
        self._made_by: list[PlannedComponent | None] = []

    def place(self, expression: Expression, bits: tuple[int | None, ...], part: PlannedComponent | None = None) -> int:
        """Return the position of the column; the aggregator of `part` may project something else."""
        sql = expression.sql if part is None else part.aggregator.woven_sql(expression.sql, part.argument_type)
        position = self._places.setdefault(sql, len(self._places))
        if position == len(self._readers):
            self._readers.append(set())
            self._is_plain.append(expression.column is not None)
            self._made_by.append(None if sql == expression.sql else part)
        self._readers[position].add(tuple(sorted({bit for bit in bits if bit is not None})))
        return position

    def projected(self) -> tuple[ProjectedColumn, ...]:
        # Expressions are evaluated under the conditions of their readers; a column cannot fail and needs none.
        columns = zip(self._places, self._readers, self._is_plain, self._made_by, strict=True)
        return tuple(
            ProjectedColumn(sql, None if is_plain or () in readers else tuple(sorted(readers)), part)
            for sql, readers, is_plain, part in columns
        )


def _with_finer(feeds: Sequence[WovenFeed], sets: Mapping[int, PartialSet]) -> tuple[WovenFeed, ...]:
    """Return each set with the sets whose cells can be rolled up to its own; none of those is rolled up itself.

    Sets known to have many cells are left out: rolling them up would save nothing.
    """

    def can_feed(finer: WovenFeed, fed: WovenFeed) -> bool:
        own, other = sets[fed.number], sets[finer.number]
        if not set(fed.groups) < set(finer.groups) or not own.window.rolls_up:
            return False
        columns = set(zip(other.components, finer.components, strict=True))
        has_all = columns.issuperset(zip(own.components, fed.components, strict=True))
        return has_all and other.edges.union(own.edges) == other.edges

    by_bit: dict[int | None, list[WovenFeed]] = {}
    for fed in feeds:
        statistics, rate = sets[fed.number].statistics, sets[fed.number].edges.edges_per_second
        cells = float(statistics.cells_per_second(np.array([rate]))[0])
        if statistics.origins.groups.source != "observed" or FEW_CELLS * cells <= statistics.events_per_second:
            by_bit.setdefault(fed.bit, []).append(fed)
    finer_of = {fed.number: [each.number for each in by_bit.get(fed.bit, ()) if can_feed(each, fed)] for fed in feeds}
    from_tuples = {number for number, finer in finer_of.items() if not finer}
    return tuple(
        replace(fed, via=tuple(number for number in finer_of[fed.number] if number in from_tuples)) for fed in feeds
    )


def _read(
    planned: PlannedComponent, bit: int | None, filters: Mapping[str, int], columns: _WovenColumns
) -> ComponentInput:
    component = planned.component
    condition = None if component.where is None else filters[component.where.sql]
    if component.argument is None:
        return ComponentInput(filter=condition)
    bits = (bit, condition)
    argument = columns.place(component.argument, bits, planned)
    others = tuple(columns.place(other, bits) for other in component.others)
    by = TICK if component.kind in planned.aggregator.by_tick else None
    if component.by is not None:
        by = columns.place(component.by, bits)
    return ComponentInput(argument, by, condition, others)


# Whether the tuples of a woven scan can be projected without Spark: our evaluator must know every expression.

#: Times whose ticks do not depend on settings of the session.
_TIMES = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ, TypeKind.INTEGER)
#: The types that a column may have in files to be read.
_KINDS = (*_TIMES, TypeKind.FLOAT, TypeKind.DECIMAL, TypeKind.BOOLEAN, TypeKind.STRING, TypeKind.DATE)


def local_projection(scan: WovenScan, stream: Stream) -> LocalProjection | str:
    """Return the projection of a scan with all types, or, as text, the part that only Spark can evaluate."""
    if scan.counted_by is not None or scan.kept is not None or stream.is_relation:
        return "positions of tuples, kept tuples and relations"
    if stream.columns[stream.time].kind not in _TIMES:
        return f"times of type {stream.columns[stream.time]}"
    signature = scan.signature
    try:
        where = None if signature.where is None else truth("WHERE", _node(signature.where.sql, stream))
        predicates = tuple(truth("WHERE", _node(predicate.sql, stream)) for predicate in signature.predicates)
        columns = tuple(_column(projected, scan, stream) for projected in scan.columns)
    except NotKnownError as unknown:
        return str(unknown)
    reads = {stream.time}
    for node in (*predicates, *(column.node for column in columns), *(() if where is None else (where,))):
        reads |= columns_of(node)
    others = [name for name in sorted(reads) if stream.columns[name].kind not in _KINDS]
    if others:
        return f"column '{others[0]}' of type {stream.columns[others[0]]}"
    return LocalProjection(tuple(sorted(reads)), where, predicates, columns)


def _column(projected: ProjectedColumn, scan: WovenScan, stream: Stream) -> LocalColumn:
    component = projected.component
    if component is None:
        node = _node(projected.guarded_sql(scan.signature.predicates), stream)
        kind: DataType = node.kind
        if kind.kind not in _KINDS:  # Spark decides about values of any other type
            raise NotKnownError(f"a value of type {kind}")
        return LocalColumn(node)
    argument_type, argument = component.argument_type, component.component.argument
    if argument_type is None or argument is None or argument_type.kind not in component.aggregator.woven_without_spark:
        raise NotKnownError(f"what is kept of '{component.component}'")
    return LocalColumn(_node(projected.guarded_sql(scan.signature.predicates, argument.sql), stream), component)


def _node(sql: str, stream: Stream) -> Node:
    return resolve(tuple_tree(sql, stream.columns), stream.columns)
