"""Flips and slides of TwoStacks for operations that select: where the value so far wins, in vector code.

A cell that the value so far beats changes nothing, and of random cells hardly one in a hundred is not beaten. So cells
are asked in batches whether any of them wins. For as long as none does, a flip fills places with the value it has, and
a slide has one back for all rows. The front only falls: up to some row, which is searched for, its values are the
answers, and from there on the back is. That takes no more operations than going cell by cell, and mostly fewer.

Rising cells (in a flip, falling ones) win in every batch: then batches are tried ever more rarely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.compiling.operations import mark
from windloom.kernels.families.algebra import BATCH, beats_batch, combine, in_batches, load, same, store

#: From how many cells on this pays: in short windows too many cells win.
LONG = 256

#: Cells that go one by one at most before a batch is tried again.
REST = 1024


# Names for compiled code only, where other operations compile to nothing.
def batches(cells: Any) -> bool:
    """Can these cells be asked in batches?"""
    raise NotImplementedError("compiled code only")


def slide_in_batches(
    cells: Any, right: Any, back: Any, front: Any, place: Any, row: Any, count: Any, out: Any, stamps: Any
) -> Any:
    """Answer `count` rows whose windows each lie one cell further; returns what the back has become."""
    raise NotImplementedError("compiled code only")


def flip_in_batches(cells: Any, first: Any, right: Any, front: Any) -> None:
    """`front[i]` = cells from `first + i` up to `right`."""
    raise NotImplementedError("compiled code only")


@overload(batches, strict=False)
def _batches(cells: Any) -> Callable[..., bool]:
    possible = in_batches(cells)
    return lambda cells: possible


@overload(slide_in_batches, strict=False)
def _slide_in_batches(
    cells: Any, right: Any, back: Any, front: Any, place: Any, row: Any, count: Any, out: Any, stamps: Any
) -> Callable[..., Any]:
    if not in_batches(cells):
        return lambda cells, right, back, front, place, row, count, out, stamps: back
    return lambda cells, right, back, front, place, row, count, out, stamps: _slide(
        cells, right, back, front, place, row, count, out, stamps
    )


@overload(flip_in_batches, strict=False)
def _flip_in_batches(cells: Any, first: Any, right: Any, front: Any) -> Callable[..., None]:
    if not in_batches(cells):
        return lambda cells, first, right, front: None
    return lambda cells, first, right, front: _flip(cells, first, right, front)


@compiled
def _slide(cells, right, back, front, place, row, count, out, stamps):  # type: ignore[no-untyped-def]
    done = np.int64(0)
    rest = np.int64(BATCH)
    overtaken = False  # by the back: the front will answer no more
    while done < count:
        held = done
        # After a winner, a batch's last cell is asked first: where cells rise, that settles it.
        doubt = True
        while held + BATCH <= count:
            if doubt and not same(combine(back, load(cells, right + held + BATCH - 1)), back):
                break
            if not beats_batch(back, cells, right + held):
                break
            held += BATCH
            doubt = False
        overtaken = overtaken or same(combine(load(front, place + done), back), back)
        if held > done:
            fallen = done if overtaken else _first_beaten(front, place + done, place + held, back) - place
            for i in range(fallen - done):
                store(out, row + done + i, load(front, place + done + i))
                mark(stamps, row + done + i)
            for i in range(held - fallen):
                store(out, row + fallen + i, back)
                mark(stamps, row + fallen + i)
            overtaken = bool(fallen < held)
            rest = np.int64(BATCH)
        done = min(held + rest, count)
        rest = min(2 * rest, np.int64(REST))
        if overtaken:
            for i in range(held, done):
                back = combine(back, load(cells, right + i))
                store(out, row + i, back)
                mark(stamps, row + i)
        else:
            for i in range(held, done):
                back = combine(back, load(cells, right + i))
                store(out, row + i, combine(load(front, place + i), back))
                mark(stamps, row + i)
    return back


@compiled
def _first_beaten(front, low, high, back):  # type: ignore[no-untyped-def]
    """The first place from `low` on whose value the back beats, or `high`."""
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
        held = end
        doubt = True
        while held >= BATCH:
            if doubt and not same(combine(load(cells, first + held - BATCH), total), total):
                break
            if not beats_batch(total, cells, first + held - BATCH):
                break
            held -= BATCH
            doubt = False
        if held < end:
            for i in range(end - held):
                store(front, held + i, total)
            rest = np.int64(BATCH)
        end = max(held - rest, np.int64(0))
        rest = min(2 * rest, np.int64(REST))
        for i in range(held - 1, end - 1, -1):
            total = combine(load(cells, first + i), total)
            store(front, i, total)
