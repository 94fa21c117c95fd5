"""Whether it is clear which candidate is best, or a closer look may show that it is another one."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.optimizer.adapt.candidates import Candidate, Corrected
from windloom.optimizer.adapt.objective import Least, Objective

#: A candidate whose utility is larger by no more than this share may turn out to be the best one.
NEAR = 0.25


def has_rival(found: Sequence[Candidate], objective: Objective, corrected: Corrected) -> bool:
    """Is there a candidate with other options than the first one, best by what is expected, that is nearly as good?

    Plans that only differ in trees and techniques differ by microseconds: no look is worth that.
    """
    costs = [corrected(candidate.cost, candidate.choices) for candidate in found]
    least = Least.of(costs)
    bound, options = (1 + NEAR) * objective.utility(costs[0], least), found[0].choices.options
    return any(
        candidate.choices.options != options and objective.utility(cost, least) <= bound
        for candidate, cost in zip(found[1:], costs[1:], strict=True)
    )
