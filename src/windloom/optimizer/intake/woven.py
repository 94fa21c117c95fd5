"""A woven scan for sets of one stream: every distinct condition is a bit, every distinct expression a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from windloom.aggregates.planned import PlannedComponent
from windloom.model.expression import Expression
from windloom.model.predicate import Predicate
from windloom.model.stream import Stream
from windloom.model.types import TypeKind
from windloom.model.windows import Window
from windloom.optimizer.intake.signature import Signed, sign
from windloom.plan.physical import PartialSet
from windloom.plan.rows import PlannedRows, Store, strands_over
from windloom.plan.scans import FEW_CELLS, Kept, Projected, Signature, WovenScan, WovenSet
from windloom.weave.cut import Read
from windloom.weave.signatures import Bits
from windloom.weave.tuples import TICK


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a scan stores of its tuples, and the strands that read it: name of the query, window, predicate.

    `time` is the column, if any, that has the same value as the tick of a tuple, so that it is not fetched from
    Spark twice.
    """

    store: Store
    strands: tuple[tuple[str, Window, Predicate | None], ...]
    time: str | None = None

    @property
    def predicates(self) -> tuple[Predicate | None, ...]:
        """The predicates for which tuples are stored, and those by which strands select them."""
        stored = (None,) if self.store.predicates is None else self.store.predicates
        return (*stored, *(predicate for _, _, predicate in self.strands))


def keeping_of(store: Store, rows: Sequence[PlannedRows], stream: Stream) -> Keeping:
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
) -> WovenScan:
    """The woven scan of sets of one stream, whose slices are all of time, or all of positions counted in the same way.

    `watched` are sets that the scan does not feed, but whose late tuples it reports.
    """
    counted_by = sets[0].counted_by if sets else None
    # Positions count all tuples, whether a query wants them or not.
    signed = sign([*sets, *watched], () if keeping is None else keeping.predicates, pushes=counted_by is None)
    predicates = list(signed.predicates)
    filters = _filter_bits(sets, signed, predicates)
    columns = _Columns()
    for key in counted_by or ():
        columns.place(key, ())
    feeds = []
    for partial_set in sets:
        bit = signed.bit(partial_set)
        groups = tuple(columns.place(expression, (bit,)) for expression in partial_set.group_by)
        reads = tuple(_read(planned, bit, filters, columns) for planned in partial_set.components)
        feeds.append(WovenSet(partial_set.number, bit, groups, reads))
    stored = None if keeping is None else _kept(keeping, signed, columns)
    return WovenScan(
        number,
        keeping.store.stream if keeping is not None else (*sets, *watched)[0].stream,
        Signature(signed.pushed, tuple(predicates), len(signed.predicates), signed.only_signed),
        columns.projected(),
        _with_finer(feeds, {partial_set.number: partial_set for partial_set in sets}),
        counted_by,
        tuple((partial_set.number, signed.bit(partial_set)) for partial_set in watched),
        why,
        kept=stored,
    )


def _kept(keeping: Keeping, signed: Signed, columns: _Columns) -> Kept:
    store = keeping.store
    positions = tuple(
        None if name == keeping.time else columns.place(Expression.of_column(name), ()) for name in store.columns
    )
    bits = None if store.predicates is None else [signed.bit_of(predicate) for predicate in store.predicates]
    stored_bits = None if bits is None or None in bits else tuple(sorted(bit for bit in bits if bit is not None))
    strands = ((name, window, signed.bit_of(predicate)) for name, window, predicate in keeping.strands)
    conditions = {
        predicate.sql: signed.bit_of(predicate) for _, _, predicate in keeping.strands if predicate is not None
    }
    return Kept(store.columns, positions, stored_bits, tuple(strands), tuple(conditions.items()))


