"""The charts of a loom that is not running: drawn around what is known, with the path of a stream's rounds."""

from __future__ import annotations

import json
from collections.abc import Sequence

from windloom.engine.notebook import Picture
from windloom.errors import WindloomError
from windloom.explain import chart_json, chart_svg, charts_text
from windloom.optimizer.adapt.basin import Basin
from windloom.optimizer.adapt.chart import ChartOptions
from windloom.optimizer.adapt.figures import value_of
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.sensitivity import draw_chart
from windloom.optimizer.adapt.views import chart_view, path_of
from windloom.plan.adapting import ChartView
from windloom.plan.estimates import Estimates
from windloom.plan.observed import RoundObserved


def draw_charts(
    basins: Sequence[Basin],
    estimates: Estimates,
    rounds: Sequence[RoundObserved],
    options: ChartOptions,
    objective: Objective,
) -> tuple[ChartView, ...]:
    """Return a chart for each basin; `rounds` are the rounds of a stream, oldest first."""
    views = []
    for basin in basins:
        chart = draw_chart(basin, estimates, objective, options)
        now = [value_of(figure, basin, estimates) for figure in chart.figures]
        views.append(chart_view(chart, now, path=path_of(chart, rounds)))
    return tuple(views)


def charts_as(format: str, charts: tuple[ChartView, ...]) -> str:
    """Return the charts as text, JSON or a picture."""
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
