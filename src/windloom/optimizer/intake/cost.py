"""The predicted cost of a scan, up to the cells of the sets that it feeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.seconds import Scanning, columns_of, compared_classes, keeping_cost, set_scanning
from windloom.optimizer.intake.signatures import signatures_of, update_cost
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import NativeFeed, NativeScan, RolledUp, Scan, WovenFeed, WovenScan
from windloom.slicing.slice_id import PaneSlice

#: Seconds to evaluate a predicate on a tuple. Not measured by `calibrate`, since it depends on the predicate.
PREDICATE_SECONDS = 4e-9
#: Where the driver reads files, placing a value between the constants of all predicates takes as long as evaluating
#: this many predicates.
PREDICATES_PER_COLUMN = 2
#: Seconds to read a column of a tuple from a Parquet file without Spark, and to project it.
FILE_COLUMN_SECONDS = 8e-9
_BYTES = 8.0
#: The cost of a set that no tuple can be part of.
NOTHING = Scanning(0.0, 0.0, 0.0)


def scan_costs(plan: Plan, scan: Scan, constants: Constants) -> Iterator[tuple[NativeFeed | WovenFeed, Scanning]]:
    """Yield the cost of a scan, divided among the sets it feeds in proportion to what each would cost alone."""
    sets = [plan.sets[fed.number] for fed in scan.feeds]
    if not sets:  # it only watches for late tuples
        return
    whole = scan_cost(scan, sets, constants)
    constants = constants.scaled(sets[0].statistics.pace)
    alone = [set_scanning(constants, partial_set) for partial_set in sets]
    feeds: Sequence[NativeFeed | WovenFeed] = scan.feeds
    for fed, alone_cost in zip(feeds, alone, strict=True):
        parts = []
        for name in ("scan", "partials", "merge"):
            cost, total = getattr(whole, name), sum(getattr(scanning, name) for scanning in alone)
            parts.append(cost * getattr(alone_cost, name) / total if total > 0 else cost / len(alone))
        yield fed, Scanning(*parts)


def scan_cost(scan: Scan, sets: Sequence[PartialSet], constants: Constants) -> Scanning:
    """Return the cost of a scan for all sets that it feeds together, of which there is at least one."""
    constants, rate = constants.scaled(sets[0].statistics.pace), scanned_rate(sets)
    if isinstance(scan, NativeScan):
        return native_cost(constants, scan, sets, rate)
    return woven_cost(constants, scan, sets, rate)


def scanned_rate(sets: Sequence[PartialSet]) -> float:
    """Return tuples of their stream per second, of event time or of positions, as the sets count."""
    return max(partial_set.statistics.events_per_second / partial_set.statistics.selectivity for partial_set in sets)


def native_cost(
    constants: Constants, scan: NativeScan, sets: Sequence[PartialSet], events_per_second: float
) -> Scanning:
    """Return seconds per second of event time; `events_per_second` is the rate of the stream."""
    seconds = constants.seconds
    fields, keys = sum(len(planned.fields) for planned in scan.components), len(scan.key_types)
    per_tuple = seconds("tuple") + fields * seconds("tuple_field") + keys * seconds("tuple_key")
    per_tuple += compared_classes(scan.slice_id) * seconds("tuple_class")
    wanted = _wanted_rate(scan, sets, events_per_second)
    partials = _partials(scan, sets, wanted)
    per_partial = seconds("partial") + (fields + keys) * seconds("partial_field")
    per_cell = seconds("read") + (keys > 0) * seconds("read_key") + columns_of(scan.components) * seconds("read_column")
    shuffle = seconds("shuffle") / sets[0].statistics.round_seconds
    read = wanted * per_tuple + (events_per_second - wanted) * seconds("tuple")
    cells = partials * per_cell
    for partial_set in sets:
        statistics, components = partial_set.statistics, partial_set.components
        if not scan.is_plain:
            picked = partials * (statistics.selectivity if scan.signature.predicates else 1.0)
            cells += picked * (seconds("read") + columns_of(components) * seconds("read_column"))
        cells += keeping_cost(constants, statistics, partial_set.edges.edges_per_second, components)
    return Scanning(_predicates(scan, sets, events_per_second) + read + shuffle, partials * per_partial, cells)


def woven_cost(constants: Constants, scan: WovenScan, sets: Sequence[PartialSet], events_per_second: float) -> Scanning:
    """Return seconds per second of event time, for tuples that are projected, fetched and woven."""
    seconds = constants.seconds
    wanted = _wanted_rate(scan, sets, events_per_second)
    columns = 1 + scan.signature.words + len(scan.columns)
    updates = update_cost(constants, scan, sets, wanted).seconds
    for partial_set in sets:
        statistics, components = partial_set.statistics, partial_set.components
        rate = partial_set.edges.edges_per_second
        lists = sum(planned.family.is_list for planned in components)
        updates += statistics.events_per_second * lists * seconds("woven_list")
        cells = min(statistics.taken_per_second(np.array([rate]))[0], statistics.events_per_second)
        updates += float(cells) * columns_of(components) * seconds("woven_cell")
        updates += keeping_cost(constants, statistics, rate, components)
    predicates = _predicates(scan, sets, events_per_second)
    if scan.local is not None:
        return Scanning(predicates, events_per_second * columns * FILE_COLUMN_SECONDS, updates)
    return Scanning(
        predicates + events_per_second * seconds("woven_tuple"), wanted * columns * seconds("woven_column"), updates
    )


def scan_bytes(scan: Scan, sets: Sequence[PartialSet]) -> float:
    """Return bytes of tuples, or of partials, that a scan fetches per second, if a value takes eight bytes."""
    if not sets:
        return 0.0
    rate = scanned_rate(sets)
    wanted = _wanted_rate(scan, sets, rate)
    if isinstance(scan, WovenScan):
        return wanted * _BYTES * (1 + scan.signature.words + len(scan.columns))
    partials = _partials(scan, sets, wanted)
    return partials * _BYTES * (1 + len(scan.key_types) + sum(len(planned.fields) for planned in scan.components))


def _wanted_rate(scan: Scan, sets: Sequence[PartialSet], events_per_second: float) -> float:
    """Return the number of tuples per second that some set wants, if predicates are independent of each other."""
    if scan.signature.sees_all:
        return events_per_second
    shares = {partial_set.predicate: partial_set.statistics.selectivity for partial_set in sets}
    return events_per_second * (1 - prod(1 - share for share in shares.values()))


def _predicates(scan: Scan, sets: Sequence[PartialSet], events_per_second: float) -> float:
    signature = scan.signature
    evaluated = len(signature.predicates) + (signature.where is not None and len(sets) > 1)
    if isinstance(scan, WovenScan) and scan.local is not None:
        # The driver looks predicates up: it takes time to place the values of a column, not to compare them.
        columns = {name for predicate in signature.predicates for name in predicate.columns}
        evaluated = min(evaluated, PREDICATES_PER_COLUMN * len(columns))
    return events_per_second * evaluated * PREDICATE_SECONDS


def rolled_up(scan: WovenScan, sets: Sequence[PartialSet], constants: Constants) -> RolledUp | None:
    """Return which of the sets that a scan feeds are predicted to be rolled up from signatures."""
    if not sets:
        return None
    return update_cost(constants, scan, sets, _wanted_rate(scan, sets, scanned_rate(sets))).rolled_up


def _partials(scan: NativeScan, sets: Sequence[PartialSet], events_per_second: float) -> float:
    """Return the partials per second, assuming that the groupings of the sets are independent of each other."""
    left, groups = set(scan.group_by), signatures_of(scan, sets)
    for partial_set in sorted(sets, key=lambda each: (-len(each.group_by), each.statistics.groups)):
        if left & set(partial_set.group_by):
            left -= set(partial_set.group_by)
            groups *= partial_set.statistics.groups
    pane = scan.slice_id
    rate = 1e6 / pane.edges.period if isinstance(pane, PaneSlice) else scan.edges.edges_per_second
    finest = max((partial_set.statistics for partial_set in sets), key=lambda statistics: statistics.groups)
    united = replace(finest, events_per_second=events_per_second, groups=groups)
    if len(sets) > 1:
        united = replace(united, regularity=0.0)
    return float(united.taken_per_second(np.array([rate]))[0])
