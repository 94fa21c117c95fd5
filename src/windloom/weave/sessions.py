"""The grid of sessions: a cell for every run of a group's tuples without a pause longer than the gap."""

from __future__ import annotations

from threading import RLock

import numpy as np

from windloom.kernels.compiling.compiled import compiled
from windloom.model.arrays import Codes, Ints
from windloom.weave.grid import Grid, Grouping


class SessionGrid(Grid):
    """The cells of sessions: one for every run of tuples of a group without a pause.

    Only chosen tuples count, because others would bridge pauses. Tuples that are not chosen have no cell.
    """

    def __init__(self, ticks: Ints, gap: int, grouping: Grouping, rows: Codes, every: bool) -> None:
        self.lock = RLock()
        self.grouping = grouping
        chosen = len(ticks) if every else len(rows)
        order = np.empty(chosen, np.int32)
        _order_tuples(ticks, grouping.codes, grouping.count, rows, every, order)
        self.cells = np.zeros(len(ticks), np.int32)
        starts = np.empty(chosen, np.int64)
        group_of, row_of = np.empty(chosen, np.int32), np.empty(chosen, np.int32)
        count = _number_sessions(ticks, grouping.codes, order, gap, self.cells, starts, group_of, row_of)
        self.starts = starts[:count].copy()
        self.group_of, self.row_of = group_of[:count].copy(), row_of[:count].copy()
        self.slice_of = np.arange(count, dtype=np.int32)


@compiled
def _order_tuples(ticks, codes, groups, rows, every, order):  # type: ignore[no-untyped-def]
    """Chosen tuples by group (a counting sort), then by tick within each group."""
    places = np.zeros(groups + 1, np.int64)
    for k in range(len(order)):
        i = k if every else np.int64(rows[k])
        places[(codes[i] if len(codes) else 0) + 1] += 1
    for group in range(groups):
        places[group + 1] += places[group]
    bounds = places.copy()
    for k in range(len(order)):
        i = k if every else np.int64(rows[k])
        group = codes[i] if len(codes) else 0
        order[places[group]] = i
        places[group] += 1
    for group in range(groups):
        run = order[bounds[group] : bounds[group + 1]]
        is_sorted = True
        for j in range(1, len(run)):
            if ticks[run[j]] < ticks[run[j - 1]]:
                is_sorted = False
                break
        if not is_sorted:
            run[:] = run[np.argsort(ticks[run], kind="mergesort")]


@compiled
def _number_sessions(ticks, codes, order, gap, cells, starts, group_of, row_of):  # type: ignore[no-untyped-def]
    """Numbers the sessions in order of group and time; a pause of exactly the gap does not end one."""
    count = 0
    last = np.int64(0)
    for k in range(len(order)):
        i = np.int64(order[k])
        group = np.int32(codes[i] if len(codes) else 0)
        if count == 0 or group != group_of[count - 1] or ticks[i] - last > gap:
            starts[count] = ticks[i]
            group_of[count] = group
            row_of[count] = i
            count += 1
        last = ticks[i]
        cells[i] = count - 1
    return count
