"""Charts: the space of estimates cut into regions, and the best plans of each, found once (source B, section 4.4).

A chart has a few dimensions, figures that costs are sensitive to; all other figures stay as they were when it was
drawn. Every dimension is cut into parts, so a region is a tuple of whole numbers: finding the one that estimates lie in
takes a few divisions. The candidates of a region are those for its centroid, found when it is first needed, and kept.

Parts are *geometric* (each begins at a multiple of where the one before began) because figures vary by orders of
magnitude and costs with their ratios, or *regular* (of equal length), as in source B. Values beyond the first and the
last part have regions of their own, so a chart is never too small; `parts` says how many lie between its ends.

The dimensions are the figures that costs are most sensitive to. A figure is multiplied and divided by four. Two things
count: by how much the predicted cost of the best plan changes, and by how much it changes in proportion to those of its
rivals, because only then may another plan become best. Both are exponents: 1 means that costs change as much as the
figure does. The objective defines cost: seconds (without those of Spark's job, which every round takes) and bytes count
by their weights. A rival is the best candidate that has another option of some switch. The runner-up itself is often
the best plan with another technique, whose cost changes with every figure as that of the best plan does: it shows no
figure at which the best plan becomes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from math import exp, floor, log

from windloom.errors import WindloomError, near_names
from windloom.model.formatting import number
from windloom.optimizer.adapt.basins import Basin
from windloom.optimizer.adapt.candidates import (
    Candidate,
    Corrected,
    Pause,
    as_predicted,
    candidates_at,
    has_candidate,
    no_pause,
    ranked,
    with_candidate,
)
from windloom.optimizer.adapt.chart_figures import (
    ExpectedRound,
    Figure,
    FigureKind,
    figures_of,
    value_of,
    values_of,
    with_figures,
)
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.round_cost import RoundCost, SetCosts
from windloom.optimizer.adapt.worker import Need
from windloom.optimizer.facts import with_statistics
from windloom.plan.costs import Choices
from windloom.plan.plan import Plan
from windloom.statistics.estimates import Estimates

#: A chart has at most this many regions between its ends.
MOST_REGIONS = 10_000
#: The ratio of the two ends of a geometric dimension: for amounts, and for shares of tuples.
SPAN, SHARE_SPAN = 1e5, 1e3
#: A chart is drawn anew when a figure that is not one of its dimensions has changed by this factor.
STALE = 4.0
#: The factor by which figures are changed to see how sensitive costs are to them.
FACTOR = 4.0
#: The number of figures whose effect against rivals is examined: those that the cost of the best plan depends on most.
COMPARED = 10
#: The most rivals.
RIVALS = 3
#: A figure that costs depend on less than this is not a dimension, unless there is no other.
LEAST_SENSITIVITY = 0.02
PARTITIONS = ("geometric", "regular")

#: The number of the part of every dimension.
Region = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChartOptions:
    """`parts` per dimension (k in source B), the most `dimensions` (l), and how they are cut."""

    parts: int = 10
    dimensions: int = 3
    partition: str = "geometric"

    def __post_init__(self) -> None:
        named: tuple[tuple[str, object], ...] = (("parts", self.parts), ("dimensions", self.dimensions))
        for name, value in named:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise WindloomError(
                    f"a chart cannot have {value!r} {name}",
                    "every dimension is cut into parts, and a part of each makes a region",
                    f"give a whole number of {name}, 1 or more",
                )
        if self.partition not in PARTITIONS:
            raise WindloomError(
                f"unknown partition '{self.partition}'",
                "it says how a dimension of a chart is cut into parts",
                near_names(self.partition, [*PARTITIONS]),
            )
        regions = self.parts**self.dimensions
        if regions > MOST_REGIONS:
            most = max(n for n in range(1, MOST_REGIONS + 1) if n**self.dimensions <= MOST_REGIONS)
            raise WindloomError(
                f"a chart of {self.parts:,} parts and {self.dimensions} dimensions is past its bound",
                f"it would have {regions:,} regions, and at most {MOST_REGIONS:,} are allowed",
                f"give at most {most:,} parts, or fewer dimensions",
            )


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension, cut: part i lies between `edge(i)` and `edge(i + 1)`."""

    low: float
    high: float
    parts: int
    is_geometric: bool = True

    def part(self, value: float) -> int:
        """
        >>> [Axis(1, 10_000, 4).part(value) for value in (1, 9.9, 10, 5_000, 10_000, 0.5)]
        [0, 0, 1, 3, 4, -1]
        >>> [Axis(0, 100, 4, False).part(value) for value in (0, 24, 25, 99)]
        [0, 0, 1, 3]
        """
        if self.is_geometric:
            place = log(max(value, 1e-300) / self.low) / log(self.high / self.low)
        else:
            place = (value - self.low) / (self.high - self.low)
        return floor(self.parts * place + 1e-9)

    def edge(self, part: float) -> float:
        if self.is_geometric:
            return self.low * exp(log(self.high / self.low) * part / self.parts)
        return self.low + (self.high - self.low) * part / self.parts

    def centre(self, part: int) -> float:
        """Return the middle of a part; for the stretch before the first part of a regular axis, its end."""
        middle = self.edge(part + 0.5)
        return middle if middle > 0 else self.edge(part + 1) or self.edge(1)


