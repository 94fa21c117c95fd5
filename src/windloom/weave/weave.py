"""Weaving: one pass over projected tuples makes the cells of every set that a scan feeds."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from windloom.plan.physical import PartialSet, Plan
from windloom.plan.woven import WovenScan, WovenSet
from windloom.rounds.cells import Cells
from windloom.slicing.edges import EdgeSet
from windloom.weave.block import Block
from windloom.weave.components import Cut

#: Tuples below which threads cost more than they gain.
FEW_TUPLES = 20_000


def weave(plan: Plan, scan: WovenScan, table: pa.Table, threads: int | None = None) -> dict[int, Cells]:
    """The cells of each set of a scan, by its number; `table` has tuples with a tick, as `weave.block.Block` says.

    Sets of which no tuple is wanted have no cells.
    """
    if not table.num_rows:
        return {}
    sets = [(fed, plan.sets[fed.number]) for fed in scan.feeds]
    edges = EdgeSet.of(each for edges in {one.edges for _, one in sets} for each in edges.classes)
    block = Block(scan, table, edges)
    workers = threads or (1 if table.num_rows < FEW_TUPLES else os.cpu_count() or 1)
    if workers == 1:
        made = [_cells(block, fed, one) for fed, one in sets]
    else:
        with ThreadPoolExecutor(workers) as pool:
            # What takes longest first, so that no thread waits for a large set at the end.
            places = sorted(range(len(sets)), key=lambda i: -_work(block, *sets[i]))
            found = dict(zip(places, pool.map(lambda i: _cells(block, *sets[i]), places), strict=True))
            made = [found[i] for i in range(len(sets))]
    return {fed.number: cells for (fed, _), cells in zip(sets, made, strict=True) if len(cells)}


def _work(block: Block, fed: WovenSet, one: PartialSet) -> int:
    """Tuples times components, with lists counting for several."""
    tuples = block.chosen(() if fed.bit is None else (fed.bit,)).count(block.tuples)
    return tuples * sum(8 if part.family.is_list else 1 for part in one.components)


def _cells(block: Block, fed: WovenSet, one: PartialSet) -> Cells:
    own = () if fed.bit is None else (fed.bit,)
    grid = block.grid(fed.groups, one.edges)
    kept = grid.every if not own else grid.holding(block.counts(grid, own))
    cut = Cut(block, grid, own, kept)
    lifted = tuple(cut.component(planned, read) for planned, read in zip(one.components, fed.components, strict=True))
    return Cells(grid.keys(kept), kept.bounds, grid.starts_of(kept), lifted)


