"""TriWeave (Guirguis et al. 2012, as in source C, section 3.1.1): Weave Share where the stream is read once.

The stream is aggregated once, on the union of all edges, and its partials are handed to the trees. The charge of a tree
is the rate of those partials, E of all queries, instead of λ as in Weave Share; λ is charged once.
"""

from __future__ import annotations

from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.weave_share import WeaveShare


class TriWeave:
    name = "tri_weave"

    def choose(self, problem: SharingProblem) -> Trees:
        return WeaveShare().choose(problem.one_scan())
