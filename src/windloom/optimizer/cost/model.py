"""What a cost model is: the one thing that sharing strategies know of costs."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windloom.optimizer.cost.omega import Load


class CostModel(Protocol):
    """Costs of trees, in one unit; a plan costs what its trees cost."""

    @property
    def name(self) -> str:
        """`paper` or `calibrated`."""

    @property
    def unit(self) -> str:
        """`operations per second`, or `seconds per second`, of event time."""

    def tree_cost(self, load: Load, edges_per_second: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cost of each tree of `load`, the charge a tree has for itself (λ in the papers) included."""
