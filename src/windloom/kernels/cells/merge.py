"""Merging cells: runs of neighbouring cells become one, and running values inside a run become marks."""

from __future__ import annotations

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.families.algebra import combine, load, store


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
    """Completes rows `first : last` with the running value of the cell in which their window ends."""
    for row in range(first, last):
        store(out, row, combine(load(out, row), load(marks, tail[row])))
