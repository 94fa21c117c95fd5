"""Weaving: one pass over projected tuples makes the cells of every set that a scan feeds."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from windloom.aggregates.arrow import arrow_type
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.scans import WovenScan, WovenSet
from windloom.rounds.cells import Cells
from windloom.slicing.edges import EdgeSet
from windloom.weave.cut import Cut
from windloom.weave.tuples import Tuples

#: Tuples below which threads cost more than they gain.
FEW_TUPLES = 20_000

#: A list counts for so many other components when work is divided among threads.
_LIST_WORK = 8


def read_tuples(plan: Plan, scan: WovenScan, table: pa.Table) -> Tuples:
    """Projected tuples, all with a tick, as the sets of their scan share them."""
    edges = {plan.sets[fed.number].edges for fed in scan.feeds}
    finest = EdgeSet.of(one for each in edges for one in each.classes)
    return Tuples.of(table, scan.signature.words, finest, has_positions=scan.counted_by is not None)


def weave(plan: Plan, scan: WovenScan, tuples: Tuples, threads: int | None = None) -> dict[int, Cells]:
    """The cells of each set of a scan, by its number; a set that no tuple is part of has none."""
    if not len(tuples):
        return {}
    sets = [(fed, plan.sets[fed.number]) for fed in scan.feeds]
    workers = threads or (1 if len(tuples) < FEW_TUPLES else os.cpu_count() or 1)
    if workers == 1:
        made = [_cells(tuples, fed, one) for fed, one in sets]
    else:
        with ThreadPoolExecutor(workers) as pool:
            # What takes longest first, so that no thread is left with a large set at the end.
            places = sorted(range(len(sets)), key=lambda i: -_work(tuples, *sets[i]))
            found = dict(zip(places, pool.map(lambda i: _cells(tuples, *sets[i]), places), strict=True))
            made = [found[i] for i in range(len(sets))]
    return {fed.number: cells for (fed, _), cells in zip(sets, made, strict=True) if len(cells)}


def _work(tuples: Tuples, fed: WovenSet, one: PartialSet) -> int:
    chosen = tuples.chosen(() if fed.bit is None else (fed.bit,)).count(len(tuples))
    return chosen * sum(_LIST_WORK if part.family.is_list else 1 for part in one.components)


def _cells(tuples: Tuples, fed: WovenSet, one: PartialSet) -> Cells:
    own = () if fed.bit is None else (fed.bit,)
    grid = tuples.grid(fed.groups, one.edges)
    kept = grid.every if not own else grid.holding(tuples.counts(grid, own))
    cut = Cut(tuples, grid, own, kept)
    parts = zip(one.components, fed.components, strict=True)
    lifted = tuple(planned.card.weave(planned, cut, read) for planned, read in parts)
    keys = [key.cast(arrow_type(kind)) for key, kind in zip(grid.keys(kept), one.group_types, strict=True)]
    return Cells(keys, kept.bounds, grid.starts_of(kept), lifted)
