"""From queries to a plan: rules first, then the search for what to share, by cost."""

from windloom.optimizer.intake import INTAKES, intakes_of
from windloom.optimizer.report import report_sharing
from windloom.optimizer.sharing.registry import STRATEGIES
from windloom.optimizer.stages import Known, PlanOptions, SetKey, make_plan, set_key

__all__ = [
    "INTAKES",
    "STRATEGIES",
    "Known",
    "PlanOptions",
    "SetKey",
    "intakes_of",
    "make_plan",
    "report_sharing",
    "set_key",
]
