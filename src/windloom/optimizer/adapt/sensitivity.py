"""Which figures become dimensions of a chart: those that the cost of plans is most sensitive to.

A figure is multiplied and divided by four. Two things count: by how much the predicted seconds of the best plan change
(without those of Spark's job, which every round takes), and by how much they change in proportion to those of the
runner-up, because only then another plan may become best. Both are exponents: 1 means that costs change as much as the
figure does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

from windloom.model.figures import number
from windloom.optimizer.adapt.basin import Basin
from windloom.optimizer.adapt.candidates import Pause, candidates_at, no_pause
from windloom.optimizer.adapt.chart import Chart, ChartOptions, Dimension, axis_around
from windloom.optimizer.adapt.figures import Figure, Kind, figures_of, values_of, with_figures
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.round_cost import RoundCost, SetCosts
from windloom.optimizer.known import with_statistics
from windloom.plan.estimates import Estimates
from windloom.plan.physical import Plan

#: The factor by which figures are changed.
FACTOR = 4.0
#: The figures whose effect on the runner-up is looked at: those that the cost of the best plan depends on most.
COMPARED = 6
#: A figure that costs depend on less than this is no dimension, unless there is no other.
LEAST_SENSITIVITY = 0.02


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """`cost` and `ratio` are exponents: of the best plan's seconds, and of their ratio to the runner-up's."""

    figure: Figure
    value: float
    cost: float
    ratio: float
    stages: Mapping[str, float]  # of the best plan, by stage

    @property
    def total(self) -> float:
        return abs(self.cost) + abs(self.ratio)

    @property
    def reason(self) -> str:
        text = f"four times as much changes the predicted seconds by a factor of {number(FACTOR**self.cost)}"
        if abs(self.ratio) >= LEAST_SENSITIVITY:
            text += f", and against the runner-up by {number(FACTOR**self.ratio)}"
        return text


def sensitivities(
    basin: Basin, estimates: Estimates, objective: Objective, pause: Pause = no_pause
) -> list[Sensitivity]:
    """The sensitivities to all figures of a basin, the most important first."""
    found = candidates_at(basin, estimates, objective, pause=pause)
    best, *others = (basin.plan(estimates, candidate.choices) for candidate in found[:2])
    values, each, known = values_of(figures_of(basin), basin, estimates), [], SetCosts()
    for figure, value in values.items():
        pause()
        each.append(_sensitivity(basin, estimates, best, None, figure, value, known))
    each.sort(key=_order)
    for other in others:  # compared where it may matter
        for place, sensitivity in enumerate(each[:COMPARED]):
            pause()
            each[place] = _sensitivity(basin, estimates, best, other, sensitivity.figure, sensitivity.value, known)
    return sorted(each, key=_order)


def _order(sensitivity: Sensitivity) -> tuple[float, Figure]:
    return -round(sensitivity.total, 6), sensitivity.figure


def _sensitivity(
    basin: Basin,
    estimates: Estimates,
    best: Plan,
    other: Plan | None,
    figure: Figure,
    value: float,
    known: SetCosts,
) -> Sensitivity:
    most = 1.0 if figure.kind is Kind.SHARE else float("inf")
    ends = (value / FACTOR, min(value * FACTOR, most))
    span = log(ends[1] / ends[0])

    def exponents(plan: Plan) -> dict[str, float]:
        low, high = (_cost(basin, estimates, plan, figure, end, known) for end in ends)
        pairs = {name: (low.stages[name], high.stages[name]) for name in low.stages}
        pairs[""] = (sum(low.stages.values()), sum(high.stages.values()))
        return {name: log(max(top, 1e-12) / max(bottom, 1e-12)) / span for name, (bottom, top) in pairs.items()}

    stages = exponents(best)
    cost = stages.pop("")
    return Sensitivity(figure, value, cost, 0.0 if other is None else cost - exponents(other)[""], stages)


def _cost(basin: Basin, estimates: Estimates, plan: Plan, figure: Figure, value: float, known: SetCosts) -> RoundCost:
    moved = with_figures(estimates, basin, {figure: value})
    return basin.cost(with_statistics(plan, basin.known.with_estimates(moved)), known)


def draw_chart(
    basin: Basin,
    estimates: Estimates,
    objective: Objective,
    options: ChartOptions,
    pause: Pause = no_pause,
) -> Chart:
    """An empty chart around some estimates; its dimensions are the figures that costs are most sensitive to."""
    found = sensitivities(basin, estimates, objective, pause)
    kept = [
        sensitivity for sensitivity in found[: options.dimensions] if sensitivity.total >= LEAST_SENSITIVITY
    ] or found[:1]
    dimensions = tuple(
        Dimension(
            sensitivity.figure,
            axis_around(sensitivity.figure, sensitivity.value, options),
            sensitivity.total,
            sensitivity.reason,
        )
        for sensitivity in kept
    )
    exponents = {
        stage: {sensitivity.figure: sensitivity.stages[stage] for sensitivity in found} for stage in found[0].stages
    }
    return Chart(basin, dimensions, estimates, objective, exponents)
