"""The papers' cost: a tree reads every event of its stream, and combines Ω times at every edge (Weave Share, Eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.optimizer.cost.omega import Load, omega


@dataclass(frozen=True, slots=True)
class PaperCost:
    """λ + E·Ω, with Ω of all the techniques (as Ω names them) that answer the queries."""

    techniques: tuple[str, ...]
    events_per_second: float
    name: str = "paper"
    unit: str = "operations per second"

    def tree_cost(self, load: Load, edges_per_second: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.events_per_second + edges_per_second * omega(self.techniques, load, edges_per_second)
