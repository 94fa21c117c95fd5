"""Counting late tuples: those that find some, or all, of their windows closed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windloom.plan.physical import PartialSet
from windloom.rounds.cells import Cells


@dataclass(frozen=True, slots=True)
class Late:
    """`partly`: tuples that still count in some window; `dropped`: tuples that count in none of theirs."""

    partly: int = 0
    dropped: int = 0

    def __add__(self, other: Late) -> Late:
        return Late(self.partly + other.partly, self.dropped + other.dropped)


def count_late(one: PartialSet, fresh: Cells, closed: int) -> Late:
    """All tuples of a cell are in the same windows, so cells are counted by their COUNT(*), exactly."""
    behind = np.flatnonzero(fresh.starts < closed)
    if not len(behind):
        return Late()
    starts, tuples = fresh.starts[behind], fresh.tuples[behind]
    missed, open_ = np.zeros(len(behind), np.bool_), np.zeros(len(behind), np.bool_)
    for window in {planned.query.window for planned in one.queries}:
        first = (starts - window.offset_ticks - window.range_ticks) // window.slide_ticks + 1
        last = (starts - window.offset_ticks) // window.slide_ticks
        last_closed = (closed - window.offset_ticks - window.range_ticks) // window.slide_ticks
        missed |= (first <= last) & (first <= last_closed)
        open_ |= (first <= last) & (last > last_closed)
    return Late(int(tuples[missed & open_].sum()), int(tuples[missed & ~open_].sum()))
