"""The predicted cost of folding joins: amounts of work per second of event time, by the constant that each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, expm1, sqrt
from typing import NamedTuple

import numpy as np

from windloom.kernels.families import ADD_INT
from windloom.kernels.simd import LANES
from windloom.model.join import Join, SideComponent, SumOfProducts
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.joins.order import SideSize, elimination_of
from windloom.plan.plan import PartialSet, PlannedJoin
from windloom.statistics.observations import LinkEstimate
from windloom.statistics.set_statistics import Statistics

# The number of rows of the sides of a join at the end of a window, estimated from rates and groups.


def side_sizes(join: Join, statistics: Sequence[Statistics], observed: Sequence[LinkEstimate] = ()) -> list[SideSize]:
    """Return the sizes of sides, from statistics of their sets and what rounds have `observed` of links.

    Statistics give the number of groups of a side, but not the number of values of each of its columns: where no round
    has shown it, all columns are assumed to have the same number.
    """
    sizes = []
    for side, known in enumerate(statistics):
        window, columns = join.sides[side].window, len(join.sides[side].group_by)
        seconds = known.round_length if window.extent_ticks is None else window.extent_ticks / TICKS_PER_SECOND
        # Tuples come at random: this is how many groups have had one within the window.
        rows = known.groups * -expm1(-known.event_rate * seconds / known.groups)

        def values(count: int, rows: float = rows, groups: float = known.groups, columns: int = columns) -> float:
            return min(rows, groups ** (count / columns)) if columns else 1.0

        keys, matching = {}, {}
        for number, link in enumerate(join.links):
            if side not in (link.parent, link.child):
                continue
            keys[number] = values(len(link.keys))
            if observed:
                shown = observed[number].parent_keys if side == link.parent else observed[number].child_keys
                keys[number] = min(rows, max(1.0, shown))
                matching[number] = observed[number].matching
        reported = sum(1 for own, _ in join.groups if own == side)
        sizes.append(SideSize(rows, keys, values(reported) if reported else 1.0, matching))
    return sizes


#: Amounts of work per second of event time, by name of the constant.
Amounts = Mapping[str, float]
#: The runtime's own limits: entries of a matrix that are made at a time, and of the largest matrix that is made at all.
MATRIX_ENTRIES, MOST_ENTRIES = 1 << 18, 1 << 23
#: The runtime's own limit: rows of all sides that are answered at a time.
SIDE_ROWS = 1 << 21


@dataclass(frozen=True, slots=True)
class FoldedJoin:
    """A join as the cost model sees it: its sides' sets and rows, and the pairs of rows that meet at every end."""

    join: Join
    sets: tuple[PartialSet, ...]
    sizes: Sequence[SideSize]
    matches: float

    @classmethod
    def of(cls, join: PlannedJoin, sets: Sequence[PartialSet]) -> FoldedJoin:
        side_sets = tuple(sets[side.set] for side in join.sides)
        sizes = side_sizes(join.join, [partial_set.statistics for partial_set in side_sets], join.observed)
        return cls(join.join, side_sets, sizes, elimination_of(join.join, sizes, join.order).matches)

    @property
    def ends_per_second(self) -> float:
        return TICKS_PER_SECOND / self.join.sides[0].window.slide_ticks


def seconds_of(constants: Constants, amounts: Amounts) -> float:
    return sum(amount * constants.seconds(name) for name, amount in amounts.items())


def row_amounts(folded_join: FoldedJoin) -> Amounts:
    """Return the work of matching the rows that the sides of a join answer, and of adding them up."""
    matches = folded_join.matches * folded_join.ends_per_second
    rows = max(1.0, sum(size.rows for size in folded_join.sizes))
    stretch = min(folded_join.sets[0].statistics.round_length, SIDE_ROWS / rows / folded_join.ends_per_second)
    groups = sum(each.statistics.groups for each in folded_join.sets) / stretch
    return {"fold_group": groups, "fold_row": matches, "fold_value": matches * row_values(folded_join.join)}


