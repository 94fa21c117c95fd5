"""The predicted cost of a scan, up to the cells of the sets that it feeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from windloom.model.signatures import most_signatures
from windloom.optimizer.cost.calibrated import Scanning, columns_of, compared_classes, scanning_cost
from windloom.optimizer.cost.constants import Constants
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.scans import Fed, NativeScan, Scan, WovenScan, WovenSet
from windloom.plan.statistics import Statistics
from windloom.slicing.identify import PaneSlice

#: Seconds to evaluate a predicate on a tuple. Not measured by `calibrate`, since it depends on the predicate.
PREDICATE_SECONDS = 4e-9
#: The share of tuples that a predicate is assumed to let through if that was not measured.
SELECTIVITY = 0.5
#: More signatures than any stream has tuples; keeps products finite.
MOST_SIGNATURES = 1e12

_PARTS = ("scan", "partials", "merge")
#: The cost of a set that no tuple can be part of.
NOTHING = Scanning(0.0, 0.0, 0.0)


def scan_costs(plan: Plan, scan: Scan, constants: Constants) -> Iterator[tuple[Fed | WovenSet, Scanning]]:
    """The cost of a scan, divided among the sets it feeds in proportion to what each would cost alone."""
    sets = [plan.sets[fed.number] for fed in scan.feeds]
    if not sets:  # it only watches for late tuples
        return
    constants = constants.scaled(sets[0].statistics.pace)
    rate = plan.stream(scan.stream).events_per_second or max(one.statistics.events_per_second for one in sets)
    if len(sets) == 1 or sets[0].counted_by is not None:
        rate = max(one.statistics.events_per_second for one in sets)  # behind its predicate, if that was measured
    if isinstance(scan, NativeScan):
        whole = native_cost(constants, scan, sets, rate)
    else:
        whole = woven_cost(constants, scan, sets, rate)
    alone = [
        scanning_cost(
            constants, one.statistics, one.edges.edges_per_second, one.slice_id, len(one.group_by), one.components
        )
        for one in sets
    ]
    feeds: Sequence[Fed | WovenSet] = scan.feeds
    for position, fed in enumerate(feeds):
        parts = (_part(getattr(whole, name), [getattr(one, name) for one in alone], position) for name in _PARTS)
        yield fed, Scanning(*parts)


def _part(whole: float, alone: Sequence[float], position: int) -> float:
    total = sum(alone)
    return whole * alone[position] / total if total > 0 else whole / len(alone)


def native_cost(
    constants: Constants, scan: NativeScan, sets: Sequence[PartialSet], events_per_second: float
) -> Scanning:
    """Seconds per second of event time; `events_per_second` is the rate of the stream."""
    seconds, signature = constants.seconds, scan.signature
    fields, keys = sum(len(part.fields) for part in scan.components), len(scan.key_types)
    a_tuple = seconds("tuple") + fields * seconds("tuple_field") + keys * seconds("tuple_key")
    a_tuple += compared_classes(scan.slice_id) * seconds("tuple_class")
    kept = _kept(scan, sets, events_per_second)
    signatures = 1.0
    if signature.predicates:
        filters = len({bit for fed in scan.feeds for bit in fed.filters} - {fed.bit for fed in scan.feeds} - {None})
        signatures = most_signatures([one.predicate for one in sets if one.predicate]) * 2.0**filters
    partials = _partials(scan, kept, min(signatures, MOST_SIGNATURES) * groups_of(scan, sets))
    a_partial = seconds("partial") + (fields + keys) * seconds("partial_field")
    a_cell = seconds("read") + (keys > 0) * seconds("read_key") + columns_of(scan.components) * seconds("read_column")
    return Scanning(
        _predicates(scan, sets, events_per_second) + kept * a_tuple,
        partials * a_partial,
        partials * a_cell + sum(_feeding(constants, scan, one, partials) for one in sets),
    )


def woven_cost(constants: Constants, scan: WovenScan, sets: Sequence[PartialSet], events_per_second: float) -> Scanning:
    """The same for tuples that are projected, fetched and woven."""
    seconds = constants.seconds
    kept = _kept(scan, sets, events_per_second)
    columns = 1 + scan.signature.words + len(scan.columns)
    updates = 0.0
    for one in sets:
        picked = kept * (SELECTIVITY if scan.signature.predicates and one.predicate is not None else 1.0)
        lists = sum(part.family.is_list for part in one.components)
        plain = columns_of(tuple(part for part in one.components if not part.family.is_list))
        updates += picked * (plain * seconds("woven_update") + lists * seconds("woven_list"))
        cells = one.statistics.cells_per_second(np.array([one.edges.edges_per_second]))[0]
        updates += float(min(cells, picked)) * columns_of(one.components) * seconds("woven_cell")
    return Scanning(
        _predicates(scan, sets, events_per_second) + events_per_second * seconds("woven_tuple"),
        kept * columns * seconds("woven_column"),
        updates,
    )


def _kept(scan: Scan, sets: Sequence[PartialSet], events_per_second: float) -> float:
    """The tuples that some set wants."""
    if scan.signature.sees_all or len(sets) == 1:
        return events_per_second
    return events_per_second * (1 - (1 - SELECTIVITY) ** len({one.predicate for one in sets}))


def _predicates(scan: Scan, sets: Sequence[PartialSet], events_per_second: float) -> float:
    signature = scan.signature
    evaluated = len(signature.predicates) + (signature.where is not None and len(sets) > 1)
    return events_per_second * evaluated * PREDICATE_SECONDS


def _feeding(constants: Constants, scan: NativeScan, one: PartialSet, partials: float) -> float:
    if scan.is_plain:
        return 0.0
    picked = partials * (SELECTIVITY if scan.signature.predicates and one.predicate is not None else 1.0)
    return picked * (constants.seconds("read") + columns_of(one.components) * constants.seconds("read_column"))


def _partials(scan: NativeScan, events_per_second: float, groups: float) -> float:
    rate = scan.edges.edges_per_second
    if isinstance(scan.slice_id, PaneSlice):
        rate = 1e6 / scan.slice_id.edges.period
    return float(Statistics(events_per_second, groups).cells_per_second(np.array([rate]))[0])


def groups_of(scan: NativeScan, sets: Sequence[PartialSet]) -> float:
    """The number of distinct groups of a scan, assuming that the groupings of its sets are independent."""
    left, groups = set(scan.group_by), 1.0
    for one in sorted(sets, key=lambda one: (-len(one.group_by), one.statistics.groups)):
        if left & set(one.group_by):
            left -= set(one.group_by)
            groups *= one.statistics.groups
    return groups
