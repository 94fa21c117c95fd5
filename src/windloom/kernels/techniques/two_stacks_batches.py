"""Flips and slides of TwoStacks for selective operations: in vector code while the value so far wins.

A cell that the value so far beats changes nothing, and among random cells hardly one in a hundred is not beaten. So
cells are tested in batches for a winner. As long as there is none, a flip fills places with the value it has, and a
slide has one back for all rows. The front only falls: up to some row, which a search finds, its values are the answers,
and from there on the back is the answer. That takes at most the operations of going cell by cell, and usually fewer.

Rising cells (in a flip, falling ones) win in every batch; then batches are tried less and less often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.compiling.operations import mark
from windloom.kernels.families.algebra import BATCH, beats_batch, combine, in_batches, load, same, store

#: Batches pay off from this many cells on: in short windows, too many cells win.
LONG = 256

#: At most this many cells are taken one by one before a batch is tried again.
REST = 1024


# Names for compiled code only, where other operations compile to nothing.
def batches(cells: Any) -> bool:
    """Whether these cells can be tested in batches."""
    raise NotImplementedError("compiled code only")


def slide_in_batches(
    cells: Any, right: Any, back: Any, front: Any, place: Any, row: Any, count: Any, out: Any, stamps: Any
) -> Any:
    """Answers `count` rows whose windows each lie one cell further; returns the new back."""
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
    overtaken = False  # by the back: the front gives no more answers
    while done < count:
        held = done
        # After a winner, the last cell of a batch is tested first: if cells rise, that decides.
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
