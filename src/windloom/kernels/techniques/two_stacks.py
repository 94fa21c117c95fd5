"""TwoStacks: a queue made of two stacks; the front holds values up to its end, the back one running value.

| time    | 3 operations per cell and query amortised, O(window) when the back is flipped onto the    |
|         | front                                                                                     |
| space   | one value per cell of the window                                                          |
| needs   | associative                                                                               |
| queries | many, each on its own                                                                     |
| source  | TwoStacks (source C); the back as one value is its Lite form                              |

The back needs no stack: the cells are still where they were, and a flip reads them there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled, compiled_by_type, mark
from windloom.kernels.families import BATCH, beats_batch, combine, identity, in_batches, like, load, same, store
from windloom.kernels.lanes import first_look, longest_group, next_stretch
from windloom.model.aggregate import Property

# Flips and slides of TwoStacks for selective operations: in vector code while the value so far wins.
#
# A cell that the value so far beats changes nothing, and among random cells hardly one in a hundred is not beaten. So
# cells are tested in batches for a winner. As long as there is none, a flip fills places with the value it has, and a
# slide has one back for all rows. The front only falls: up to some row, which a search finds, its values are the
# answers, and from there on the back is the answer. That takes at most the operations of going cell by cell, and
# usually fewer.
#
# Rising cells (in a flip, falling ones) win in every batch; then batches are tried less and less often.

#: Batches pay off from this many cells on: in short windows, too many cells win.
LONG = 256

#: At most this many cells are taken one by one before a batch is tried again.
REST = 1024


@compiled_by_type
def batches(cells: Any) -> Callable[..., bool]:
    """Compiled code: whether these cells can be tested in batches; if not, the next two compile to nothing."""
    possible = in_batches(cells)
    return lambda cells: possible


@compiled_by_type
def slide_in_batches(
    cells: Any, right: Any, back: Any, front: Any, place: Any, row: Any, count: Any, out: Any, stamps: Any
) -> Callable[..., Any]:
    if not in_batches(cells):
        return lambda cells, right, back, front, place, row, count, out, stamps: back
    return lambda cells, right, back, front, place, row, count, out, stamps: _slide(
        cells, right, back, front, place, row, count, out, stamps
    )


@compiled_by_type
def flip_in_batches(cells: Any, first: Any, right: Any, front: Any) -> Callable[..., None]:
    if not in_batches(cells):
        return lambda cells, first, right, front: None
    return lambda cells, first, right, front: _flip(cells, first, right, front)


@compiled
def _slide(cells, right, back, front, place, row, count, out, stamps):  # type: ignore[no-untyped-def]
    done = np.int64(0)
    rest = np.int64(BATCH)
    overtaken = False  # by the back: the front gives no more answers
    while done < count:
        unbeaten = done
        # After a winner, the last cell of a batch is tested first: if cells rise, that decides.
        doubt = True
        while unbeaten + BATCH <= count:
            if doubt and not same(combine(back, load(cells, right + unbeaten + BATCH - 1)), back):
                break
            if not beats_batch(back, cells, right + unbeaten):
                break
            unbeaten += BATCH
            doubt = False
        overtaken = overtaken or same(combine(load(front, place + done), back), back)
        if unbeaten > done:
            fallen = done if overtaken else _first_beaten(front, place + done, place + unbeaten, back) - place
            for i in range(fallen - done):
                store(out, row + done + i, load(front, place + done + i))
                mark(stamps, row + done + i)
            for i in range(unbeaten - fallen):
                store(out, row + fallen + i, back)
                mark(stamps, row + fallen + i)
            overtaken = bool(fallen < unbeaten)
            rest = np.int64(BATCH)
        done = min(unbeaten + rest, count)
        rest = min(2 * rest, np.int64(REST))
        if overtaken:
            for i in range(unbeaten, done):
                back = combine(back, load(cells, right + i))
                store(out, row + i, back)
                mark(stamps, row + i)
        else:
            for i in range(unbeaten, done):
                back = combine(back, load(cells, right + i))
                store(out, row + i, combine(load(front, place + i), back))
                mark(stamps, row + i)
    return back


@compiled
def _first_beaten(front, low, high, back):  # type: ignore[no-untyped-def]
    """Return the first place from `low` on whose value the back beats, or `high`."""
    while low < high:
        middle = (low + high) // 2
        value = load(front, middle)
        if same(combine(value, back), value):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _flip(cells, first, right, front):  # type: ignore[no-untyped-def]
    total = load(cells, right - 1)
    end = right - 1 - first  # places from here on are filled
    store(front, end, total)
    rest = np.int64(BATCH)
    while end > 0:
        unbeaten = end
        doubt = True
        while unbeaten >= BATCH:
            if doubt and not same(combine(load(cells, first + unbeaten - BATCH), total), total):
                break
            if not beats_batch(total, cells, first + unbeaten - BATCH):
                break
            unbeaten -= BATCH
            doubt = False
        if unbeaten < end:
            for i in range(end - unbeaten):
                store(front, unbeaten + i, total)
            rest = np.int64(BATCH)
        end = max(unbeaten - rest, np.int64(0))
        rest = min(2 * rest, np.int64(REST))
        for i in range(unbeaten - 1, end - 1, -1):
            total = combine(load(cells, first + i), total)
            store(front, i, total)


class TwoStacks:
    name = "two_stacks"
    needs = (Property.ASSOCIATIVE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        _evaluate(cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, lanes.runs, queries, out, stamps)


@compiled
def _evaluate(cells, group_bounds, bounds, lo, hi, runs, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    front = like(cells, longest_group(group_bounds))
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            walk_lane(cells, bounds[lane], bounds[lane + 1], lo, hi, runs, front, out, stamps)


@compiled
def walk_lane(cells, first_row, last_row, lo, hi, runs, front, out, stamps):  # type: ignore[no-untyped-def]
    base = np.int64(0)  # the cell at the bottom of `front`
    middle = np.int64(0)  # front: up to here; back: from here to `right`
    right = np.int64(0)
    back = identity(cells)
    row = first_row
    look = first_look(runs, row)
    while row < last_row:
        stop, steady, look = next_stretch(lo, hi, runs, row, last_row, look)
        while row < stop:
            first, last = np.int64(lo[row]), np.int64(hi[row])
            if first >= right:
                middle = right = first
            elif first >= middle:
                base = first
                if right - first >= LONG and batches(cells):
                    flip_in_batches(cells, first, right, front)
                else:
                    flip(cells, first, right, front)
                middle = right
            if right == middle:
                back = identity(cells)
                if right < last:
                    back = load(cells, right)
                    right += 1
            while right < last:
                back = combine(back, load(cells, right))
                right += 1
            if first >= middle:
                store(out, row, back)
            elif right == middle:
                store(out, row, load(front, first - base))
            else:
                store(out, row, combine(load(front, first - base), back))
            mark(stamps, row)
            row += 1
            if steady and right > middle:
                # Up to the next flip every row adds a cell to the back and takes the next value of the front.
                count = min(stop - row, middle - 1 - first)
                if count >= LONG and batches(cells):
                    back = slide_in_batches(cells, right, back, front, first + 1 - base, row, count, out, stamps)
                elif count > 0:
                    back = slide(cells, right, back, front, first + 1 - base, row, count, out, stamps)
                if count > 0:
                    right += count
                    row += count


@compiled
def slide(cells, right, back, front, place, row, count, out, stamps):  # type: ignore[no-untyped-def]
    """Answer `count` rows whose windows each lie one cell further; return the new back."""
    for i in range(count):
        back = combine(back, load(cells, right + i))
        store(out, row + i, combine(load(front, place + i), back))
        mark(stamps, row + i)
    return back


@compiled
def flip(cells, first, right, front):  # type: ignore[no-untyped-def]
    """`front[i]` = cells from `first + i` up to `right`."""
    total = load(cells, right - 1)
    store(front, right - 1 - first, total)
    for i in range(right - 2 - first, -1, -1):
        total = combine(load(cells, first + i), total)
        store(front, i, total)
