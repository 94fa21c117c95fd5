"""Merging cells: runs of neighbouring cells become one, and running values inside a run become marks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled
from windloom.kernels.families import combine, load, store
from windloom.model.arrays import Ints


@compiled
def merge_runs(cells, order, runs, out):  # type: ignore[no-untyped-def]
    """`out[r]` = cells `order[runs[r] : runs[r + 1]]` combined in that order."""
    for run in range(len(runs) - 1):
        total = load(cells, order[runs[run]])
        for i in range(runs[run] + 1, runs[run + 1]):
            total = combine(total, load(cells, order[i]))
        store(out, run, total)


@compiled
def running_values(cells, runs, out):  # type: ignore[no-untyped-def]
    """`out[i]` = the cells of i's run from its start up to and including i."""
    for run in range(len(runs) - 1):
        total = load(cells, runs[run])
        store(out, runs[run], total)
        for i in range(runs[run] + 1, runs[run + 1]):
            total = combine(total, load(cells, i))
            store(out, i, total)


@compiled
def append_tails(out, marks, tail, first, last):  # type: ignore[no-untyped-def]
    """Complete rows `first : last` with the running value of the cell in which their window ends."""
    for row in range(first, last):
        store(out, row, combine(load(out, row), load(marks, tail[row])))


# Appends the cells of parts that follow one another in time, group by group, without sorting.
#
# Portions of a file are usually such parts. Only the last slice of a part may continue in the next part: then its cells
# are combined.


@dataclass(frozen=True, slots=True)
class Places:
    """Where the cells of one part go: for each of its groups, the place of the first cell; the others follow it.

    With `joins`, the first cell is combined with the cell that an earlier part has put there.
    """

    bounds: Ints  # those of the part's groups
    first: Ints
    joins: NDArray[np.bool_]


def places_of(
    starts: list[Ints], bounds: list[Ints], numbers: list[Ints], groups: int
) -> tuple[Ints, list[Places]] | None:
    """Return the bounds of all groups, and the places of each part; None if cells of a part precede those before it.

    For each part: the slice starts of its cells, the bounds of its groups, and the numbers of these groups among all.
    """
    sizes, last = np.zeros(groups, np.int64), np.empty(groups, np.int64)
    places_by_part = []
    for own_starts, own_bounds, own_numbers in zip(starts, bounds, numbers, strict=True):
        places = Places(own_bounds, np.empty(len(own_numbers), np.int64), np.zeros(len(own_numbers), np.bool_))
        if not _follow(own_starts, own_bounds, own_numbers, sizes, last, places.first, places.joins):
            return None
        places_by_part.append(places)
    all_bounds = np.zeros(groups + 1, np.int64)
    np.cumsum(sizes, out=all_bounds[1:])
    for places, own_numbers in zip(places_by_part, numbers, strict=True):
        places.first[:] += all_bounds[own_numbers]
    return all_bounds, places_by_part


@compiled
def _follow(starts, bounds, numbers, sizes, last, first, joins):  # type: ignore[no-untyped-def]
    """Append a part to its groups; return whether it follows them. `first` counts from the group's beginning."""
    for group in range(len(numbers)):
        begin, end = bounds[group], bounds[group + 1]
        number = numbers[group]
        first[group] = sizes[number]
        if begin == end:
            continue
        if sizes[number] > 0:
            if starts[begin] < last[number]:
                return False
            if starts[begin] == last[number]:
                joins[group] = True
                first[group] -= 1
        sizes[number] = first[group] + end - begin
        last[number] = starts[end - 1]
    return True


def runs_of(places: list[Places], cells: int) -> tuple[Ints, Ints]:
    """Return the cells of all parts, one part after the other, in the order of their places, and each place's run."""
    runs, begin = np.zeros(cells + 1, np.int64), 0
    for own in places:
        _count(own.bounds, own.first, runs)
    np.cumsum(runs, out=runs)
    order, next_in_run = np.empty(runs[-1], np.int64), runs[:-1].copy()
    for own in places:
        _arrange(own.bounds, own.first, begin, next_in_run, order)
        begin += own.bounds[-1]
    return order, runs


@compiled
def _count(bounds, first, runs):  # type: ignore[no-untyped-def]
    for group in range(len(first)):
        for i in range(bounds[group + 1] - bounds[group]):
            runs[first[group] + i + 1] += 1


@compiled
def _arrange(bounds, first, begin, next_in_run, order):  # type: ignore[no-untyped-def]
    for group in range(len(first)):
        for i in range(bounds[group + 1] - bounds[group]):
            order[next_in_run[first[group] + i]] = begin + bounds[group] + i
            next_in_run[first[group] + i] += 1


@compiled
def place_starts(starts, bounds, first, out):  # type: ignore[no-untyped-def]
    """Write the starts of a part's cells to their places; cells that are combined have equal starts."""
    for group in range(len(first)):
        for i in range(bounds[group + 1] - bounds[group]):
            out[first[group] + i] = starts[bounds[group] + i]


@compiled
def place_cells(cells, bounds, first, joins, out):  # type: ignore[no-untyped-def]
    """Write the cells of a part to their places; those of earlier parts are there already."""
    for group in range(len(first)):
        begin, end = bounds[group], bounds[group + 1]
        place = first[group]
        if joins[group]:
            store(out, place, combine(load(out, place), load(cells, begin)))
            begin += 1
            place += 1
        for i in range(end - begin):
            store(out, place + i, load(cells, begin + i))


# Joining sessions: neighbouring cells of a group become one if no pause longer than the gap lies between them.


@compiled
def session_starts(starts, lasts, group_bounds, gap, closed, out):  # type: ignore[no-untyped-def]
    """`out[i]` = where the session of cell i begins. Cells `[starts[i], lasts[i]]` are in order of their starts.

    Sessions that end before `closed` are complete: nothing joins them any more.
    """
    for group in range(len(group_bounds) - 1):
        begin = group_bounds[group]
        last = np.int64(0)
        for i in range(begin, group_bounds[group + 1]):
            if i > begin and last + gap >= closed and starts[i] - last <= gap:
                out[i] = out[i - 1]
                last = max(last, lasts[i])
            else:
                out[i] = starts[i]
                last = lasts[i]