def row_values(join: Join) -> int:
    """Return the number of values folded for every match: those of a component, and whether there is one."""
    products = (folded for folded in join.folded if isinstance(folded, SumOfProducts))
    others = (folded for folded in join.folded if not isinstance(folded, SumOfProducts))
    values = sum(len(folded.products) + (folded.counted is not None) for folded in products)
    return values + sum(2 if isinstance(folded, SideComponent) else 4 for folded in others)


def matrix_amounts(joins: Sequence[FoldedJoin]) -> Amounts | None:
    """Return the work of folding joins of one pairing by one matrix; None if the matrix would be too large."""
    folded_join = joins[0]
    lengths = [max(each.join.sides[side].window.range_ticks for each in joins) / TICKS_PER_SECOND for side in (0, 1)]
    statistics = [each.statistics for each in folded_join.sets]
    edges = [each.edges.edges_per_second for each in folded_join.sets]
    cells = [float(each.cells_per_second(np.array([rate]))[0]) for each, rate in zip(statistics, edges, strict=True)]
    slices = [max(1.0, length * rate) for length, rate in zip(lengths, edges, strict=True)]
    groups = max(1.0, folded_join.sizes[0].groups * folded_join.sizes[1].groups)
    if groups * slices[0] * slices[1] > MOST_ENTRIES:
        return None
    keys = max(1.0, *(size.keys.get(0, 1.0) for size in folded_join.sizes))
    # Two cells meet if a window holds both: cells of new slices meet a band of the others, and where a matrix begins,
    # all cells in its first window meet.
    # Seconds of window ends that a matrix is made for: those of a round, or fewer if it would be too large.
    matrix_side = sqrt(MATRIX_ENTRIES / groups)
    fitting = max(1.0, matrix_side - sum(slices) / 2) / (sum(edges) / 2)
    stretch = min(statistics[0].round_length, fitting)
    band = lengths[0] + lengths[1] + lengths[0] * lengths[1] / stretch
    pairs = cells[0] * cells[1] / keys * band
    ends = max(each.ends_per_second for each in joins)
    values = matrix_values(joins, ends, (slices[0], slices[1]))
    return {
        "matrix_cell": sum(count * each_side.readings for count, each_side in zip(cells, statistics, strict=True)),
        "matrix_pair": pairs * values.walks,
        "matrix_value": pairs * values.others,
        "matrix_window": values.windows * groups,
    }


class MatrixValues(NamedTuple):
    """The amounts of work that joins cause in a matrix.

    `windows` are the values of a group that are looked up or combined. Cells are walked along `walks` times: once for
    several sums of integers, and once for all `others`, each of which then costs something for every pair.
    """

    windows: float
    walks: int
    others: int


def matrix_values(joins: Sequence[FoldedJoin], ends: float, slices: tuple[float, float]) -> MatrixValues:
    """Values that cannot be subtracted are combined slice by slice, at each of `ends` ends once for all joins."""
    looked_up = sum(row_values(each.join) for each in joins)
    whole = {value for each in joins for is_whole, value in _values_of(each) if is_whole}
    others = {value for each in joins for is_whole, value in _values_of(each) if not is_whole}
    combined = len(others) * slices[0] * slices[1]
    walks = max(1, ceil(len(whole) / LANES) + bool(others))
    return MatrixValues(ends * (looked_up + combined), walks, len(others))


def _values_of(folded_join: FoldedJoin) -> list[tuple[bool, object]]:
    """Return the values that a matrix holds for a join, equal where joins share them, and whether they sum integers."""
    planned = [{component.component: component for component in each.components} for each in folded_join.sets]
    names = [side.components for side in folded_join.join.sides]
    values: list[tuple[bool, object]] = []
    for folded in folded_join.join.folded:
        used: list[tuple[int, ...]] = []
        if isinstance(folded, SideComponent):
            own, weights = folded.component, enumerate(folded.weights)
            used = [tuple(own if side == folded.side else weight for side, weight in weights)]
        elif isinstance(folded, SumOfProducts):
            used = [product.factors for product in folded.products]
        for factors in used:
            parts = tuple(names[side][component_index] for side, component_index in enumerate(factors))
            is_whole = all(planned[side][component].family is ADD_INT for side, component in enumerate(parts))
            values.append((is_whole, parts))
    return values
