"""A scan for sets of one stream: predicates as bits of a signature, groupings united, slices cut at all edges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from windloom.model.expression import Expression
from windloom.model.predicate import common, implies
from windloom.plan.physical import Fed, PartialSet, Plan, PlannedComponent, Scan
from windloom.slicing.edges import EdgeSet
from windloom.slicing.identify import choose_slice_id

#: Conditions of filters, beyond those that sets have, that become bits of a signature.
MOST_FILTER_BITS = 3


def is_fed(one: PartialSet) -> bool:
    """Can any tuple be part of the set?"""
    return one.predicate is None or not one.predicate.is_never


def given_scans(sets: Sequence[PartialSet], groups: Iterable[Collection[int]]) -> tuple[Scan, ...]:
    """Scans as they were recorded: `groups` has numbers of sets."""
    return build_scans([sets[number] for number in group] for group in groups)


def scans_by_grouping(plan: Plan) -> Plan:
    """The plan with scans whose sets all have the same grouping: groups can be divided into shards only with these."""
    found: dict[tuple[object, ...], list[PartialSet]] = {}
    for scan in plan.scans:
        for fed in scan.feeds:
            one = plan.sets[fed.number]
            found.setdefault((scan.number, one.group_by), []).append(one)
    return plan if len(found) == len(plan.scans) else replace(plan, scans=build_scans(found.values()))


def build_scans(groups: Iterable[Iterable[PartialSet]]) -> tuple[Scan, ...]:
    """In the order of the first set that each one feeds."""
    ordered = [sorted((one for one in group if is_fed(one)), key=lambda one: one.number) for group in groups]
    ordered = sorted((group for group in ordered if group), key=lambda group: group[0].number)
    return tuple(build_scan(number, group) for number, group in enumerate(ordered))


def build_scan(number: int, sets: Sequence[PartialSet]) -> Scan:
    wheres = dict.fromkeys(one.predicate for one in sets)
    given = [where for where in wheres if where is not None]
    pushed = None
    if None not in wheres:
        pushed = given[0] if len(given) == 1 else common(given)
    # What the pushed condition says already takes no bit.
    told = [where for where in given if pushed is None or not implies(pushed, where)]
    signed = {where.sql: Expression(where.guarded_sql, where.expression.columns) for where in told}
    signed |= _filter_bits(sets, signed)
    bits = {sql: bit for bit, sql in enumerate(sorted(signed))}
    types = {part: kind for one in sets for part, kind in zip(one.group_by, one.group_types, strict=True)}
    group_by = tuple(sorted(types))
    kept = {part: _kept(part, bits) for one in sets for part in one.components}
    components = tuple(dict.fromkeys(part for part, _ in kept.values()))
    edges = sets[0].edges if len(sets) == 1 else EdgeSet.of(each for one in sets for each in one.edges.classes)
    feeds = [
        Fed(
            one.number,
            bits.get(one.predicate.sql) if one.predicate is not None else None,
            tuple(group_by.index(part) for part in one.group_by),
            tuple(components.index(kept[part][0]) for part in one.components),
            tuple(kept[part][1] for part in one.components),
        )
        for one in sets
    ]
    return Scan(
        number,
        sets[0].stream,
        None if pushed is None else pushed.expression,
        tuple(signed[sql] for sql in bits),
        None not in wheres and len(told) == len(given) > 0,
        group_by,
        tuple(types[part] for part in group_by),
        components,
        edges,
        choose_slice_id(edges),
        _in_order(feeds, {one.number: one for one in sets}),
        sets[0].counted_by,
    )


def _filter_bits(sets: Iterable[PartialSet], signed: Collection[str]) -> dict[str, Expression]:
    """Conditions of filters that become bits: few, since each may double the signatures."""
    found = {part.component.where for one in sets for part in one.components if _may_be_bit(part)}
    new = {where.sql: where for where in found if where is not None and where.sql not in signed}
    return new if len(new) <= MOST_FILTER_BITS else {}


def _may_be_bit(part: PlannedComponent) -> bool:
    """What is computed may fail for tuples that the filter leaves out; reading a column cannot."""
    component = part.component
    read = [one for one in (component.argument, component.by) if one is not None]
    return component.where is not None and not part.family.is_list and all(one.column is not None for one in read)


def _kept(part: PlannedComponent, bits: Mapping[str, int]) -> tuple[PlannedComponent, int | None]:
    """What the scan keeps for a component: the component itself, or the one without its filter and the filter's bit."""
    where = part.component.where
    if where is None or where.sql not in bits or not _may_be_bit(part):
        return part, None
    return replace(part, component=replace(part.component, where=None)), bits[where.sql]


def _in_order(feeds: Sequence[Fed], sets: dict[int, PartialSet]) -> tuple[Fed, ...]:
    """Each set behind the one it is fed via: the coarsest grouping of the same tuples that holds all it needs."""
    placed: list[Fed] = []
    for fed in sorted(feeds, key=lambda each: (-len(each.groups), each.number)):
        able = [other for other in placed if _can_feed(other, fed, sets)]
        least = min(able, key=lambda other: (len(other.groups), other.number), default=None)
        placed.append(fed if least is None else replace(fed, via=least.number))
    return tuple(placed)


def _can_feed(other: Fed, fed: Fed, sets: dict[int, PartialSet]) -> bool:
    edges = sets[other.number].edges
    return (
        other.bit == fed.bit
        and len(other.groups) > len(fed.groups)
        and set(fed.groups) <= set(other.groups)
        and set(zip(fed.components, fed.filters, strict=True)) <= set(zip(other.components, other.filters, strict=True))
        and edges.union(sets[fed.number].edges) == edges
    )
