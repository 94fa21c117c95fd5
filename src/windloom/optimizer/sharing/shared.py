"""Shared: all queries in one tree (Shared Time Slices of Krishnamurthy et al.)."""

from __future__ import annotations

from windloom.optimizer.sharing.problem import SharingProblem, Trees


class SharedStrategy:
    name = "shared"

    def choose(self, problem: SharingProblem) -> Trees:
        return (tuple(range(len(problem.windows))),)
