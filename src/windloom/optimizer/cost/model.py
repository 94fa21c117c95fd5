"""The cost model: all that sharing strategies know about costs."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windloom.optimizer.cost.omega import Load


class CostModel(Protocol):
    """Costs of trees, in one unit; the cost of a plan is the sum over its trees."""

    @property
    def name(self) -> str:
        """`paper` or `calibrated`."""

    @property
    def unit(self) -> str:
        """`operations per second`, or `seconds per second`, of event time."""

    def tree_cost(self, load: Load, edges_per_second: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cost of each tree of `load`, including the charge for being a tree (λ in the papers)."""
