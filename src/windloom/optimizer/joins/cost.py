"""The predicted cost of folding joins: amounts of work per second of event time, by the constant that each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from windloom.kernels.families.algebra import ADD_INT
from windloom.model.join import Carried, Folded, Join, Summed
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.joins.order import SideSize
from windloom.plan.physical import PartialSet
from windloom.plan.statistics import Statistics

#: Amounts of work per second of event time, by name of the constant.
Amounts = Mapping[str, float]
#: As the runtime has it: entries of a matrix that is made at a time, and of the largest that is made at all.
MATRIX_ENTRIES, MOST_ENTRIES = 1 << 18, 1 << 23


@dataclass(frozen=True, slots=True)
class FoldedJoin:
    """A join as the cost model sees it: its sides' sets and rows, and the pairs of rows that meet at every end."""

    join: Join
    sets: tuple[PartialSet, ...]
    sizes: Sequence[SideSize]
    matches: float

    @property
    def ends_per_second(self) -> float:
        return TICKS_PER_SECOND / self.join.sides[0].window.slide_ticks


def seconds_of(constants: Constants, amounts: Amounts) -> float:
    return sum(amount * constants.seconds(name) for name, amount in amounts.items())


def row_amounts(one: FoldedJoin) -> Amounts:
    """What it takes to match what the sides of a join answer, and to add it up."""
    matches = one.matches * one.ends_per_second
    return {"fold_row": matches, "fold_value": matches * sum(map(_values, one.join.folded))}


def matrix_amounts(joins: Sequence[FoldedJoin]) -> Amounts | None:
    """What it takes to fold joins of one pairing by one matrix; None if that would be too large."""
    one = joins[0]
    lengths = [max(each.join.sides[side].window.range_ticks for each in joins) / TICKS_PER_SECOND for side in (0, 1)]
    statistics = [each.statistics for each in one.sets]
    edges = [each.edges.edges_per_second for each in one.sets]
    cells = [float(own.cells_per_second(np.array([rate]))[0]) for own, rate in zip(statistics, edges, strict=True)]
    slices = [max(1.0, length * rate) for length, rate in zip(lengths, edges, strict=True)]
    groups = max(1.0, one.sizes[0].groups * one.sizes[1].groups)
    if groups * slices[0] * slices[1] > MOST_ENTRIES:
        return None
    keys = max(1.0, *(size.keys.get(0, 1.0) for size in one.sizes))
    # Two cells meet if a window holds both: those of new slices with a band of the others, and where a matrix begins,
    # all that its first window holds.
    stretch = _stretch(statistics[0], groups, slices, edges)
    band = lengths[0] + lengths[1] + lengths[0] * lengths[1] / stretch
    pairs = cells[0] * cells[1] / keys * band
    values = len({value for each in joins for value in _distinct(each.join)})
    windows = sum(each.ends_per_second * sum(map(_values, each.join.folded)) for each in joins)
    # What cannot be subtracted is combined slice by slice, for all joins that end together at once.
    combined = max(each.ends_per_second * _combined(each) for each in joins) * slices[0] * slices[1]
    return {
        "matrix_cell": sum(count * own.readings for count, own in zip(cells, statistics, strict=True)),
        "matrix_pair": pairs,
        "matrix_value": pairs * values,
        "matrix_window": (windows + combined) * groups,
    }


def _stretch(statistics: Statistics, groups: float, slices: Sequence[float], edges: Sequence[float]) -> float:
    """Seconds of window ends that a matrix is made for: those of a round, or fewer if it would be too large."""
    side = sqrt(MATRIX_ENTRIES / groups)
    fitting = max(1.0, side - sum(slices) / 2) / (sum(edges) / 2)
    return min(statistics.round_length, fitting)


def _values(folded: Folded) -> int:
    """How many values are computed for every match: of a component, and whether there is one."""
    if isinstance(folded, Summed):
        return len(folded.products) + (folded.counted is not None)
    return 2 if isinstance(folded, Carried) else 4


def _distinct(join: Join) -> list[object]:
    """The values that a matrix holds for a join, such that equal ones of several joins are equal."""
    found: list[object] = []
    names = [side.components for side in join.sides]
    for folded in join.folded:
        if isinstance(folded, Summed):
            every = [*folded.products, *([] if folded.counted is None else [folded.counted])]
            found += [tuple(names[side][factor] for side, factor in enumerate(one.factors)) for one in every]
        elif isinstance(folded, Carried):
            found += [(folded.side, names[folded.side][folded.component], part) for part in range(2)]
    return found


def _combined(one: FoldedJoin) -> int:
    """How many values are not sums of integers."""
    planned = [{part.component: part for part in each.components} for each in one.sets]
    count = 0
    for folded in one.join.folded:
        used = [(folded.side, folded.component)] if isinstance(folded, Carried) else []
        if isinstance(folded, Summed):
            used = [(side, factor) for product in folded.products for side, factor in enumerate(product.factors)]
        families = {planned[side][one.join.sides[side].components[place]].family for side, place in used}
        count += not families <= {ADD_INT}
    return count
