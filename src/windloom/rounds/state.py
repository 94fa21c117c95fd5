"""What a loom remembers between rounds: the cells open windows still need, and how far windows are closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windloom.model.time import TICK_MIN
from windloom.rounds.cells import Cells


@dataclass(frozen=True, slots=True)
class State:
    """`closed`: every window that ends at or before it has been reported."""

    cells: Mapping[int, Cells] = field(default_factory=dict)  # by number of the partial set
    closed: int = TICK_MIN
