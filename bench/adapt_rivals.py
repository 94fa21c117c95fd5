"""What a round is judged by on recorded packets: the optimum afterwards, and what rivals would have run with.

Source B compares with RAND, which takes any candidate, and RATE, which looks at rates alone. Here RATE takes the
candidate with the least predicted seconds, whatever the objective. A third rival is the best plan of all that stay: how
often it is a hit says how much there is to follow.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from unittest.mock import patch

from windloom.optimizer.adapt.chart_figures import LikeRounds
from windloom.optimizer.adapt.objective import TIE, BestCosts, Prices
from windloom.optimizer.adapt.replan import Adapter
from windloom.optimizer.adapt.round_cost import Correction, round_cost
from windloom.optimizer.cost.constants import VARIABLE
from windloom.optimizer.facts import with_statistics
from windloom.plan.costs import Choices
from windloom.statistics.estimates import estimates_of
from windloom.statistics.observations import RoundObserved


@dataclass
class Rivals:
    """Of every judged round the optimum, and which candidates tie with it."""

    optima: list[Choices] = field(default_factory=list)
    good: list[frozenset[Choices]] = field(default_factory=list)
    random: float = 0.0
    by_rate: int = 0
    exact: int = 0  # rounds whose plan is the optimum to the last technique
    seconds: float = 0.0  # that the optima are predicted to take, all together
    lost: float = 0.0  # seconds that the plans are predicted to take beyond that, less if a plan is faster but larger
    utilities: list[float] = field(default_factory=lambda: [0.0, 0.0])  # of the plans and of the optima, all together
    missed: list[tuple[int, float]] = field(default_factory=list)  # rounds, and by how much their plan was worse

    def judge(self, adapter: Adapter, choices: Choices, seen: RoundObserved, corrected: Correction) -> None:
        (followed,) = adapter.followed
        own = followed.basin.own(choices)
        ranking = adapter._best_for(followed, own, seen, corrected)
        costs = {each.choices: corrected(each.cost, each.choices) for each in ranking}
        best, objective = ranking[0].choices, adapter.objective
        good, bounds = set(), BestCosts.of([*costs.values()])
        for other, cost in costs.items():
            share = objective.utility(costs[best], bounds) / objective.utility(cost, bounds)
            if share >= 1 - TIE:
                good.add(other)
            elif other == own:
                self.missed.append((len(self.optima), 1 / share - 1))
        self.optima.append(best)
        self.good.append(frozenset(good))
        self.random += len(good) / len(costs)
        self.by_rate += min(costs, key=lambda other: costs[other].seconds) in good
        self.exact += best == own
        self.seconds += costs[best].seconds
        self.lost += costs[own].seconds - costs[best].seconds
        self.utilities[0] += objective.utility(costs[own], bounds)
        self.utilities[1] += objective.utility(costs[best], bounds)

    @property
    def regret(self) -> float:
        """By which share the plans are worse than the optima, in the objective."""
        return self.utilities[0] / self.utilities[1] - 1

    @property
    def distinct(self) -> int:
        """Plans that were the optimum of some round."""
        return len(Counter(self.optima))

    @property
    def changes(self) -> int:
        """How often the optimum of the round before was none any more."""
        return sum(before not in good for before, good in zip(self.optima, self.good[1:], strict=False))

    @property
    def staying(self) -> float:
        """The share of rounds for which the best of all plans that stay is an optimum."""
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
    """While the block runs, every round is judged by itself, and whatever is judged is noted."""
    rivals, judged = Rivals(), Adapter._judged

    def run(adapter: Adapter, choices: Choices, seen: RoundObserved, corrected: Correction) -> None:
        for followed in adapter.followed:
            followed.judged = LikeRounds()  # no round is taken to be like another
        rivals.judge(adapter, choices, seen, corrected)
        judged(adapter, choices, seen, corrected)

    with patch.object(Adapter, "_judged", run):
        yield rivals


@contextmanager
def clock_of_the_model() -> Iterator[None]:
    """While the block runs, a round takes what the shipped constants predict for what it brought, and a switch nothing.

    Then plans and optima depend on data alone. By a real clock they depend on what else the machine does, too: where
    rounds are short, what it takes to start a job decides between plans, and that changes with every round.
    """
    done, begun = Adapter.done, Adapter.begin

    def run(
        adapter: Adapter, seen: RoundObserved, seconds: Mapping[str, float], state_bytes: int, **named: bool
    ) -> Choices | None:
        assert adapter._plan is not None
        if not adapter.followed:
            return done(adapter, seen, seconds, state_bytes, **named)
        known = adapter.followed[0].basin.known.with_estimates(estimates_of(seen).before(adapter.estimates()))
        cost = round_cost(with_statistics(adapter._plan, known), known.in_force())
        taken = {"partials": cost.intake + cost.rest, "step": cost.step, "answers": cost.answers}
        return done(adapter, seen, taken, round(cost.held), **named)

    def begin(adapter: Adapter, *arguments: Any) -> None:
        adapter.prices = Prices(0.0, 0.0, 0.0)
        begun(adapter, *arguments)

    def switched(adapter: Adapter, seconds: float) -> None: ...

    shipped = str(files("windloom.optimizer.cost").joinpath("constants.json"))
    with (
        patch.dict(os.environ, {VARIABLE: shipped}),
        patch.object(Adapter, "begin", begin),
        patch.object(Adapter, "done", run),
        patch.object(Adapter, "switched", switched),
    ):
        yield
