"""From queries to a plan: rules first, then the search for what to share, by cost."""

from windloom.optimizer.adapt.candidates import choices_of
from windloom.optimizer.intake import INTAKES
from windloom.optimizer.joins.bits import JOIN_PLANS
from windloom.optimizer.known import Known
from windloom.optimizer.report import report_sharing
from windloom.optimizer.sharing.registry import STRATEGIES
from windloom.optimizer.stages import PlanOptions, make_plan

__all__ = [
    "INTAKES",
    "JOIN_PLANS",
    "STRATEGIES",
    "Known",
    "PlanOptions",
    "choices_of",
    "make_plan",
    "report_sharing",
]
