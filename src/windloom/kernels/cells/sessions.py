"""Joining sessions: neighbouring cells of a group become one if no pause longer than the gap lies between them."""

from __future__ import annotations

import numpy as np

from windloom.kernels.compiling.compiled import compiled


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
