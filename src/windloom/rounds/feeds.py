"""Turns the cells of a scan into those of every set it feeds: picks signatures, rolls up groups, merges slices."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates import neutral
from windloom.aggregates.lifted import AnyLifted, masked
from windloom.model.arrays import Mask
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.scans import Fed, NativeScan
from windloom.rounds.cells import Cells, CellsBuilder, group_of_cells, last_edges
from windloom.rounds.groups import number_groups
from windloom.weave.signatures import SIGNATURE_BITS


def feed_sets(plan: Plan, scan: NativeScan, cells: Cells) -> dict[int, Cells]:
    """The cells of each set, by its number; `cells` are those of the scan, with its signature as the first keys."""
    if scan.is_plain and plan.sets[scan.feeds[0].number].edges == scan.edges:
        return {scan.feeds[0].number: cells}
    return {fed.number: _rolled_up(scan, cells, plan.sets[fed.number], fed) for fed in scan.feeds}


def _holds(cells: Cells, bit: int) -> Mask:
    """For each group of the scan: does its signature have the bit?"""
    word = cells.keys[bit // SIGNATURE_BITS].to_numpy(zero_copy_only=False)
    return np.asarray((word >> (bit % SIGNATURE_BITS)) & 1, np.bool_)


def _rolled_up(scan: NativeScan, cells: Cells, partial_set: PartialSet, fed: Fed) -> Cells:
    group_of = group_of_cells(cells)
    wanted = None if fed.bit is None else _holds(cells, fed.bit)
    picked = np.flatnonzero(wanted[group_of]) if wanted is not None else np.arange(len(cells), dtype=np.int64)
    keys = [cells.keys[scan.signature.words + position] for position in fed.groups]
    number_of, distinct = _numbered(keys, wanted, cells.groups)
    starts = cells.starts[picked]
    if partial_set.edges != scan.edges:
        starts = last_edges(starts, partial_set.edges)
    built = CellsBuilder.of_groups(number_of[group_of[picked]], distinct, starts, picked)
    for planned, position, condition in zip(partial_set.components, fed.components, fed.filters, strict=True):
        component: AnyLifted = cells.lifted[position]
        if condition is not None:
            component = masked(component, neutral(planned, len(cells)), _holds(cells, condition)[group_of])
        built.add(component)
    return built.build()


def _numbered(keys: list[pa.Array], wanted: Mask | None, groups: int) -> tuple[NDArray[np.int64], list[pa.Array]]:
    """The set's group for each group of the source (undefined for unwanted ones), and the set's keys by number."""
    if wanted is None:
        return number_groups(keys, groups)
    places = np.flatnonzero(wanted)
    numbers, distinct = number_groups([key.take(pa.array(places)) for key in keys], len(places))
    number_of = np.zeros(groups, np.int64)
    number_of[places] = numbers
    return number_of, distinct
