"""Forecasts: what the model predicts of the next round, without predicting the whole plan anew in every round.

The cost of a plan is predicted at one point of the space of estimates. Near it, the seconds of a stage are taken to
change as powers of the figures: the exponents are those by which the dimensions of charts were chosen. When figures
have moved far enough, the cost is predicted anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log, prod

from windloom.optimizer.adapt.figures import Figure
from windloom.optimizer.adapt.round_cost import RoundCost
from windloom.plan.physical import Plan

#: A forecast holds while no figure has moved by more than the first factor, and for at most the second number of
#: rounds. One that was made early rests on few rounds: it holds for as many rounds as had passed, and for at least the
#: third number.
FAR, OLD, EARLY = 1.25, 32, 2
#: Beyond this factor nothing is extrapolated.
_FARTHEST = 8.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """`cost` is predicted for `plan` at `point`; `exponents` are by stage and figure."""

    plan: Plan | None
    cost: RoundCost
    point: Mapping[Figure, float]
    exponents: Mapping[str, Mapping[Figure, float]]
    round: int = 0  # after which it was made

    def at(self, values: Mapping[Figure, float]) -> RoundCost:
        """
        >>> rate = Figure("rate", "s")
        >>> one = Forecast(None, RoundCost(2.0, 1.0), {rate: 10.0}, {"intake": {rate: 1.0}})
        >>> one.at({rate: 20.0}).intake, one.at({rate: 20.0}).step
        (4.0, 1.0)
        """
        ratios = {
            figure: min(_FARTHEST, max(1 / _FARTHEST, values[figure] / value))
            for figure, value in self.point.items()
            if figure in values and value > 0
        }
        moved = {
            stage: seconds * prod(ratios[figure] ** power for figure, power in self._powers(stage) if figure in ratios)
            for stage, seconds in self.cost.stages.items()
        }
        return replace(self.cost, **moved)

    def holds(self, plan: Plan, values: Mapping[Figure, float], round: int) -> bool:
        """Whether it need not be made anew yet."""
        is_old = round - self.round >= min(OLD, max(EARLY, self.round))
        return self.plan is plan and not is_old and self.is_near(values)

    def is_near(self, values: Mapping[Figure, float]) -> bool:
        """Whether all values that it depends on are where it was made, or not far from there."""
        moved = [abs(log(values[figure] / value)) for figure, value in self.point.items() if figure in values]
        return bool(moved) and max(moved) <= log(FAR)

    def _powers(self, stage: str) -> list[tuple[Figure, float]]:
        return list(self.exponents.get(stage, {}).items())
