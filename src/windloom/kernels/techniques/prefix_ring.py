"""Prefix ring: running totals over all cells; a window is the difference of two of them.

| time    | O(1) per cell once, O(1) per window for any number of queries |
| space   | one total per cell                                          |
| needs   | associative, invertible; or nearly invertible (floats)      |
| queries | many, all ranges from the same totals                       |
| source  | ours, for rounds in which many slices close at once         |

Totals run across group borders: a difference inside one group cancels whatever came before. For integers that is
exact even if the total itself wraps around 64 bits, because wrapping subtraction undoes wrapping addition.
Floats have totals with a certificate, which the lower half of the module computes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled, new_array
from windloom.kernels.families import ADD_FLOAT, AddFloat, combine, empty_like, identity, like, load, remove, store
from windloom.kernels.lanes import first_look, next_stretch
from windloom.kernels.simd import LINE, WIDTH, end_streams, stream_sixteen
from windloom.kernels.techniques.two_stacks import walk_lane
from windloom.model.aggregate import Property

# Prefix ring for floats: double-double totals, and for every difference a certificate that it is right.
#
# Each total has a bound on the error it has accumulated. A difference is used only if twice that bound, plus the error
# of the subtraction itself, is below 2^-60 of the difference: then it is the exact sum, up to the rounding of the
# answer. Otherwise (after a huge value, an infinity or NaN, or values that cancel) the lane is answered by TwoStacks,
# which never subtracts. Totals start again with each group, so that the values of one group do not affect others.

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


@compiled
def _evaluate_floats(cells, group_bounds, bounds, lo, hi, runs, queries, out, totals, errors, filled, front):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    for group in range(groups):
        begin = group_bounds[group]
        _add_up(cells, begin, group_bounds[group + 1] - begin, totals, errors, filled)
        for query in queries:
            lane = query * groups + group
            if not _subtract_floats(bounds[lane], bounds[lane + 1], lo, hi, begin, totals, errors, filled, out):
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
def _subtract_floats(first_row, last_row, lo, hi, begin, totals, errors, filled, out):  # type: ignore[no-untyped-def]
    """Answer a lane by differences; return False as soon as one cannot be certified."""
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


#: From this many rows on, answers exceed the processor's last cache and are stored past it, this many at a time.
FAR_ROWS = 1 << 22
NEAR_ROWS = 512


class PrefixRing:
    name = "prefix_ring"
    needs = (Property.ASSOCIATIVE | Property.INVERTIBLE, Property.ASSOCIATIVE | Property.NEARLY_INVERTIBLE)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any) -> None:
        windows = (lanes.bounds, lanes.lo, lanes.hi, lanes.runs)
        if isinstance(cells, AddFloat):
            longest = int(np.max(np.diff(group_bounds), initial=0))
            totals, front = ADD_FLOAT.empty(longest + 1), ADD_FLOAT.empty(longest)
            errors, filled = new_array(longest + 1, np.float64), new_array(longest + 1, np.int64)
            _evaluate_floats(cells, group_bounds, *windows, queries, out, totals, errors, filled, front)
            return
        first, last = int(group_bounds[0]), int(group_bounds[-1])
        totals = empty_like(cells, last - first + 1)
        _evaluate(cells, first, last, totals, len(group_bounds) - 1, *windows, queries, out)


@compiled
def _evaluate(cells, first, last, totals, groups, bounds, lo, hi, runs, queries, out):  # type: ignore[no-untyped-def]
    total = identity(cells)
    store(totals, 0, total)
    for cell in range(first, last):
        total = combine(total, load(cells, cell))
        store(totals, cell - first + 1, total)
    near = like(cells, NEAR_ROWS if len(lo) >= FAR_ROWS and len(cells) == 1 else 0)  # streamed by the one column
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            _subtract(totals, first, bounds[lane], bounds[lane + 1], lo, hi, runs, near, out)
    if len(lo) >= FAR_ROWS:
        end_streams()


@compiled
def _subtract(totals, first, row, last_row, lo, hi, runs, near, out):  # type: ignore[no-untyped-def]
    look = first_look(runs, row)
    while row < last_row:
        stop, steady, look = next_stretch(lo, hi, runs, row, last_row, look)
        if steady:
            left, right = lo[row] - first, hi[row] - first
            if len(near[0]) > 0 and stop - row >= NEAR_ROWS:
                done = _stream(totals, left, right, row, stop - row, near, out)
                left, right, row = left + done, right + done, row + done
            for i in range(stop - row):
                store(out, row + i, remove(load(totals, right + i), load(totals, left + i)))
        else:
            for i in range(row, stop):
                store(out, i, remove(load(totals, hi[i] - first), load(totals, lo[i] - first)))
        row = stop


@compiled
def _stream(totals, left, right, row, count, near, out):  # type: ignore[no-untyped-def]
    """Answer the first of `count` steady rows, collected nearby and stored past the caches; return their number."""
    done = np.int64(-(np.int64(out[0].ctypes.data) // out[0].itemsize + row) % (LINE // out[0].itemsize))
    for i in range(done):
        store(out, row + i, remove(load(totals, right + i), load(totals, left + i)))
    while done + WIDTH <= count:
        some = min((count - done) // WIDTH * WIDTH, NEAR_ROWS)
        for i in range(some):
            store(near, i, remove(load(totals, right + done + i), load(totals, left + done + i)))
        for i in range(0, some, WIDTH):
            stream_sixteen(near[0], i, out[0], row + done + i)
        done += some
    return done
