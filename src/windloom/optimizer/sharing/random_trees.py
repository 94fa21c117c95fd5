"""Random: every query goes to one of a random number of trees (a baseline of source A); always the same ones."""

from __future__ import annotations

import random

from windloom.optimizer.sharing.problem import SharingProblem, Trees


class RandomTrees:
    name = "random"

    def __init__(self, seed: int = 1) -> None:
        self._seed = seed

    def choose(self, problem: SharingProblem) -> Trees:
        rng = random.Random(self._seed)
        most = rng.randint(1, len(problem.windows))
        trees: dict[int, list[int]] = {}
        # In order of the windows, so that the order of the queries does not matter.
        for query in sorted(range(len(problem.windows)), key=problem.windows.__getitem__):
            trees.setdefault(rng.randrange(most), []).append(query)
        return tuple(sorted(tuple(sorted(tree)) for tree in trees.values()))
