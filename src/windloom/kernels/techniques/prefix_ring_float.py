"""Prefix ring for floats: double-double totals, and for every difference a certificate that it is right.

Each total has a bound on the error it has accumulated. A difference is used only if twice that bound, plus the error of
the subtraction itself, is below 2^-60 of the difference: then it is the exact sum, up to the rounding of the answer.
Otherwise (after a huge value, an infinity or NaN, or values that cancel) the lane is answered by TwoStacks,
which never subtracts. Totals start again with each group, so that the values of one group do not affect others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.compiling.memory import new_array
from windloom.kernels.families.algebra import ADD_FLOAT, AddFloat, combine, load, store
from windloom.kernels.techniques.two_stacks import walk_lane

#: The error of one double-double addition, relative to its largest operand: 2^-103 (Joldes, Muller, Popescu), with a
#: margin.
_ERROR = 2.0**-100

#: How small the error must be relative to the answer.
_CERTAIN = 2.0**-60


@compiled
def _add(left, right):  # type: ignore[no-untyped-def]
    """Double-double addition as in `combine`, but renormalised, which the bound of its error needs."""
    total = combine(left, right)
    high = total.high + total.low
    return AddFloat(high, total.low - (high - total.high)) if np.isfinite(high) else AddFloat(high, 0.0)


def evaluate(cells: AddFloat, group_bounds: Any, lanes: Any, queries: Any, out: AddFloat) -> None:
    longest = int(np.max(np.diff(group_bounds), initial=0))
    totals = ADD_FLOAT.empty(longest + 1)
    errors = new_array(longest + 1, np.float64)
    filled = new_array(longest + 1, np.int64)
    front = ADD_FLOAT.empty(longest)
    _evaluate(
        cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, lanes.runs, queries, out, totals, errors, filled, front
    )


@compiled
def _evaluate(cells, group_bounds, bounds, lo, hi, runs, queries, out, totals, errors, filled, front):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    for group in range(groups):
        begin = group_bounds[group]
        _add_up(cells, begin, group_bounds[group + 1] - begin, totals, errors, filled)
        for query in queries:
            lane = query * groups + group
            if not _subtract(bounds[lane], bounds[lane + 1], lo, hi, begin, totals, errors, filled, out):
                walk_lane(cells, bounds[lane], bounds[lane + 1], lo, hi, runs, front, out, None)


@compiled
def _add_up(cells, begin, length, totals, errors, filled):  # type: ignore[no-untyped-def]
    """Totals up to each cell, bounds on their errors, and where the last cell that is not 0 ended."""
    total = AddFloat(0.0, 0.0)
    error = 0.0
    last = np.int64(0)
    store(totals, 0, total)
    errors[0] = 0.0
    filled[0] = 0
    for i in range(length):
        cell = load(cells, begin + i)
        # Partials come as two halves that may overlap; their sum and its exact remainder do not.
        high = cell.high + cell.low
        moved = high - cell.high
        item = AddFloat(high, (cell.high - (high - moved)) + (cell.low - moved))
        total = _add(total, item)
        error += _ERROR * (abs(total.high) + abs(high))
        if cell.high != 0.0 or cell.low != 0.0:
            last = np.int64(i + 1)
        store(totals, i + 1, total)
        errors[i + 1] = error
        filled[i + 1] = last


@compiled
def _subtract(first_row, last_row, lo, hi, begin, totals, errors, filled, out):  # type: ignore[no-untyped-def]
    """Answers a lane by differences; returns False as soon as one cannot be certified."""
    for row in range(first_row, last_row):
        left, right = lo[row] - begin, hi[row] - begin
        before = load(totals, left)
        answer = _add(load(totals, right), AddFloat(-before.high, -before.low))
        # Bounds only grow, and each holds its own total: four times the right one covers both and the subtraction.
        # Written so that NaN and infinite bounds fail.
        if not 4.0 * errors[right] < _CERTAIN * min(abs(answer.high), 1e300):
            if filled[right] > left:
                return False
            answer = AddFloat(0.0, 0.0)
        store(out, row, answer)
    return True
