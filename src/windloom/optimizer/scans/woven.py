"""A woven scan for sets of one stream: every distinct predicate a bit, every distinct expression a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windloom.model.expression import Expression
from windloom.model.predicate import Predicate, common, implies
from windloom.plan.physical import PartialSet, PlannedComponent
from windloom.plan.woven import Projected, WovenScan, WovenSet
from windloom.weave.cut import Read
from windloom.weave.tuples import TICK, Bits


def weave_scan(number: int, sets: Sequence[PartialSet]) -> WovenScan:
    """`sets` are of one stream, and their slices of one kind: of time, or of positions counted in the same way."""
    wheres = dict.fromkeys(one.predicate for one in sets)
    given = [where for where in wheres if where is not None]
    pushed = None
    if None not in wheres:
        pushed = given[0] if len(given) == 1 else common(given)
    # What the pushed condition says already takes no bit.
    told = sorted((one for one in given if pushed is None or not implies(pushed, one)), key=lambda one: one.sql)
    bits = {one: bit for bit, one in enumerate(told)}
    predicates = [Expression(one.guarded_sql, one.expression.columns) for one in told]
    filters = _filter_bits(sets, bits, predicates)
    columns = _Columns()
    feeds = tuple(_set(one, bits, filters, columns) for one in sets)
    return WovenScan(
        number,
        sets[0].stream,
        None if pushed is None else pushed.expression,
        tuple(predicates),
        len(told),
        None not in wheres and len(told) == len(given) > 0,
        columns.projected(),
        feeds,
        sets[0].counted_by,
    )


def _filter_bits(
    sets: Sequence[PartialSet], bits: Mapping[Predicate, int], predicates: list[Expression]
) -> dict[str, int]:
    """The bit of every FILTER's condition; new ones are put behind the predicates of sets.

    A condition is evaluated only for tuples that a query with it wants: elsewhere it may fail.
    """
    found = {one.sql: bit for one, bit in bits.items()}
    users: dict[str, tuple[Expression, set[int | None]]] = {}
    for one in sets:
        for part in one.components:
            where = part.component.where
            if where is not None:
                users.setdefault(where.sql, (where, set()))[1].add(_bit(one, bits))
    for sql in sorted(users):
        if sql in found:
            continue
        where, wanted = users[sql]
        guards = [predicates[bit].sql for bit in sorted(bit for bit in wanted if bit is not None)]
        condition = f"CAST({sql} AS BOOLEAN)"  # a bare NULL is of no type, and needs one to be a condition
        if None not in wanted:
            condition = f"CASE WHEN {' OR '.join(f'({guard})' for guard in guards)} THEN {condition} END"
        found[sql] = len(predicates)
        predicates.append(Expression(condition, where.columns))
    return found


def _bit(one: PartialSet, bits: Mapping[Predicate, int]) -> int | None:
    return None if one.predicate is None else bits.get(one.predicate)


class _Columns:
    """Every distinct column once, with the bits of those who read it."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._readers: list[set[Bits]] = []
        self._is_plain: list[bool] = []

    def place(self, expression: Expression, bits: tuple[int | None, ...], sql: str | None = None) -> int:
        """Where the column is; `sql` is what is projected in place of the expression."""
        place = self._places.setdefault(expression.sql if sql is None else sql, len(self._places))
        if place == len(self._readers):
            self._readers.append(set())
            self._is_plain.append(expression.column is not None)
        self._readers[place].add(tuple(sorted({bit for bit in bits if bit is not None})))
        return place

    def projected(self) -> tuple[Projected, ...]:
        found = zip(self._places, self._readers, self._is_plain, strict=True)
        return tuple(Projected(sql, _guards(readers, is_plain)) for sql, readers, is_plain in found)


def _guards(readers: set[Bits], is_plain: bool) -> tuple[Bits, ...] | None:
    """Reading a column cannot fail; what somebody wants of every tuple is evaluated for every tuple."""
    return None if is_plain or () in readers else tuple(sorted(readers))


def _set(one: PartialSet, bits: Mapping[Predicate, int], filters: Mapping[str, int], columns: _Columns) -> WovenSet:
    bit = _bit(one, bits)
    groups = tuple(columns.place(part, (bit,)) for part in one.group_by)
    return WovenSet(one.number, bit, groups, tuple(_read(part, bit, filters, columns) for part in one.components))


def _read(part: PlannedComponent, bit: int | None, filters: Mapping[str, int], columns: _Columns) -> Read:
    component = part.component
    condition = None if component.where is None else filters[component.where.sql]
    if component.argument is None:
        return Read(filter=condition)
    bits = (bit, condition)
    argument = columns.place(component.argument, bits, part.card.woven_sql(component.argument.sql))
    if component.by is not None:
        return Read(argument, columns.place(component.by, bits), condition)
    return Read(argument, TICK if component.kind in part.card.by_tick else None, condition)
