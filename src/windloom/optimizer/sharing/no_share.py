"""No Share: every query is its own tree (the baseline of all sources)."""

from __future__ import annotations

from windloom.optimizer.sharing.problem import SharingProblem, Trees


class NoShare:
    name = "no_share"

    def choose(self, problem: SharingProblem) -> Trees:
        return tuple((index,) for index in range(len(problem.windows)))
