"""Charts and adapting as EXPLAIN shows them: of a running stream, and drawn around what is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from windloom.kernels.folds.registry import FOLDS
from windloom.optimizer.adapt.basins import Basin
from windloom.optimizer.adapt.candidates import Candidate, Corrected, as_predicted, choices_of
from windloom.optimizer.adapt.chart_figures import UNITS, remembered, value_of
from windloom.optimizer.adapt.charts import Chart, ChartLookup, ChartOptions, draw_chart
from windloom.optimizer.adapt.objective import CLEARLY, BestCosts, Objective
from windloom.optimizer.adapt.replan import Adapter
from windloom.optimizer.facts import with_statistics
from windloom.optimizer.rows import ROW_ORDER
from windloom.plan.adapting import AdaptView, AxisView, CandidateView, ChartView, PredictedRound
from windloom.plan.costs import Choices
from windloom.plan.plan import Plan
from windloom.statistics.estimates import Estimates, Memory
from windloom.statistics.observations import RoundObserved

#: Techniques that a description names one by one.
_NAMED = 3
#: The candidates of a region that are shown.
_SHOWN = 3


def described(choices: Choices) -> str:
    """Return what distinguishes a plan, in a few words."""
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


class _Letters(dict[Choices, str]):
    """A letter for every plan, in the order in which they are met."""

    def __missing__(self, choices: Choices) -> str:
        round_, letter = divmod(len(self), 26)
        self[choices] = ascii_uppercase[letter] + (str(round_) if round_ else "")
        return self[choices]


def charts_around(
    basins: Sequence[Basin],
    estimates: Estimates,
    rounds: Sequence[RoundObserved],
    options: ChartOptions,
    objective: Objective,
) -> tuple[ChartView, ...]:
    """Return a chart for each basin, drawn around some estimates; `rounds` are the rounds of a stream, oldest first."""
    charts = (draw_chart(basin, estimates, objective, options) for basin in basins)
    return tuple(_drawn(chart, estimates, rounds) for chart in charts)


def charts_of(adapter: Adapter) -> tuple[ChartView, ...]:
    """Return the charts of a running loom with all their regions, drawn for this if it plans without charts."""
    estimates = adapter.estimates()
    options = adapter.options.charts or ChartOptions()
    charts = []
    for followed in adapter.followed:
        chart = followed.finder.chart if isinstance(followed.finder, ChartLookup) else None
        chart = chart or draw_chart(followed.basin, estimates, adapter.objective, options)
        present = followed.basin.own(adapter.choices)
        charts.append(_drawn(chart, estimates, list(adapter.seen), present, adapter.correction))
    return tuple(charts)


def adapt_view(adapter: Adapter, recent: Sequence[PredictedRound] = ()) -> AdaptView:
    """Return how a running loom adapts."""
    counts, correction, failure, competing = adapter.counts, adapter.correction, adapter.failure, list[ChartView]()
    for followed in adapter.followed:
        if not followed.candidates:
            continue
        letters, present = _Letters(), followed.basin.own(adapter.choices)
        shown = letters[present]
        candidates = tuple(_candidates(adapter.objective, followed.candidates, letters, correction))
        axes, path = tuple[AxisView, ...](), tuple[tuple[float, ...], ...]()
        if isinstance(followed.finder, ChartLookup) and followed.finder.chart is not None:
            chart = followed.finder.chart  # the plans were looked up in it
            axes, path = _axes(chart, adapter.estimates(), path_of(chart, list(adapter.seen)))
        plans = {letter: described(choices) for choices, letter in letters.items()}
        competing.append(ChartView(followed.basin.name, axes, plans, {}, path, candidates, shown))
    return AdaptView(
        adapter.objective.name,
        tuple(competing),
        counts.moves,
        counts.switches,
        counts.verdicts.judged,
        counts.verdicts.hits,
        counts.verdicts.same,
        counts.verdicts.regret,
        {name: (line.constant, line.factor) for name, line in correction.lines.items()},
        correction.rounds,
        correction.rest,
        tuple(recent),
        "" if failure is None else f"{type(failure).__name__}: {failure}",
    )


def _drawn(
    chart: Chart,
    estimates: Estimates,
    rounds: Sequence[RoundObserved],
    present: Choices | None = None,
    corrected: Corrected = as_predicted,
) -> ChartView:
    """Return a chart with the plan of every region, and the point at which the next round is expected."""
    letters, path = _Letters(), path_of(chart, rounds)
    across = _in_sight(chart, path)[:2]
    region = chart.region([value_of(figure, chart.basin, estimates) for figure in chart.figures])
    shown = "" if present is None else letters[present]
    axes, taken = _axes(chart, estimates, path)
    _ = letters[chart.fill(region, corrected)[0].choices]
    regions = {place: letters[choices] for place, choices in _reduced(chart, region, present, across)}
    candidates = tuple(_candidates(chart.objective, chart.best(region, corrected), letters, corrected))
    plans = {letter: described(choices) for choices, letter in letters.items()}
    return ChartView(chart.basin.name, axes, plans, regions, taken, candidates, shown)


def _axes(
    chart: Chart, estimates: Estimates, path: Sequence[tuple[float, ...]]
) -> tuple[tuple[AxisView, ...], tuple[tuple[float, ...], ...]]:
    """Return the axes of a chart, and a path along them, in the order in which they are shown."""
    order = _in_sight(chart, path)
    axes = []
    for dimension in (chart.dimensions[place] for place in order):
        figure, axis, value = dimension.figure, dimension.axis, value_of(dimension.figure, chart.basin, estimates)
        edges = tuple(map(axis.edge, range(axis.parts + 1)))
        about = (figure.text, UNITS[figure.kind], edges, axis.is_geometric, value, axis.part(value), dimension.reason)
        axes.append(AxisView(*about))
    return tuple(axes), tuple(tuple(point[place] for place in order) for point in path)


def _in_sight(chart: Chart, path: Sequence[tuple[float, ...]]) -> list[int]:
    """Return the dimensions in the order in which they are shown: first the two along which the path went furthest."""

    def parts(place: int) -> int:
        passed = [chart.dimensions[place].axis.part(point[place]) for point in path]
        return max(passed) - min(passed) if passed else 0

    every = range(len(chart.dimensions))
    first = sorted(sorted(every, key=lambda place: (-parts(place), place))[:2])
    return [*first, *(place for place in every if place not in first)]


def _candidates(
    objective: Objective, ranking: Sequence[Candidate], letters: _Letters, corrected: Corrected
) -> Iterator[CandidateView]:
    costs = [corrected(candidate.cost, candidate.choices) for candidate in ranking]
    least = BestCosts.of(costs)
    for candidate, cost in list(zip(ranking, costs, strict=True))[:_SHOWN]:
        latency, memory = objective.terms(cost, least)
        yield CandidateView(letters[candidate.choices], cost.seconds, cost.nbytes, latency, memory)


def _reduced(
    chart: Chart, region: tuple[int, ...], present: Choices | None, shown: Sequence[int]
) -> Iterator[tuple[tuple[int, int], Choices]]:
    """Yield the plan of each region of two dimensions (or one); if a plan that is shown elsewhere is as good, that one.

    Plans whose difference is too small for a switch count as one for the reader.
    """
    basin, kept = chart.basin, dict[Choices, Plan]()
    for choices in dict.fromkeys([present, chart.regions[region][0].choices]):
        if choices is not None:
            kept[choices] = basin.plan(chart.base, choices)
    for place in chart.between_ends(region, shown):
        estimates = chart.estimates_at(place)
        if place in chart.regions or chart.objective.memory:
            best = chart.fill(place)[0]
            choices, least = best.choices, best.cost
        else:
            plan = basin.plan(estimates)
            choices, least = choices_of(plan), basin.cost(plan)
        if choices not in kept:
            known = basin.known.with_estimates(estimates)
            costs = {other: basin.cost(with_statistics(plan, known)) for other, plan in kept.items()}
            bounds = BestCosts.of([least, *costs.values()])
            wanted = chart.objective.utility(least, bounds) * (1 + CLEARLY)
            near = [other for other, cost in costs.items() if chart.objective.utility(cost, bounds) <= wanted]
            if near:
                choices = min(near, key=lambda other: chart.objective.utility(costs[other], bounds))
            else:
                kept[choices] = basin.plan(chart.base, choices)
        yield (place[shown[0]], place[shown[1]] if len(shown) > 1 else 0), choices


def path_of(chart: Chart, rounds: Sequence[RoundObserved]) -> list[tuple[float, ...]]:
    """Return the points at which the rounds after these, oldest first, were expected."""
    memory, points = Memory(), []
    for seen in rounds:
        memory.add(seen)
        values = [remembered(figure, chart.basin, memory) for figure in chart.figures]
        point = tuple(value for value in values if value is not None)
        if len(point) == len(values):
            points.append(point)
    return points
