"""Charts: the space of estimates cut into regions, and the best plans of each, found once (source B, section 4.4).

A chart has a few dimensions, figures that costs are sensitive to; all other figures stay as they were when it was
drawn. Every dimension is cut into parts, so a region is a tuple of whole numbers: finding the one that estimates lie in
takes a few divisions. The candidates of a region are those for its centroid, found when it is first needed (or ahead of
time), and kept. The cost of each is also predicted at the ends of the region's parts, and between them it is taken to
change with powers of the figures: so the best candidate is looked up for the point itself, however coarse the chart is.
Other figures at which the best plan may change are *beside* the dimensions: as dimensions they would make too many
regions. They count at the point all the same: the cost of each candidate is also predicted where such a figure is four
times as large as when the chart was drawn, and where it is a quarter of that.

Parts are *geometric* (each begins at a multiple of where the one before began) because figures vary by orders of
magnitude and costs with their ratios, or *regular* (of equal length), as in source B. Values beyond the first and the
last part have regions of their own, so a chart is never too small; `parts` says how many lie between its ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import exp, floor, log
from time import thread_time

from windloom.errors import WindloomError, near_names
from windloom.optimizer.adapt.basin import Basin
from windloom.optimizer.adapt.candidates import (
    Candidate,
    Corrected,
    Pause,
    as_predicted,
    candidates_at,
    no_pause,
    ranked,
)
from windloom.optimizer.adapt.figures import Figure, Kind, figures_of, value_of, values_of, with_figures
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.round_cost import RoundCost, SetCosts
from windloom.optimizer.known import LEAST, with_statistics
from windloom.plan.choices import Choices
from windloom.plan.estimates import Estimates
from windloom.plan.physical import Plan

#: A chart has at most this many regions between its ends.
MOST_REGIONS = 10_000
#: The ratio of the two ends of a geometric dimension: for amounts, and for shares of tuples.
SPAN, SHARE_SPAN = 1e5, 1e3
#: Regions are filled anew when the cost of one plan there has changed against that of another by more than the first
#: share, or any cost by more than the second.
DRIFT, SHIFT = 0.05, 0.25
#: A chart is drawn anew when a figure that is not one of its dimensions has changed by this factor.
STALE = 4.0
#: A neighbour is filled ahead of time when a point this far from the centre of a part moves on towards it.
NEAR = 0.5
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
            raise WindloomError(
                f"a chart of {self.parts:,} parts and {self.dimensions} dimensions is past its bound",
                f"it would have {regions:,} regions, and at most {MOST_REGIONS:,} are allowed",
                f"give at most {_most_parts(self.dimensions):,} parts, or fewer dimensions",
            )


def _most_parts(dimensions: int) -> int:
    parts = 1
    while (parts + 1) ** dimensions <= MOST_REGIONS:
        parts += 1
    return parts


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

    def place(self, value: float, part: int | None = None) -> float:
        """Where a value lies in its part, or nearest to it in a given one: from −1 at the beginning to 1 at the end.

        >>> [round(Axis(1, 10_000, 4).place(value), 6) for value in (1, 10**0.5, 9.999, 2_000)]
        [-1.0, 0.0, 0.999913, -0.39794]
        >>> Axis(1, 10_000, 4).place(2_000, part=0)
        1.0
        """
        part = self.part(value) if part is None else part
        if self.is_geometric:
            within = log(max(value, 1e-300) / self.edge(part)) / log(self.edge(part + 1) / self.edge(part))
        else:
            within = (value - self.edge(part)) / (self.edge(part + 1) - self.edge(part))
        return min(1.0, max(-1.0, 2 * within - 1))

    def edge(self, part: float) -> float:
        if self.is_geometric:
            return self.low * exp(log(self.high / self.low) * part / self.parts)
        return self.low + (self.high - self.low) * part / self.parts

    def centre(self, part: int) -> float:
        """The middle of a part; for the stretch before the first part of a regular axis, its end."""
        middle = self.edge(part + 0.5)
        return middle if middle > 0 else self.edge(part + 1) or self.edge(1)


def axis_around(figure: Figure, value: float, options: ChartOptions) -> Axis:
    """An axis with the value in the middle of its middle part; a share is at most 1."""
    middle = options.parts // 2 + 0.5
    if options.partition == "regular":
        width = value / middle
        high = width * options.parts
        return Axis(0.0, min(high, 1.0) if figure.kind is Kind.SHARE else high, options.parts, False)
    if figure.kind is Kind.SHARE:
        return Axis(1 / SHARE_SPAN, 1.0, options.parts)
    ratio = exp(log(SPAN) / options.parts)
    low = value / ratio**middle
    return Axis(low, low * SPAN, options.parts)


def _possible(figure: Figure, value: float) -> float:
    """The nearest value that the figure can have."""
    return max(LEAST, min(value, 1.0) if figure.kind is Kind.SHARE else value)


@dataclass(frozen=True, slots=True)
class Dimension:
    """`sensitivity` says why the figure is a dimension: by how much costs change with it (see `sensitivity.py`)."""

    figure: Figure
    axis: Axis
    sensitivity: float = 0.0
    reason: str = ""


@dataclass(eq=False)
class Chart:
    """`base` are the estimates that it was drawn with; regions differ from these in the figures of its dimensions.

    `exponents` say, by stage and figure, how the seconds of the best plan change near there. `others` are figures
    beside the dimensions.
    """

    basin: Basin
    dimensions: tuple[Dimension, ...]
    base: Estimates
    objective: Objective
    exponents: Mapping[str, Mapping[Figure, float]] = field(default_factory=dict)
    regions: dict[Region, tuple[Candidate, ...]] = field(default_factory=dict)
    others: tuple[Figure, ...] = ()
    _plans: dict[Choices, Plan] = field(default_factory=dict)  # of candidates that were weighed
    _prediction: float = 0.0  # seconds of the processor that it took to predict a cost, on average, in the last region

    @property
    def figures(self) -> list[Figure]:
        return [dimension.figure for dimension in self.dimensions]

    @property
    def beside(self) -> tuple[Dimension, ...]:
        """The figures beside the dimensions: each has one part, around its value when the chart was drawn."""
        return tuple(Dimension(figure, self._around(figure)) for figure in self.others)

    def _around(self, figure: Figure) -> Axis:
        value = value_of(figure, self.basin, self.base)
        factor = max(1.05, min(STALE, 1 / value)) if figure.kind is Kind.SHARE else STALE
        return Axis(value / factor, value * factor, 1)

    def region(self, values: Sequence[float]) -> Region:
        """The region that a point lies in, whose values are those of the dimensions, then of others: O(1)."""
        return tuple(dimension.axis.part(value) for dimension, value in zip(self.dimensions, values, strict=False))

    def centroid(self, region: Region) -> dict[Figure, float]:
        return {
            dimension.figure: dimension.axis.centre(part)
            for dimension, part in zip(self.dimensions, region, strict=True)
        }

    def estimates_at(self, values: Mapping[Figure, float]) -> Estimates:
        return with_figures(self.base, self.basin, values)

    def fill(
        self, region: Region, corrected: Corrected = as_predicted, pause: Pause = no_pause
    ) -> tuple[Candidate, ...]:
        """The candidates of a region, best first; found now if they are not there yet."""
        found = self.regions.get(region)
        if found is None:
            estimates, known, plans = self.estimates_at(self.centroid(region)), SetCosts(), dict[Choices, Plan]()
            compared = candidates_at(self.basin, estimates, self.objective, corrected, pause, plans, known)
            begun = thread_time()
            found = self.regions[region] = tuple(
                replace(candidate, ends=self._ends(region, plans[candidate.choices], known, pause))
                for candidate in compared
            )
            predictions = 2 * len(found) * (len(self.dimensions) + len(self.others))
            self._prediction = (thread_time() - begun) / predictions
        return found

    def add(self, region: Region, choices: Choices, pause: Pause = no_pause) -> Candidate:
        """Adds a plan as another candidate of a region that has been filled, with its cost there."""
        found = next((candidate for candidate in self.regions[region] if candidate.choices == choices), None)
        if found is None:
            plan, known = self.basin.plan(self.estimates_at(self.centroid(region)), choices), SetCosts()
            found = Candidate(choices, self.basin.cost(plan, known), self._ends(region, plan, known, pause))
            self.regions[region] = (*self.regions[region], found)
        return found

    def _ends(
        self, region: Region, plan: Plan, known: SetCosts, pause: Pause
    ) -> tuple[tuple[RoundCost, RoundCost], ...]:
        """The cost of a plan where the region's part begins and ends, by dimension; then for the figures beside."""
        centre, beside, found = self.centroid(region), self.beside, []
        for dimension, part in zip((*self.dimensions, *beside), (*region, *(0 for _ in beside)), strict=True):
            pair = []
            for edge in (dimension.axis.edge(part), dimension.axis.edge(part + 1)):
                pause()
                estimates = self.estimates_at({**centre, dimension.figure: _possible(dimension.figure, edge)})
                shown = with_statistics(plan, self.basin.known.with_estimates(estimates))
                pair.append(self.basin.cost(shown, known))
            found.append((pair[0], pair[1]))
        return tuple(found)

    def has_drifted(self, region: Region, estimates: Estimates, pause: Pause = no_pause) -> bool:
        """Whether costs in this region have changed, because estimates other than the chart's figures have.

        A change that makes all plans dearer alike makes none of them better than another.
        """
        here, known = with_figures(estimates, self.basin, self.centroid(region)), SetCosts()
        changes: tuple[list[float], list[float]] = ([], [])
        for candidate in self.regions.get(region, ()):
            pause()
            now, then = self.basin.cost(self.basin.plan(here, candidate.choices), known), candidate.cost
            pairs = ((now.seconds, then.seconds), (now.nbytes, then.nbytes))
            for (new, old), each in zip(pairs, changes, strict=True):
                each.append(log(max(new, 1e-12) / max(old, 1e-12)))
                if abs(each[-1]) > SHIFT or max(each) - min(each) > DRIFT:
                    return True
        return False

    @cached_property
    def held(self) -> Mapping[Figure, float]:
        """The figures that are not dimensions, as they were when the chart was drawn."""
        return values_of((each for each in figures_of(self.basin) if each not in self.figures), self.basin, self.base)

    def is_stale(self, now: Callable[[Figure], float | None]) -> bool:
        """Whether a known figure that is not a dimension differs from the one that the chart was drawn with."""
        pairs = ((now(figure), before) for figure, before in self.held.items())
        return any(value is not None and abs(log(value / before)) > log(STALE) for value, before in pairs)

    def rebased(self, estimates: Estimates) -> Chart:
        """The same dimensions, with no region filled yet: all other figures are as they are estimated now."""
        return replace(self, base=estimates, regions={})

    def best(
        self, region: Region, corrected: Corrected = as_predicted, values: Sequence[float] | None = None
    ) -> list[Candidate]:
        """The candidates of a filled region, best first: as predicted now for its centroid, or for a point in it."""
        found = self.regions[region]
        if values is None:
            return ranked(found, self.objective, corrected, found[0].choices)
        parts = (*zip(self.dimensions, region, strict=True), *((dimension, 0) for dimension in self.beside))
        places = [dimension.axis.place(value, part) for (dimension, part), value in zip(parts, values, strict=False)]
        return ranked([candidate.at(places) for candidate in found], self.objective, corrected)

    def weighing_seconds(self, region: Region) -> float:
        """About how long the processor takes to weigh the candidates of a filled region."""
        return self._prediction * len(self.regions[region])

    def weigh(self, region: Region, estimates: Estimates, pause: Pause = no_pause) -> tuple[Candidate, ...]:
        """The candidates of a filled region with the cost that the model predicts for some estimates, not for a point.

        That takes a prediction per candidate. In return, everything that is estimated counts, whether a chart has it as
        a figure or not.
        """
        found, known, costs = self.regions[region], self.basin.known.with_estimates(estimates), SetCosts()
        weighed = []
        for candidate in found:
            plan = self._plans.get(candidate.choices)
            if plan is None:
                plan = self._plans[candidate.choices] = self.basin.plan(estimates, candidate.choices)
                pause()
            cost = self.basin.cost(with_statistics(plan, known), costs)
            weighed.append(Candidate(candidate.choices, cost, candidate.ends))
            pause()
        return tuple(weighed)

    def ahead(self, before: Sequence[float], values: Sequence[float]) -> Iterable[Region]:
        """The neighbours that a point moves towards and is already near."""
        region = self.region(values)
        for place, dimension in enumerate(self.dimensions):
            where, move = dimension.axis.place(values[place]), values[place] - before[place]
            if abs(where) > NEAR and where * move > 0:
                yield (*region[:place], region[place] + (1 if move > 0 else -1), *region[place + 1 :])

    def between_ends(self, region: Region, dimensions: Sequence[int] = (0, 1)) -> Iterable[Region]:
        """All regions between the ends of some dimensions, where the others are as in `region`."""
        parts = [
            range(dimension.axis.parts) if place in dimensions else (region[place],)
            for place, dimension in enumerate(self.dimensions)
        ]
        yield from product(*parts)
