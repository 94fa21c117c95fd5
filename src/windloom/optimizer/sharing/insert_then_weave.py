"""Insert-then-Weave (source A, section 6): puts queries one by one where they save most, then merges trees."""

from __future__ import annotations

import numpy as np

from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.search import Merging, merge_trees


class InsertThenWeave:
    name = "insert_then_weave"

    def choose(self, problem: SharingProblem) -> Trees:
        merging = Merging(problem, [[bundle] for bundle in range(len(problem.bundles))])
        merging.alive[:] = False
        for bundle in range(len(problem.bundles)):
            gains = merging.gains_of(bundle)
            merging.alive[bundle] = True
            best = int(np.argmax(gains))
            if gains[best] > merging.no_gain:
                merging.merge(best, bundle)
        return problem.trees(merge_trees(problem, merging.groups))