def _filter_bits(sets: Sequence[PartialSet], signed: Signed, predicates: list[Expression]) -> dict[str, int]:
    """The bit of the condition of every FILTER; new ones follow the predicates of sets.

    A condition is evaluated only for tuples that a query with it wants; for others it may fail.
    """
    bit_of = dict(signed.bits)
    users: dict[str, tuple[Expression, set[int | None]]] = {}
    for partial_set in sets:
        for planned in partial_set.components:
            where = planned.component.where
            if where is not None:
                users.setdefault(where.sql, (where, set()))[1].add(signed.bit(partial_set))
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


class _Columns:
    """Every distinct column once, with the bits of the queries that read it."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._readers: list[set[Bits]] = []
        self._is_plain: list[bool] = []
        self._made_by: list[PlannedComponent | None] = []

    def place(self, expression: Expression, bits: tuple[int | None, ...], part: PlannedComponent | None = None) -> int:
        """The position of the column; the card of `part` may project something else from the expression."""
        sql = expression.sql if part is None else part.card.woven_sql(expression.sql, part.argument_type)
        position = self._places.setdefault(sql, len(self._places))
        if position == len(self._readers):
            self._readers.append(set())
            self._is_plain.append(expression.column is not None)
            self._made_by.append(None if sql == expression.sql else part)
        self._readers[position].add(tuple(sorted({bit for bit in bits if bit is not None})))
        return position

    def projected(self) -> tuple[Projected, ...]:
        # Expressions are evaluated under the conditions of their readers; a column cannot fail and needs none.
        columns = zip(self._places, self._readers, self._is_plain, self._made_by, strict=True)
        return tuple(
            Projected(sql, None if is_plain or () in readers else tuple(sorted(readers)), part)
            for sql, readers, is_plain, part in columns
        )


def _with_finer(feeds: Sequence[WovenSet], sets: Mapping[int, PartialSet]) -> tuple[WovenSet, ...]:
    """Each set with the sets whose cells can be rolled up to its own; none of those is rolled up itself.

    Sets known to have many cells are left out: rolling them up would save nothing.
    """
    by_bit: dict[int | None, list[WovenSet]] = {}
    for fed in feeds:
        if not _has_many_cells(sets[fed.number]):
            by_bit.setdefault(fed.bit, []).append(fed)
    finer_of = {
        fed.number: [other.number for other in by_bit.get(fed.bit, []) if _can_feed(other, fed, sets)] for fed in feeds
    }
    from_tuples = {number for number, finer in finer_of.items() if not finer}
    return tuple(
        replace(fed, via=tuple(finer_number for finer_number in finer_of[fed.number] if finer_number in from_tuples))
        for fed in feeds
    )


def _has_many_cells(partial_set: PartialSet) -> bool:
    """Whether rolling up its cells was observed to be no less work than weaving tuples."""
    statistics = partial_set.statistics
    if statistics.origins.groups.source != "observed":
        return False
    cells = float(statistics.cells_per_second(np.array([partial_set.edges.edges_per_second]))[0])
    return FEW_CELLS * cells > statistics.events_per_second


def _can_feed(finer: WovenSet, fed: WovenSet, sets: Mapping[int, PartialSet]) -> bool:
    if not set(fed.groups) < set(finer.groups) or not sets[fed.number].window.rolls_up:
        return False
    finer_columns = set(zip(sets[finer.number].components, finer.components, strict=True))
    edges = sets[finer.number].edges
    needs_only_kept = finer_columns.issuperset(zip(sets[fed.number].components, fed.components, strict=True))
    return needs_only_kept and edges.union(sets[fed.number].edges) == edges


def _read(planned: PlannedComponent, bit: int | None, filters: Mapping[str, int], columns: _Columns) -> Read:
    component = planned.component
    condition = None if component.where is None else filters[component.where.sql]
    if component.argument is None:
        return Read(filter=condition)
    bits = (bit, condition)
    argument = columns.place(component.argument, bits, planned)
    if component.by is not None:
        return Read(argument, columns.place(component.by, bits), condition)
    return Read(argument, TICK if component.kind in planned.card.by_tick else None, condition)
