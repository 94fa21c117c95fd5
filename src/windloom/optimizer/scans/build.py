"""A scan for sets of one stream: predicates as bits of a signature, groupings united, slices cut at all edges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from windloom.model.predicate import common, implies
from windloom.plan.physical import Fed, PartialSet, Plan, Scan
from windloom.slicing.edges import EdgeSet
from windloom.slicing.identify import choose_slice_id


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
    predicates = sorted({where.expression for where in told})
    types = {part: kind for one in sets for part, kind in zip(one.group_by, one.group_types, strict=True)}
    group_by = tuple(sorted(types))
    components = tuple(dict.fromkeys(part for one in sets for part in one.components))
    edges = sets[0].edges if len(sets) == 1 else EdgeSet.of(each for one in sets for each in one.edges.classes)
    feeds = [
        Fed(
            one.number,
            predicates.index(one.where) if one.where in predicates else None,
            tuple(group_by.index(part) for part in one.group_by),
            tuple(components.index(part) for part in one.components),
            (None,) * len(one.components),
        )
        for one in sets
    ]
    return Scan(
        number,
        sets[0].stream,
        None if pushed is None else pushed.expression,
        tuple(predicates),
        None not in wheres and len(told) == len(given) > 0,
        group_by,
        tuple(types[part] for part in group_by),
        components,
        edges,
        choose_slice_id(edges),
        _in_order(feeds, {one.number: one for one in sets}),
    )


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
        and set(fed.components) <= set(other.components)
        and edges.union(sets[fed.number].edges) == edges
    )
