"""From the cells of a scan to those of every set it feeds: signatures picked, groups rolled up, slices merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates import neutral
from windloom.aggregates.lifted import AnyLifted, masked
from windloom.plan.physical import SIGNATURE_BITS, Fed, PartialSet, Plan, Scan
from windloom.rounds.cells import Cells, arrange, group_of_cells
from windloom.rounds.groups import number_groups
from windloom.slicing.edges import EdgeSet

Mask = NDArray[np.bool_]


def feed_sets(plan: Plan, scan: Scan, cells: Cells) -> dict[int, Cells]:
    """Cells of each set, by its number; `cells` are the scan's, with its signature as the first keys."""
    if scan.is_plain and plan.sets[scan.feeds[0].number].edges == scan.edges:
        return {scan.feeds[0].number: cells}
    plain = tuple((i, None) for i in range(len(cells.lifted)))
    own = _Source(cells, cells.keys[scan.words :], tuple(range(len(scan.group_by))), plain)
    made: dict[int, _Source] = {}
    for fed in scan.feeds:
        one = plan.sets[fed.number]
        if fed.via is None:
            held = _rolled_up(own, one, fed, scan.edges, holds(scan, cells, fed.bit), _filtered(scan, cells, fed))
        else:
            held = _rolled_up(made[fed.via], one, fed, plan.sets[fed.via].edges, None, {})
        made[fed.number] = _Source(held, held.keys, fed.groups, tuple(zip(fed.components, fed.filters, strict=True)))
    return {number: source.cells for number, source in made.items()}


def holds(scan: Scan, cells: Cells, bit: int | None) -> Mask | None:
    """By number of the scan's groups: is the bit set in the group's signature? None: everywhere."""
    if bit is None:
        return None
    word = cells.keys[bit // SIGNATURE_BITS].to_numpy(zero_copy_only=False)
    return np.asarray((word >> (bit % SIGNATURE_BITS)) & 1, np.bool_)


@dataclass(frozen=True, slots=True)
class _Source:
    """Cells to roll up; `groups` and `components` name its keys and components by their positions in the scan.

    A component is named together with the bit of the filter that was applied to it.
    """

    cells: Cells
    keys: list[pa.Array]
    groups: tuple[int, ...]
    components: tuple[tuple[int, int | None], ...]


def _filtered(scan: Scan, cells: Cells, fed: Fed) -> dict[int, Mask]:
    """By position of the set's component: groups whose cells count."""
    found = {}
    for index, bit in enumerate(fed.filters):
        mask = holds(scan, cells, bit)
        if mask is not None:
            found[index] = mask
    return found


def _rolled_up(
    source: _Source, one: PartialSet, fed: Fed, edges: EdgeSet, wanted: Mask | None, filters: dict[int, Mask]
) -> Cells:
    cells = source.cells
    group_of = group_of_cells(cells)
    picked = np.flatnonzero(wanted[group_of]) if wanted is not None else np.arange(len(cells), dtype=np.int64)
    keys = [source.keys[source.groups.index(position)] for position in fed.groups]
    number_of, distinct = _numbered(keys, wanted, cells.groups)
    starts = cells.starts[picked]
    if one.edges != edges and len(starts):
        slices, place = np.unique(starts, return_inverse=True)
        starts = one.edges.last_edge(slices)[place]
    arranged = arrange(number_of[group_of[picked]], len(distinct[0]) if distinct else 1, starts, picked)
    lifted = []
    for index, position in enumerate(fed.components):
        applied = None if index in filters else fed.filters[index]
        part: AnyLifted = cells.lifted[source.components.index((position, applied))]
        if index in filters:
            part = masked(part, neutral(one.components[index], len(cells)), filters[index][group_of])
        lifted.append(arranged.merge(part))
    return Cells(distinct, arranged.group_bounds, arranged.starts, tuple(lifted))


def _numbered(keys: list[pa.Array], wanted: Mask | None, groups: int) -> tuple[NDArray[np.int64], list[pa.Array]]:
    """The set's group of each of the source's groups (undefined for those not wanted), and the set's keys by number."""
    if wanted is None:
        return number_groups(keys, groups)
    places = np.flatnonzero(wanted)
    numbers, distinct = number_groups([key.take(pa.array(places)) for key in keys], len(places))
    number_of = np.zeros(groups, np.int64)
    number_of[places] = numbers
    return number_of, distinct
