"""The charts of a loom that does not run: drawn around what is known, with the way that rounds of a stream took."""

from __future__ import annotations

import json
from collections.abc import Sequence

from windloom.engine.notebook import Picture
from windloom.errors import WindloomError
from windloom.explain import chart_json, chart_svg, charts_text
from windloom.optimizer.adapt.chart import Chart, ChartOptions
from windloom.optimizer.adapt.figures import remembered, value_of
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.sensitivity import draw_chart
from windloom.optimizer.adapt.subject import Subject
from windloom.optimizer.adapt.views import chart_view
from windloom.plan.adapting import ChartView
from windloom.plan.estimates import Estimates
from windloom.plan.memory import Memory
from windloom.plan.observed import RoundObserved


def draw_charts(
    subjects: Sequence[Subject],
    estimates: Estimates,
    rounds: Sequence[RoundObserved],
    options: ChartOptions,
    objective: Objective,
) -> tuple[ChartView, ...]:
    """A chart for each subject; `rounds` are those of a stream, oldest first."""
    found = []
    for subject in subjects:
        chart = draw_chart(subject, estimates, objective, options)
        now = [value_of(figure, subject, estimates) for figure in chart.figures]
        found.append(chart_view(chart, now, path=_path(chart, rounds)))
    return tuple(found)


def _path(chart: Chart, rounds: Sequence[RoundObserved]) -> list[tuple[float, ...]]:
    """Where the round after each of these was expected."""
    memory, points = Memory(), []
    for seen in rounds:
        memory.add(seen)
        values = [remembered(figure, chart.subject, memory) for figure in chart.figures]
        point = tuple(value for value in values if value is not None)
        if len(point) == len(values):
            points.append(point)
    return points


def charts_as(format: str, charts: tuple[ChartView, ...]) -> str:
    """Text, JSON or a picture."""
    match format:
        case "text":
            return charts_text(charts)
        case "json":
            return json.dumps([chart_json(chart) for chart in charts], indent=2, ensure_ascii=False)
        case "svg":
            return Picture(chart_svg(charts))
    raise WindloomError(
        f"unknown format '{format}'", "a chart is text, data or a picture", "use 'text', 'json' or 'svg'"
    )