def axis_around(figure: Figure, value: float, options: ChartOptions) -> Axis:
    """Return an axis with the value in the middle of its middle part; a share is at most 1."""
    middle = options.parts // 2 + 0.5
    if options.partition == "regular":
        width = value / middle
        high = width * options.parts
        return Axis(0.0, min(high, 1.0) if figure.kind is FigureKind.SHARE else high, options.parts, False)
    if figure.kind is FigureKind.SHARE:
        return Axis(1 / SHARE_SPAN, 1.0, options.parts)
    ratio = exp(log(SPAN) / options.parts)
    low = value / ratio**middle
    return Axis(low, low * SPAN, options.parts)


@dataclass(frozen=True, slots=True)
class Dimension:
    """`sensitivity` and `reason` say why the figure is a dimension: by how much costs change with it."""

    figure: Figure
    axis: Axis
    sensitivity: float = 0.0
    reason: str = ""


@dataclass(eq=False)
class Chart:
    """`base` are the estimates that it was drawn with; regions differ from these in the figures of its dimensions."""

    basin: Basin
    dimensions: tuple[Dimension, ...]
    base: Estimates
    objective: Objective
    regions: dict[Region, tuple[Candidate, ...]] = field(default_factory=dict)

    @property
    def figures(self) -> list[Figure]:
        return [dimension.figure for dimension in self.dimensions]

    def region(self, values: Sequence[float]) -> Region:
        """Return the region that a point lies in, whose values are those of the dimensions: O(1)."""
        return tuple(dimension.axis.part(value) for dimension, value in zip(self.dimensions, values, strict=True))

    def region_of(self, expected: ExpectedRound) -> Region:
        """Return the region in which a round is expected; unknown figures are where the chart was drawn."""
        found = ((figure, expected.value(figure, self.basin)) for figure in self.figures)
        return self.region(
            [value_of(figure, self.basin, self.base) if value is None else value for figure, value in found]
        )

    def centroid(self, region: Region) -> dict[Figure, float]:
        return {
            dimension.figure: dimension.axis.centre(part)
            for dimension, part in zip(self.dimensions, region, strict=True)
        }

    def estimates_at(self, region: Region) -> Estimates:
        """Return the estimates at the centroid of a region."""
        return with_figures(self.base, self.basin, self.centroid(region))

    def fill(
        self, region: Region, corrected: Corrected = as_predicted, pause: Pause = no_pause
    ) -> tuple[Candidate, ...]:
        """Return the candidates of a region, best first; found now if they are not there yet."""
        if region not in self.regions:
            estimates = self.estimates_at(region)
            self.regions[region] = candidates_at(self.basin, estimates, self.objective, corrected, pause)
        return self.regions[region]

    def best(self, region: Region, corrected: Corrected = as_predicted) -> list[Candidate]:
        """Return the candidates of a filled region, best first, as predicted now."""
        candidates = self.regions[region]
        return ranked(candidates, self.objective, corrected, candidates[0].choices)

    @cached_property
    def held(self) -> Mapping[Figure, float]:
        """The figures that are not dimensions, as they were when the chart was drawn."""
        return values_of((each for each in figures_of(self.basin) if each not in self.figures), self.basin, self.base)

    def is_stale(self, now: Callable[[Figure], float | None]) -> bool:
        """Return whether a known figure that is not a dimension differs from the one that the chart was drawn with."""
        pairs = ((now(figure), before) for figure, before in self.held.items())
        return any(value is not None and abs(log(value / before)) > log(STALE) for value, before in pairs)

    def between_ends(self, region: Region, dimensions: Sequence[int] = (0, 1)) -> Iterable[Region]:
        """Yield all regions between the ends of some dimensions, where the others are as in `region`."""
        parts = [
            range(dimension.axis.parts) if place in dimensions else (region[place],)
            for place, dimension in enumerate(self.dimensions)
        ]
        yield from product(*parts)


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


def draw_chart(
    basin: Basin, estimates: Estimates, objective: Objective, options: ChartOptions, pause: Pause = no_pause
) -> Chart:
    """Return an empty chart around some estimates; its dimensions are the figures that costs are most sensitive to."""
    every = sensitivities(basin, estimates, objective, pause)
    chosen = [each for each in every[: options.dimensions] if each.total >= LEAST_SENSITIVITY] or every[:1]
    dimensions = (
        Dimension(each.figure, axis_around(each.figure, each.value, options), each.total, each.reason)
        for each in chosen
    )
    return Chart(basin, tuple(dimensions), estimates, objective)


