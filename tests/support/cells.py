"""The check of cells: order, bounds, equal lengths, no empty cell, as drawn at `CellsBuilder`."""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.aggregates.columns import ListColumns
from windloom.state.cells import Cells
from windloom.weave.round_input import ScanResult


def check_cells(cells: Cells) -> None:
    """Raises an AssertionError that says what is wrong with cells."""
    bounds, starts = cells.group_bounds, cells.starts
    assert len(bounds) >= 1, "there are no bounds"
    assert bounds[0] == 0, f"the first group begins at {bounds[0]}"
    assert bounds[-1] == len(starts), f"the last group ends at {bounds[-1]} of {len(starts)} cells"
    sizes = np.diff(bounds)
    if cells.keys:
        assert (sizes > 0).all(), f"groups without cells: {np.flatnonzero(sizes <= 0)}"
        assert {len(key) for key in cells.keys} == {cells.groups}, "keys are not one per group"
    else:
        assert cells.groups == 1 or not len(starts), "there are several groups without keys"
    group = np.repeat(np.arange(cells.groups), sizes)
    follows = (group[1:] > group[:-1]) | (starts[1:] > starts[:-1])
    assert follows.all(), f"starts do not ascend at cells {np.flatnonzero(~follows) + 1}"
    for number, component in enumerate(cells.lifted):
        if isinstance(component, ListColumns):
            lengths = {len(component)}
        else:
            columns = [column for limb in component.limbs for column in limb]
            columns += [] if component.valid is None else [component.valid.value]
            lengths = {len(column) for column in columns}
        assert lengths <= {len(starts)}, f"component {number} has {lengths} cells of {len(starts)}"


def check_set(cells: Cells) -> None:
    """Also that every cell of a set holds a tuple."""
    check_cells(cells)
    assert (cells.tuples > 0).all(), f"cells without tuples: {np.flatnonzero(cells.tuples <= 0)}"


def check_all_cells() -> None:
    """From now on, checks all cells that are made in this process, and those of sets when a round has read them."""
    make_cells, make_taken = Cells.__init__, ScanResult.__init__

    def make_checked_cells(self: Cells, *given: Any, **named: Any) -> None:
        make_cells(self, *given, **named)
        check_cells(self)

    def make_checked_taken(self: ScanResult, *given: Any, **named: Any) -> None:
        make_taken(self, *given, **named)
        for cells in self.cells.values():
            check_set(cells)

    Cells.__init__ = make_checked_cells  # type: ignore[method-assign]
    ScanResult.__init__ = make_checked_taken  # type: ignore[method-assign]
