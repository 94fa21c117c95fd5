"""The sides of a join that Spark aggregates early, as one bit per side, and the names of such plans in source D."""

from __future__ import annotations

from windloom.plan.physical import Plan, PlannedJoin
from windloom.plan.scans import NativeScan


def early_sides(plan: Plan, join: PlannedJoin) -> tuple[bool, ...]:
    """Whether each side of a join is early: aggregated by Spark before anything leaves it."""
    return tuple(isinstance(plan.scan_of(plan.sets[place.set]), NativeScan) for place in join.sides)


def plan_name(early: tuple[bool, ...]) -> str:
    """The name of the plan in source D.

    >>> plan_name((True, False)), plan_name((False, False, False))
    ('EAP10', 'LAP')
    """
    return f"EAP{''.join('1' if is_early else '0' for is_early in early)}" if any(early) else "LAP"
