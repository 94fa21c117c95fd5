"""Folding: cells before the watermark that every open window of a landmark query covers become one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from windloom.rounds.cells import Cells, CellsBuilder, keep_from


def fold_behind(cells: Cells, tick: int, starts: Iterable[int]) -> Cells:
    """Merge cells before `tick` into one per group from each landmark to the next; drop those before all landmarks.

    Every open window of a landmark query covers all cells behind the watermark, from its landmark on. So these need not
    be kept apart, and the state does not grow with the stream.
    """
    edges = np.unique(np.array(list(starts), np.int64))
    folded = cells.starts < tick
    landmark_index = np.searchsorted(edges, cells.starts, side="right") - 1
    moved = np.where(folded & (landmark_index >= 0), edges[landmark_index], cells.starts)
    folded_cells = cells if (moved == cells.starts).all() else CellsBuilder.of_cells(cells, moved).build(cells.lifted)
    return keep_from(folded_cells, min(int(edges[0]), tick))
