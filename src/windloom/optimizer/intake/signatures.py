"""How many signatures tuples have, and which sets of a woven scan are predicted to be rolled up from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from windloom.aggregates.planned import PlannedComponent
from windloom.model.expression import Expression
from windloom.model.signatures import most_signatures
from windloom.optimizer.cost.calibrated import columns_of
from windloom.optimizer.cost.constants import Constants
from windloom.plan.physical import PartialSet
from windloom.plan.scans import FEW_CELLS, FEWEST_SIGNED, SIGNED_SHARE, RolledUp, Scan, WovenScan
from windloom.slicing.edges import EdgeSet

_most = lru_cache(maxsize=64)(most_signatures)

#: To number the signature and the cell of a tuple takes about as long as to fold it into this many columns.
_NUMBERED_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Updates:
    """Seconds per second of event time to make the values of sets, and which sets are rolled up."""

    seconds: float
    rolled_up: RolledUp | None


def signatures_of(scan: Scan, sets: Sequence[PartialSet]) -> float:
    """The number of different signatures of tuples: as observed, or else as many as their predicates allow."""
    signature = scan.signature
    if not signature.predicates:
        return 1.0
    filters = len(signature.predicates) - signature.wanting
    most = _most(tuple(partial_set.predicate for partial_set in sets if partial_set.predicate)) * 2.0**filters
    return min(most, max(partial_set.statistics.signatures for partial_set in sets))


def update_cost(constants: Constants, scan: WovenScan, sets: Sequence[PartialSet], kept: float) -> Updates:
    """The cost of folding tuples, of which `kept` per second are read, into the values of all sets."""
    update = constants.seconds("woven_update")
    by_groups: dict[tuple[Expression, ...], list[PartialSet]] = {}
    seconds, rolled, signatures = 0.0, 0, 1.0
    for partial_set in sets:
        if scan.signature.predicates and partial_set.window.is_sliced and partial_set.window.rolls_up:
            by_groups.setdefault(partial_set.group_by, []).append(partial_set)
        else:
            seconds += update * _from_tuples(partial_set)
    for alike in by_groups.values():
        from_tuples = update * sum(map(_from_tuples, alike))
        from_cells = float("inf")
        if len({partial_set.predicate for partial_set in alike}) >= FEWEST_SIGNED:
            signatures = signatures_of(scan, sets)
            from_cells = update * _from_cells(alike, signatures, kept)
        is_rolled_up = from_cells < SIGNED_SHARE * from_tuples
        rolled += len(alike) if is_rolled_up else 0
        seconds += from_cells if is_rolled_up else from_tuples
    return Updates(seconds, RolledUp(rolled, signatures) if rolled else None)


def _plain(partial_set: PartialSet) -> tuple[PlannedComponent, ...]:
    return tuple(planned for planned in partial_set.components if not planned.family.is_list)


def _from_tuples(partial_set: PartialSet) -> float:
    return partial_set.statistics.events_per_second * columns_of(_plain(partial_set))


@lru_cache(maxsize=256)
def _edge_rate(edges: frozenset[EdgeSet]) -> float:
    """Edges per second of several slicings together, cached because charts ask repeatedly."""
    if len(edges) == 1:
        return next(iter(edges)).edges_per_second
    return EdgeSet.of(each for edge_set in edges for each in edge_set.classes).edges_per_second


def _from_cells(alike: Sequence[PartialSet], signatures: float, kept: float) -> float:
    """Folds into columns: of tuples into cells by signature, once, and of these cells into the cells of each set."""
    finest = max((partial_set.statistics for partial_set in alike), key=lambda statistics: statistics.groups)
    divided = replace(finest, events_per_second=kept, groups=finest.groups * signatures, regularity=0.0)
    cells = float(divided.taken_per_second(np.array([_edge_rate(frozenset(own.edges for own in alike))]))[0])
    if FEW_CELLS * cells > kept:
        return float("inf")
    parts = {replace(each, component=replace(each.component, where=None)) for own in alike for each in _plain(own)}
    once = kept * (_NUMBERED_COLUMNS + columns_of(tuple(parts)))
    shares = (own.statistics.selectivity * columns_of(_plain(own)) for own in alike)
    return once + cells * (len(alike) + sum(shares))
