"""The physical plan: immutable, printable, and the only contract between optimizer and runtime."""

from windloom.plan.physical import PartialSet, Plan, PlannedComponent, PlannedQuery, Shape, Tree

__all__ = ["PartialSet", "Plan", "PlannedComponent", "PlannedQuery", "Shape", "Tree"]
