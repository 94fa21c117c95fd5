"""A native scan for sets of one stream: groupings united, slices cut at all edges, predicates as bits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from windloom.aggregates.planned import PlannedComponent
from windloom.model.expression import Expression
from windloom.optimizer.intake.signature import sign
from windloom.plan.physical import PartialSet
from windloom.plan.scans import Fed, NativeScan, Signature
from windloom.slicing.edges import EdgeSet
from windloom.slicing.identify import choose_slice_id

#: At most this many conditions of filters become bits of a signature: each may double the partials.
MOST_FILTER_BITS = 3


def native_scan(number: int, sets: Sequence[PartialSet], why: str = "", *, tells: bool = True) -> NativeScan:
    """The native scan of sets of one stream, whose slices are of time and whose components all have native partials."""
    signed = sign(sets)
    filters = _filter_bits(sets, signed.bits)
    bits = {**signed.bits, **{sql: len(signed.bits) + i for i, sql in enumerate(sorted(filters))}}
    conditions = tuple(filters[sql] for sql in sorted(filters))
    types = {
        expression: kind
        for partial_set in sets
        for expression, kind in zip(partial_set.group_by, partial_set.group_types, strict=True)
    }
    group_by = tuple(sorted(types))
    scanned = {planned: _kept(planned, bits) for partial_set in sets for planned in partial_set.components}
    components = tuple(dict.fromkeys(planned for planned, _ in scanned.values()))
    edges = (
        sets[0].edges
        if len(sets) == 1
        else EdgeSet.of(each for partial_set in sets for each in partial_set.edges.classes)
    )
    feeds = tuple(
        Fed(
            partial_set.number,
            signed.bit(partial_set),
            tuple(group_by.index(expression) for expression in partial_set.group_by),
            tuple(components.index(scanned[planned][0]) for planned in partial_set.components),
            tuple(scanned[planned][1] for planned in partial_set.components),
        )
        for partial_set in sets
    )
    return NativeScan(
        number,
        sets[0].stream,
        Signature(signed.pushed, signed.predicates + conditions, len(signed.predicates), signed.only_signed),
        group_by,
        tuple(types[expression] for expression in group_by),
        components,
        edges,
        choose_slice_id(edges),
        feeds,
        tells,
        why,
    )


def _filter_bits(sets: Iterable[PartialSet], signed: Collection[str]) -> dict[str, Expression]:
    """The filter conditions that become bits, by SQL; none if there are too many."""
    wheres = {
        planned.component.where
        for partial_set in sets
        for planned in partial_set.components
        if _may_be_bit(partial_set, planned)
    }
    new = {where.sql: where for where in wheres if where is not None and where.sql not in signed}
    return new if len(new) <= MOST_FILTER_BITS else {}


def _may_be_bit(partial_set: PartialSet, planned: PlannedComponent) -> bool:
    """Whether the filter of a component may become a bit.

    Computing an expression may fail for tuples that no query wants; reading a column cannot. So the component must only
    read columns, unless the set wants every tuple.
    """
    component = planned.component
    read = [each for each in (component.argument, component.by) if each is not None]
    is_safe = partial_set.predicate is None or (component.where is not None and component.where.column is not None)
    return component.where is not None and is_safe and all(each.column is not None for each in read)


def _kept(planned: PlannedComponent, bits: Mapping[str, int]) -> tuple[PlannedComponent, int | None]:
    """What a scan aggregates for a component: the component itself, or one without its filter and the filter's bit."""
    where = planned.component.where
    read = [each for each in (planned.component.argument, planned.component.by) if each is not None]
    if where is None or where.sql not in bits or any(each.column is None for each in read):
        return planned, None
    return replace(planned, component=replace(planned.component, where=None)), bits[where.sql]
