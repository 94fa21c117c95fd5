"""The papers' cost: a tree reads every event of its stream, and combines Ω times at every edge (Weave Share, Eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.optimizer.cost.omega import Load, omega


@dataclass(frozen=True, slots=True)
class PaperCost:
    """λ + E·Ω, with Ω of all the techniques (as Ω names them) that answer the queries.

    A tree that is given partials reads `tree_charge` of them per second instead of all λ events.
    """

    techniques: tuple[str, ...]
    events_per_second: float
    tree_charge: float | None = None
    name: str = "paper"
    unit: str = "operations per second"

    def tree_cost(self, load: Load, edges_per_second: NDArray[np.float64]) -> NDArray[np.float64]:
        charge = self.events_per_second if self.tree_charge is None else self.tree_charge
        return charge + edges_per_second * omega(self.techniques, load, edges_per_second)
