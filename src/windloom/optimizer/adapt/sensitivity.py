"""Which figures become dimensions of a chart: those that the cost of plans is most sensitive to.

A figure is multiplied and divided by four. Two things count: by how much the predicted cost of the best plan changes,
and by how much it changes in proportion to those of its rivals, because only then may another plan become best. Both
are exponents: 1 means that costs change as much as the figure does. The objective defines cost: seconds (without those
of Spark's job, which every round takes) and bytes count by their weights.

A rival is the best candidate that has another option of some switch. The runner-up itself is often the same plan with
another technique, whose cost changes with every figure as that of the best plan does: it shows no figure at which the
best plan becomes another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from windloom.model.figures import number
from windloom.optimizer.adapt.basin import Basin
from windloom.optimizer.adapt.candidates import Candidate, Pause, candidates_at, no_pause
from windloom.optimizer.adapt.chart import Chart, ChartOptions, Dimension, axis_around
from windloom.optimizer.adapt.figures import Figure, Kind, figures_of, values_of, with_figures
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.round_cost import RoundCost, SetCosts
from windloom.optimizer.known import with_statistics
from windloom.plan.estimates import Estimates
from windloom.plan.physical import Plan

#: The factor by which figures are changed.
FACTOR = 4.0
#: The number of figures whose effect against rivals is examined: those that the cost of the best plan depends on most.
COMPARED = 10
#: The most rivals, and the most figures beside the dimensions.
RIVALS, BESIDE = 3, 8
#: A figure that costs depend on less than this is not a dimension, unless there is no other.
LEAST_SENSITIVITY = 0.02


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """`cost` and `ratio` are exponents: of the best plan's cost in the objective, and of its ratio to a rival's.

    `seconds` and `nbytes` are the exponents of the best plan's seconds and bytes.
    """

    figure: Figure
    value: float
    cost: float
    ratio: float
    seconds: float
    nbytes: float
    stages: Mapping[str, float]  # exponents of the best plan's seconds, by stage
    is_of_memory: bool = False  # memory counts in the objective

    @property
    def total(self) -> float:
        return abs(self.cost) + abs(self.ratio)

    @property
    def reason(self) -> str:
        text = f"four times as much changes the predicted seconds by a factor of {number(FACTOR**self.seconds)}"
        if self.is_of_memory:
            text += f", bytes by {number(FACTOR**self.nbytes)}"
        if abs(self.ratio) >= LEAST_SENSITIVITY:
            text += f", and against a rival by {number(FACTOR**self.ratio)}"
        return text


def sensitivities(
    basin: Basin, estimates: Estimates, objective: Objective, pause: Pause = no_pause
) -> list[Sensitivity]:
    """The sensitivities to all figures of a basin, the most important first."""
    found = candidates_at(basin, estimates, objective, pause=pause)
    best, *others = (basin.plan(estimates, candidate.choices) for candidate in [found[0], *_rivals(found)])
    values, each, known = values_of(figures_of(basin), basin, estimates), list[Sensitivity](), SetCosts()

    def objective_of(exponents: Mapping[str, float]) -> float:
        return objective.latency * exponents["seconds"] + objective.memory * exponents["bytes"]

    for figure, value in values.items():
        pause()
        exponents = _exponents(basin, estimates, best, figure, value, known)
        cost, seconds, nbytes = objective_of(exponents), exponents.pop("seconds"), exponents.pop("bytes")
        each.append(Sensitivity(figure, value, cost, 0.0, seconds, nbytes, exponents, objective.memory > 0))
    each.sort(key=_order)
    for place, mine in enumerate(each[:COMPARED] if others else ()):  # compared only where it may matter
        pause()
        theirs = (objective_of(_exponents(basin, estimates, other, mine.figure, mine.value, known)) for other in others)
        each[place] = replace(mine, ratio=max((mine.cost - cost for cost in theirs), key=abs))
    return sorted(each, key=_order)


def _rivals(found: Sequence[Candidate]) -> list[Candidate]:
    """The best candidates, each with other options than the first and than those before; if none, the runner-up."""
    mine, told, rivals = set(found[0].choices.options), set[tuple[str, str]](), list[Candidate]()
    for candidate in found[1:]:
        differing = {option[:2] for option in mine ^ set(candidate.choices.options)}
        if differing - told:
            told |= differing
            rivals.append(candidate)
    return rivals[:RIVALS] or list(found[1:2])


def _order(sensitivity: Sensitivity) -> tuple[float, Figure]:
    return -round(sensitivity.total, 6), sensitivity.figure


def _exponents(
    basin: Basin, estimates: Estimates, plan: Plan, figure: Figure, value: float, known: SetCosts
) -> dict[str, float]:
    """How the seconds of each stage of a plan, all of them, and its bytes change with a figure."""
    most = 1.0 if figure.kind is Kind.SHARE else float("inf")
    ends = (value / FACTOR, min(value * FACTOR, most))
    span = log(ends[1] / ends[0])
    low, high = (_cost(basin, estimates, plan, figure, end, known) for end in ends)
    pairs = {name: (low.stages[name], high.stages[name]) for name in low.stages}
    pairs["seconds"] = (sum(low.stages.values()), sum(high.stages.values()))
    pairs["bytes"] = (low.nbytes, high.nbytes)
    return {name: log(max(top, 1e-12) / max(bottom, 1e-12)) / span for name, (bottom, top) in pairs.items()}


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
    # Other figures at which a rival may become best, however many there are.
    decisive = [each.figure for each in found[len(kept) :] if abs(each.ratio) >= LEAST_SENSITIVITY]
    return Chart(basin, dimensions, estimates, objective, exponents, others=tuple(decisive[:BESIDE]))