def sensitivities(
    basin: Basin, estimates: Estimates, objective: Objective, pause: Pause = no_pause
) -> list[Sensitivity]:
    """Return the sensitivities to all figures of a basin, the most important first."""
    candidates = candidates_at(basin, estimates, objective, pause=pause)
    rivals, switched = list[Candidate](), set[tuple[str, str]]()  # each has other options than those before
    for candidate in candidates[1:]:
        differing = {option[:2] for option in {*candidates[0].choices.options} ^ {*candidate.choices.options}}
        if differing - switched:
            switched |= differing
            rivals.append(candidate)
    rivals = rivals[:RIVALS] or list(candidates[1:2])
    best, *others = (basin.plan(estimates, candidate.choices) for candidate in [candidates[0], *rivals])
    each, known = list[Sensitivity](), SetCosts()

    def in_objective(seconds: float, nbytes: float) -> float:
        return objective.latency * seconds + objective.memory * nbytes

    for figure, value in values_of(figures_of(basin), basin, estimates).items():
        pause()
        seconds, nbytes = _exponents(basin, estimates, best, figure, value, known)
        cost = in_objective(seconds, nbytes)
        each.append(Sensitivity(figure, value, cost, 0.0, seconds, nbytes, objective.memory > 0))
    each.sort(key=_order)
    for place, mine in enumerate(each[:COMPARED] if others else ()):  # compared only where it may matter
        pause()
        theirs = (_exponents(basin, estimates, other, mine.figure, mine.value, known) for other in others)
        each[place] = replace(mine, ratio=max((mine.cost - in_objective(*other) for other in theirs), key=abs))
    return sorted(each, key=_order)


def _order(sensitivity: Sensitivity) -> tuple[float, Figure]:
    return -round(sensitivity.total, 6), sensitivity.figure


def _exponents(
    basin: Basin, estimates: Estimates, plan: Plan, figure: Figure, value: float, known: SetCosts
) -> tuple[float, float]:
    """Return how the seconds of a plan that depend on its tuples, and its bytes, change with a figure."""

    def cost(end: float) -> RoundCost:
        moved = with_figures(estimates, basin, {figure: end})
        return basin.cost(with_statistics(plan, basin.known.with_estimates(moved)), known)

    most = 1.0 if figure.kind is FigureKind.SHARE else float("inf")
    ends = (value / FACTOR, min(value * FACTOR, most))
    span = log(ends[1] / ends[0])
    low, high = map(cost, ends)
    pairs = ((sum(low.stages.values()), sum(high.stages.values())), (low.nbytes, high.nbytes))
    seconds, nbytes = (log(max(top, 1e-12) / max(bottom, 1e-12)) / span for bottom, top in pairs)
    return seconds, nbytes


class ChartLookup:
    """Finds plans in a chart of a basin, which is drawn, and whose regions are filled, when they are first needed."""

    def __init__(self, basin: Basin, options: ChartOptions, objective: Objective, pause: Pause = no_pause) -> None:
        self.basin, self.options, self.objective, self._pause = basin, options, objective, pause
        self.chart: Chart | None = None
        self.region: Region | None = None  # in which the next round is expected
        self.has_moved = False  # since the last lookup

    def candidates(
        self, expected: ExpectedRound, corrected: Corrected, present: Choices, need: Need
    ) -> Sequence[Candidate] | None:
        """Return the candidates of the region that a round is expected in, best first; None until there are any."""
        self.has_moved = False
        if self.chart is not None and self.chart.is_stale(partial(expected.value, basin=self.basin)):
            self.chart, self.region = None, ()  # nowhere in a chart: to be somewhere again is a move
        if self.chart is None:
            need(("draw", self.basin.name), partial(self._draw, expected, corrected, present))
        if (chart := self.chart) is None:
            return None
        region = chart.region_of(expected)
        self.has_moved = self.region is not None and region != self.region
        self.region = region
        if not has_candidate(chart.regions.get(region, ()), present):
            need(("fill", self.basin.name, region), partial(self._fill, chart, region, corrected, present))
        if not has_candidate(chart.regions.get(region, ()), present):
            return None
        return chart.best(region, corrected)

    def _draw(self, expected: ExpectedRound, corrected: Corrected, present: Choices) -> None:
        """Draws a chart and fills the region where the stream is: asking for that later would cost another round."""
        chart = draw_chart(self.basin, expected.estimates(self.basin), self.objective, self.options, self._pause)
        self._pause()
        self._fill(chart, chart.region_of(expected), corrected, present)
        self.chart = chart

    def _fill(self, chart: Chart, region: Region, corrected: Corrected, present: Choices) -> None:
        candidates = chart.fill(region, corrected, self._pause)
        self._pause()
        chart.regions[region] = with_candidate(candidates, present, self.basin, chart.estimates_at(region))
