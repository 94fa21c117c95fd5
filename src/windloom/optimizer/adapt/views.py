"""Charts and adapting as EXPLAIN shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from windloom.kernels.folds.registry import FOLDS
from windloom.optimizer.adapt.adapter import Adapter
from windloom.optimizer.adapt.candidates import Candidate, Corrected, as_predicted
from windloom.optimizer.adapt.chart import Chart, Dimension, Region
from windloom.optimizer.adapt.figures import remembered
from windloom.optimizer.adapt.followed import Followed
from windloom.optimizer.adapt.objective import Least
from windloom.optimizer.adapt.switches import choices_of
from windloom.optimizer.adapt.switching import CLEARLY
from windloom.optimizer.known import with_statistics
from windloom.optimizer.rows.order import ROW_ORDER
from windloom.plan.adapting import AdaptView, AxisView, CandidateView, ChartView, RoundView
from windloom.plan.choices import Choices
from windloom.plan.memory import Memory
from windloom.plan.observed import RoundObserved
from windloom.plan.physical import Plan

#: Techniques that a description names one by one.
_NAMED = 3
#: The candidates of a region that are shown.
_SHOWN = 3


def described(choices: Choices) -> str:
    """What distinguishes a plan, in a few words."""
    parts = [f"{stream} {way}" for stream, way in choices.options_of("intake").items()]
    if choices.trees:
        parts.append("1 tree" if len(choices.trees) == 1 else f"{len(choices.trees)} trees")
    named = list(dict.fromkeys(f"{part} by {name}" for tree in choices.trees for part, name in tree.techniques))
    if named:
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        parts.append(", ".join(named[:_NAMED]) + more)
    parts += [f"log of {stream}: {way}" for stream, way in choices.options_of("log").items() if way != "smaller"]
    usual = next(iter(FOLDS))
    parts += [f"{join} folded by {way}" for join, way in choices.options_of("fold").items() if way != usual]
    orders = {join: order for join, order in choices.options_of("order").items() if " " in order}
    parts += [f"{join} in order {order}" for join, order in orders.items()]
    strands = {name: order for name, order in choices.options_of(ROW_ORDER).items() if order.count(" ") > 1}
    parts += [f"{name} joined in order {order}" for name, order in strands.items()]
    return "; ".join(parts) or "row queries only, which leave nothing to choose"


class _Letters:
    """A letter for every plan, in the order in which they are met."""

    def __init__(self) -> None:
        self._names: dict[Choices, str] = {}

    def of(self, choices: Choices) -> str:
        place = len(self._names)
        letter = ascii_uppercase[place % 26] + (str(place // 26) if place >= 26 else "")
        return self._names.setdefault(choices, letter)

    @property
    def plans(self) -> dict[str, str]:
        return {name: described(choices) for choices, name in self._names.items()}


def chart_view(
    chart: Chart,
    values: Sequence[float],
    *,
    path: Sequence[tuple[float, ...]] = (),
    present: Choices | None = None,
    corrected: Corrected = as_predicted,
    drawn: bool = True,
) -> ChartView:
    """A chart with the point at which the next round is expected; without `drawn`, only the region of that point."""
    letters, region = _Letters(), chart.region(values)
    if present is not None:
        letters.of(present)
    order = _in_sight(chart, path)
    axes = tuple(_axis(chart.dimensions[place], values[place]) for place in order)
    if drawn:
        letters.of(chart.fill(region, corrected)[0].choices)
    plans = dict(_reduced(chart, region, present, order[:2])) if drawn else {}
    regions = {place: letters.of(choices) for place, choices in plans.items()}
    candidates: tuple[CandidateView, ...] = ()
    if region in chart.regions:
        ranking = chart.best(region, corrected)
        candidates = tuple(_candidates(chart, ranking, letters, corrected))
    shown = "" if present is None else letters.of(present)
    taken = tuple(tuple(point[place] for place in order) for point in path)
    return ChartView(chart.basin.name, axes, letters.plans, regions, taken, candidates, shown)


def _in_sight(chart: Chart, path: Sequence[tuple[float, ...]]) -> list[int]:
    """The dimensions in the order in which they are shown: first the two along which the path went furthest."""

    def parts(place: int) -> int:
        passed = [chart.dimensions[place].axis.part(point[place]) for point in path]
        return max(passed) - min(passed) if passed else 0

    every = range(len(chart.dimensions))
    first = sorted(sorted(every, key=lambda place: (-parts(place), place))[:2])
    return [*first, *(place for place in every if place not in first)]


def _axis(dimension: Dimension, value: float) -> AxisView:
    edges = tuple(dimension.axis.edge(part) for part in range(dimension.axis.parts + 1))
    part = dimension.axis.part(value)
    return AxisView(
        dimension.figure.text, dimension.figure.unit, edges, dimension.axis.is_geometric, value, part, dimension.reason
    )


def _candidates(
    chart: Chart, ranking: list[Candidate], letters: _Letters, corrected: Corrected
) -> Iterator[CandidateView]:
    costs = [corrected(candidate.cost, candidate.choices) for candidate in ranking]
    least = Least.of(costs)
    for candidate, cost in list(zip(ranking, costs, strict=True))[:_SHOWN]:
        latency, memory = chart.objective.terms(cost, least)
        yield CandidateView(letters.of(candidate.choices), cost.seconds, cost.nbytes, latency, memory)


def _reduced(
    chart: Chart, region: Region, present: Choices | None, shown: Sequence[int]
) -> Iterator[tuple[tuple[int, int], Choices]]:
    """The plan of each region of two dimensions (or one); if a plan that is shown elsewhere is as good, that one.

    Plans whose difference is too small for a switch count as one for the reader.
    """
    basin, kept = chart.basin, dict[Choices, Plan]()
    for choices in dict.fromkeys([present, chart.regions[region][0].choices]):
        if choices is not None:
            kept[choices] = basin.plan(chart.base, choices)
    for place in chart.between_ends(region, shown):
        estimates = chart.estimates_at(chart.centroid(place))
        if place in chart.regions:
            best = chart.regions[place][0]
            choices, least = best.choices, best.cost
        elif chart.objective.memory:
            best = chart.fill(place)[0]
            choices, least = best.choices, best.cost
        else:
            plan = basin.plan(estimates)
            choices, least = choices_of(plan), basin.cost(plan)
        if choices not in kept:
            known = basin.known.with_estimates(estimates)
            costs = {other: basin.cost(with_statistics(plan, known)) for other, plan in kept.items()}
            bounds = Least.of([least, *costs.values()])
            wanted = chart.objective.utility(least, bounds) * (1 + CLEARLY)
            near = [other for other, cost in costs.items() if chart.objective.utility(cost, bounds) <= wanted]
            if near:
                choices = min(near, key=lambda other: chart.objective.utility(costs[other], bounds))
            else:
                kept[choices] = basin.plan(chart.base, choices)
        yield (place[shown[0]], place[shown[1]] if len(shown) > 1 else 0), choices


def path_of(chart: Chart, rounds: Sequence[RoundObserved]) -> list[tuple[float, ...]]:
    """The points at which the rounds after these, oldest first, were expected."""
    memory, points = Memory(), []
    for seen in rounds:
        memory.add(seen)
        values = [remembered(figure, chart.basin, memory) for figure in chart.figures]
        point = tuple(value for value in values if value is not None)
        if len(point) == len(values):
            points.append(point)
    return points


def adapt_view(adapter: Adapter, recent: Sequence[RoundView] = (), *, drawn: bool = False) -> AdaptView:
    """How a running loom adapts; `drawn` fills charts, which takes a plan for every region."""
    verdicts, correction = adapter.verdicts, adapter.correction
    charts = tuple(_followed(adapter, followed, drawn) for followed in adapter.followed if followed.chart is not None)
    lines = {name: (line.constant, line.factor) for name, line in correction.lines.items()}
    failure = adapter.failure
    return AdaptView(
        adapter.objective.name,
        charts,
        adapter.moves,
        adapter.switches,
        verdicts.judged,
        verdicts.hits,
        verdicts.same,
        verdicts.regret,
        lines,
        correction.rounds,
        correction.rest,
        tuple(recent),
        "" if failure is None else f"{type(failure).__name__}: {failure}",
        undecided=adapter.undecided,
        previews=adapter.previews,
    )


def _followed(adapter: Adapter, followed: Followed, drawn: bool) -> ChartView:
    chart = followed.chart
    assert chart is not None
    return chart_view(
        chart,
        adapter.values(followed, chart),
        path=path_of(chart, list(adapter.seen)),
        present=followed.basin.own(adapter.choices),
        corrected=adapter.correction,
        drawn=drawn,
    )
