"""Whether it is clear which candidate is best, or a closer look may show another one, and what such a look saves."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.optimizer.adapt.candidates import Candidate, Corrected
from windloom.optimizer.adapt.objective import Least, Objective
from windloom.plan.choices import Choices

#: A candidate whose utility is larger by no more than this share may turn out to be the best one.
NEAR = 0.25


def has_rival(found: Sequence[Candidate], objective: Objective, corrected: Corrected) -> bool:
    """Whether a candidate with other options is nearly as good as the first one, which is expected to be best.

    Plans that differ only in trees and techniques differ by microseconds, which no look is worth.
    """
    costs = [corrected(candidate.cost, candidate.choices) for candidate in found]
    least = Least.of(costs)
    bound, options = (1 + NEAR) * objective.utility(costs[0], least), found[0].choices.options
    return any(
        candidate.choices.options != options and objective.utility(cost, least) <= bound
        for candidate, cost in zip(found[1:], costs[1:], strict=True)
    )


def saved_by(guess: Choices, best: Sequence[Candidate], objective: Objective, corrected: Corrected) -> float:
    """The seconds that a round is predicted to save with the first candidate, instead of the one that was guessed.

    Memory that is saved counts as time, as far as it does in the objective.
    """
    costs = {candidate.choices: corrected(candidate.cost, candidate.choices) for candidate in best}
    if guess not in costs:
        return 0.0
    least, chosen = Least.of([*costs.values()]), costs[best[0].choices]
    return (1 - objective.utility(chosen, least) / objective.utility(costs[guess], least)) * chosen.seconds
