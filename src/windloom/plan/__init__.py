"""The physical plan: immutable, printable, and the only contract between optimizer and runtime."""

from windloom.plan.physical import Plan

__all__ = ["Plan"]
