"""Cells that hold lists: their columns, the questions they answer, and how they are merged.

Cell i holds entries `bounds[i] : bounds[i + 1]`, in ascending order of code, no code twice. A code is the rank of a
value among all values held, so that codes have the order of values; `counts` holds how often the value occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled
from windloom.kernels.locate import WindowArrays
from windloom.model.arrays import Codes, Ints

#: The most values of one answer that is a list.
MOST_LISTED = 100_000


class Lists(NamedTuple):
    bounds: Any
    codes: Any
    counts: Any


@dataclass(frozen=True, slots=True)
class Distinct:
    """The question: how many codes does a window hold?"""

    codes: int  # one more than the largest code of all cells
    found: Ints


@dataclass(frozen=True, slots=True)
class RankedLists:
    """The question: which codes are on both sides of the place `share · (total - 1)` in a window's ordered values?

    With `is_one`, both are the first code that at least the share of all values does not exceed.
    """

    codes: int
    share: float
    total: Ints
    lower: Codes
    higher: Codes
    is_one: bool = False


@dataclass(slots=True)
class Top:
    """The question: which k codes occur most often, and how often? Among equals the smaller code comes first."""

    codes: int
    k: int
    items: Lists | None = None  # a list for each row


@dataclass(slots=True)
class Members:
    """The question: which codes occur, in order, and how often?

    A row with more than `most` values is `beyond`; with `repeats`, a code counts as often as it occurs.
    """

    codes: int
    repeats: bool
    most: int = MOST_LISTED
    items: Lists | None = None  # a list for each row
    beyond: int = -1


@dataclass(slots=True)
class Frequent:
    """The question: which codes certainly occur more than `threshold` times, and what is `threshold` (Algorithm 6)?"""

    codes: int
    k: int
    starts: Ints  # where the cells begin
    windows: WindowArrays  # of all queries
    threshold: Ints
    items: Lists | None = None


@dataclass(frozen=True, slots=True)
class RegisterQuestion:
    """The question: about how many values were hashed? Here, codes are registers and counts are ranks."""

    codes: int
    found: Ints


#: The questions that lists answer.
Question = Distinct | RankedLists | Top | Members | Frequent | RegisterQuestion


def merge_lists(cells: Lists, codes: int, order: Ints, runs: Ints, *, largest: bool = False) -> Lists:
    """Merge cells `order[runs[r] : runs[r + 1]]` for every r: equal codes become one entry, with the sum of counts.

    With `largest`, the entry has the largest count instead.
    """
    entries = int(cells.bounds[-1])
    merged = Lists(np.zeros(len(runs), np.int64), np.empty(entries, np.int32), np.empty(entries, np.int64))
    used = _merge(cells.bounds, cells.codes, cells.counts, codes, order, runs, largest, *merged)
    if used == entries:
        return merged
    return Lists(merged.bounds, merged.codes[:used].copy(), merged.counts[:used].copy())


@compiled
def _merge(bounds, codes, counts, universe, order, runs, largest, to_bounds, to_codes, to_counts):  # type: ignore[no-untyped-def]
    # Two stable counting sorts, by code and then by run, put every run's entries side by side in order of code. Where
    # portions of a stream are put together, most cells are alone in their run: these are copied.
    sizes = np.zeros(len(runs), np.int64)
    places = np.zeros(universe + 1, np.int64)
    for run in range(len(runs) - 1):
        if runs[run + 1] - runs[run] > 1:
            for i in range(runs[run], runs[run + 1]):
                cell = order[i]
                for entry in range(bounds[cell], bounds[cell + 1]):
                    places[codes[entry] + 1] += 1
                sizes[run + 1] += bounds[cell + 1] - bounds[cell]
    for code in range(universe):
        places[code + 1] += places[code]
    for run in range(len(runs) - 1):
        sizes[run + 1] += sizes[run]
    total = sizes[-1]
    by_code, run_of = np.empty(total, np.int64), np.empty(total, np.int32)
    for run in range(len(runs) - 1):
        if runs[run + 1] - runs[run] > 1:
            for i in range(runs[run], runs[run + 1]):
                cell = order[i]
                for entry in range(bounds[cell], bounds[cell + 1]):
                    place = places[codes[entry]]
                    places[codes[entry]] += 1
                    by_code[place] = entry
                    run_of[place] = run
    arranged = np.empty(total, np.int64)
    next_place = sizes[:-1].copy()
    for place in range(total):
        run = run_of[place]
        arranged[next_place[run]] = by_code[place]
        next_place[run] += 1
    used = np.int64(0)
    for run in range(len(runs) - 1):
        first = used
        if runs[run + 1] - runs[run] == 1:
            cell = order[runs[run]]
            for entry in range(bounds[cell], bounds[cell + 1]):
                to_codes[used] = codes[entry]
                to_counts[used] = counts[entry]
                used += 1
        for place in range(sizes[run], sizes[run + 1]):
            entry = arranged[place]
            if used > first and to_codes[used - 1] == codes[entry]:
                both = max(to_counts[used - 1], counts[entry]) if largest else to_counts[used - 1] + counts[entry]
                to_counts[used - 1] = both
            else:
                to_codes[used] = codes[entry]
                to_counts[used] = counts[entry]
                used += 1
        to_bounds[run + 1] = used
    return used


def reduce_lists(cells: Lists, most: int) -> Lists:
    """Reduce cells with more than twice `most` entries to at most `most`, less the count of the next one.

    Every reduction takes the same amount from more than `most` values, so a count loses in all reductions together at
    most the number of all values divided by `most + 1` (Misra and Gries).
    """
    if not len(cells.bounds) or int(np.diff(cells.bounds).max(initial=0)) <= 2 * most:
        return cells
    reduced = Lists(np.zeros_like(cells.bounds), np.empty_like(cells.codes), np.empty_like(cells.counts))
    used = _reduce(*cells, most, *reduced)
    return Lists(reduced.bounds, reduced.codes[:used].copy(), reduced.counts[:used].copy())


@compiled
def _reduce(bounds, codes, counts, most, to_bounds, to_codes, to_counts):  # type: ignore[no-untyped-def]
    used = 0
    for cell in range(len(bounds) - 1):
        own = counts[bounds[cell] : bounds[cell + 1]]
        less = np.int64(0)
        if len(own) > 2 * most:
            less = np.sort(own)[len(own) - 1 - most]
        for entry in range(bounds[cell], bounds[cell + 1]):
            if counts[entry] > less:
                to_codes[used] = codes[entry]
                to_counts[used] = counts[entry] - less
                used += 1
        to_bounds[cell + 1] = used
    return used


def entries_of(cells: Lists, wanted: NDArray[np.bool_]) -> Lists:
    """Return only the wanted cells."""
    sizes = np.diff(cells.bounds)
    wanted_entries = np.repeat(wanted, sizes)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[wanted])])
    return Lists(bounds, cells.codes[wanted_entries], cells.counts[wanted_entries])
