"""Weaving: one pass over projected tuples makes the cells of every set that a scan feeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa

from windloom.aggregates.arrow import arrow_type
from windloom.aggregates.card import ListCard
from windloom.model.time import TICK_MIN, TICKS_PER_SECOND
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.scans import FEW_CELLS, WovenScan, WovenSet
from windloom.rounds.cells import Cells, arrange, group_of_cells
from windloom.rounds.groups import number_groups
from windloom.rounds.windows.registry import life_of
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.weave.cut import Cut
from windloom.weave.tuples import Tuples

#: For fewer tuples, threads cost more than they gain.
FEW_TUPLES = 20_000

#: A list counts as this many other components when work is divided among threads.
_LIST_WORK = 8


def read_tuples(plan: Plan, scan: WovenScan, table: pa.Table) -> Tuples:
    """Projected tuples, all with a tick, in the form that the sets of their scan share."""
    numbers = [*(fed.number for fed in scan.feeds), *(number for number, _ in scan.watched)]
    # Late tuples are counted by slice, so slices are as fine as those of the sets that are only watched.
    own = [plan.sets[number] for number in numbers if plan.sets[number].counted_by == scan.counted_by]
    edges = {partial_set.edges for partial_set in own if partial_set.window.is_sliced} or {
        partial_set.edges for partial_set in own
    }
    if not own:  # it only keeps tuples
        edges = {EdgeSet((EdgeClass(TICKS_PER_SECOND, 0),))}
    finest = EdgeSet.of(edge_class for each in edges for edge_class in each.classes)
    return Tuples.of(table, scan.signature.words, finest, has_positions=scan.counted_by is not None)


def weave(
    plan: Plan, scan: WovenScan, tuples: Tuples, closed: int = TICK_MIN, threads: int | None = None
) -> dict[int, Cells]:
    """The cells of each set of a scan, by its number; a set that no tuple is part of has none.

    `closed` is where the sets were closed before the tuples came: some kinds of windows leave late ones out.
    """
    if not len(tuples):
        return {}
    workers = threads or (1 if len(tuples) < FEW_TUPLES else os.cpu_count() or 1)
    made: dict[int, Cells] = {}
    with ThreadPoolExecutor(workers) as pool:
        if workers > 1:
            # What many sets share, each thing by one thread: otherwise the first sets would wait for one another.
            list(pool.map(lambda make: make(), _shared(plan, scan, tuples)))
        # Sets from which others may be rolled up come first, and in each group the longest ones, so that no thread is
        # left with a large set at the end.
        for lot in ([fed for fed in scan.feeds if not fed.via], [fed for fed in scan.feeds if fed.via]):
            ordered = sorted(lot, key=lambda fed: -_work(tuples, fed, plan.sets[fed.number]))
            make = partial(_made, plan, tuples, closed, dict(made))
            found = map(make, ordered) if workers == 1 else pool.map(make, ordered)
            made |= dict(zip((fed.number for fed in ordered), found, strict=True))
    return {fed.number: made[fed.number] for fed in scan.feeds if len(made[fed.number])}


def _shared(plan: Plan, scan: WovenScan, tuples: Tuples) -> list[Callable[[], object]]:
    """Makers of what sets share: ranks, slices, codes of groups, choices; what takes longest comes first."""
    listed = {
        read.argument
        for fed in scan.feeds
        for planned, read in zip(plan.sets[fed.number].components, fed.components, strict=True)
        if isinstance(planned.card, ListCard) and planned.card.is_ranked and read.argument is not None
    }
    grouped = {position for fed in scan.feeds for position in fed.groups} - listed
    bits = {fed.bit for fed in scan.feeds if fed.bit is not None}
    return [
        *(partial(getattr, tuples.column(position), "ranked") for position in sorted(listed)),
        partial(getattr, tuples, "slices"),
        *(partial(getattr, tuples.column(position), "coded") for position in sorted(grouped)),
        *(partial(tuples.chosen, (bit,)) for bit in sorted(bits)),
    ]


def _made(plan: Plan, tuples: Tuples, closed: int, made: Mapping[int, Cells], fed: WovenSet) -> Cells:
    """Made from the finer cells of another set if they are few, otherwise from tuples."""
    partial_set = plan.sets[fed.number]
    finer = min(fed.via, key=lambda number: len(made[number]), default=None)
    if finer is not None and FEW_CELLS * len(made[finer]) <= _chosen(tuples, fed):
        return _rolled_up(made[finer], plan.sets[finer], partial_set)
    return weave_set(life_of(partial_set.window).in_time(partial_set.window, tuples, closed), fed, partial_set)


def _rolled_up(cells: Cells, finer: PartialSet, partial_set: PartialSet) -> Cells:
    keys = [cells.keys[finer.group_by.index(expression)] for expression in partial_set.group_by]
    number_of, distinct = number_groups(keys, cells.groups)
    starts = cells.starts
    if partial_set.edges != finer.edges and len(starts):
        slices, place = np.unique(starts, return_inverse=True)
        starts = partial_set.edges.last_edge(slices)[place]
    arranged = arrange(number_of[group_of_cells(cells)], len(distinct[0]) if distinct else 1, starts)
    lifted = tuple(arranged.merge(cells.lifted[finer.components.index(planned)]) for planned in partial_set.components)
    return Cells(distinct, arranged.group_bounds, arranged.starts, lifted)


def _work(tuples: Tuples, fed: WovenSet, partial_set: PartialSet) -> int:
    return _chosen(tuples, fed) * sum(_LIST_WORK if planned.family.is_list else 1 for planned in partial_set.components)


def _chosen(tuples: Tuples, fed: WovenSet) -> int:
    """How many tuples are part of the set."""
    return tuples.chosen(() if fed.bit is None else (fed.bit,)).count(len(tuples))


def weave_set(tuples: Tuples, fed: WovenSet, partial_set: PartialSet) -> Cells:
    """The cells of one set, from tuples."""
    own = () if fed.bit is None else (fed.bit,)
    grid = life_of(partial_set.window).grid(tuples, fed, partial_set)
    kept = grid.every if not own else grid.holding(tuples.counts(grid, own))
    cut = Cut(tuples, grid, own, kept)
    parts = zip(partial_set.components, fed.components, strict=True)
    lifted = tuple(planned.card.weave(planned, cut, read) for planned, read in parts)
    keys = [key.cast(arrow_type(kind)) for key, kind in zip(grid.keys(kept), partial_set.group_types, strict=True)]
    return Cells(keys, kept.bounds, grid.starts_of(kept), lifted)
