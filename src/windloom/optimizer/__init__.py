"""From queries to a plan: rules first, then the search for what to share, by cost."""

from windloom.optimizer.report import report_sharing
from windloom.optimizer.scans import SCANS, scans_by_grouping
from windloom.optimizer.sharing.registry import STRATEGIES
from windloom.optimizer.stages import Known, PlanOptions, SetKey, make_plan, set_key

__all__ = [
    "SCANS",
    "STRATEGIES",
    "Known",
    "PlanOptions",
    "SetKey",
    "make_plan",
    "report_sharing",
    "scans_by_grouping",
    "set_key",
]
