"""What a round is judged by on recorded packets: the optimum afterwards, and what rivals would have run with.

Source B compares with RAND, which takes any candidate, and RATE, which looks at rates alone. Here RATE takes the
candidate with the least predicted seconds, whatever the objective. A third rival is the best plan of all that stay: how
often it is a hit says how much there is to follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from windloom.optimizer.adapt.adapter import Adapter
from windloom.optimizer.adapt.objective import Least
from windloom.optimizer.adapt.switching import CLEARLY
from windloom.plan.choices import Choices
from windloom.plan.observed import RoundObserved


@dataclass
class Rivals:
    """Of every judged round the optimum, and which candidates were as good: no switch would be made for the other."""

    optima: list[Choices] = field(default_factory=list)
    good: list[frozenset[Choices]] = field(default_factory=list)
    random: float = 0.0
    by_rate: int = 0
    seconds: float = 0.0  # that the optima are predicted to take, all together

    def judge(self, adapter: Adapter, choices: Choices, seen: RoundObserved) -> None:
        (followed,) = adapter.followed
        if followed.chart is None:
            return
        ranking = adapter._best_for(followed.chart, followed.basin.own(choices), seen)
        costs = {each.choices: adapter.correction(each.cost, each.choices) for each in ranking}
        best, objective = ranking[0].choices, adapter.objective
        good = set()
        for other, cost in costs.items():
            bounds = Least.of([cost, costs[best]])
            if objective.utility(costs[best], bounds) >= (1 - CLEARLY) * objective.utility(cost, bounds):
                good.add(other)
        self.optima.append(best)
        self.good.append(frozenset(good))
        self.random += len(good) / len(costs)
        self.by_rate += min(costs, key=lambda other: costs[other].seconds) in good
        self.seconds += costs[best].seconds

    @property
    def distinct(self) -> int:
        """Plans that were the optimum of some round."""
        return len(Counter(self.optima))

    @property
    def changes(self) -> int:
        """How often the plan before was no longer as good as the optimum."""
        return sum(before not in good for before, good in zip(self.optima, self.good[1:], strict=False))

    @property
    def staying(self) -> float:
        """The share of rounds for which the best of all plans that stay is as good as the optimum."""
        every = Counter(choices for good in self.good for choices in good)
        return max(every.values()) / len(self.good)

    def told(self) -> str:
        rounds = len(self.optima)
        return (
            f"{self.distinct} optima that changed {self.changes} times; the best plan that stays {self.staying:.0%},"
            f" RATE {self.by_rate / rounds:.0%}, RAND {self.random / rounds:.0%}"
        )


@contextmanager
def judging() -> Iterator[Rivals]:
    """While the block runs, whatever is judged is noted."""
    rivals, judged = Rivals(), Adapter._judged

    def run(adapter: Adapter, choices: Choices, seen: RoundObserved) -> None:
        rivals.judge(adapter, choices, seen)
        judged(adapter, choices, seen)

    with patch.object(Adapter, "_judged", run):
        yield rivals
