"""From queries to a plan: rules first, then the search for what to share, by cost."""

from windloom.optimizer.sharing.registry import STRATEGIES
from windloom.optimizer.stages import PlanOptions, make_plan

__all__ = ["STRATEGIES", "PlanOptions", "make_plan"]
