"""Charts in the formats that users ask for."""

from __future__ import annotations

import json

from windloom.engine.views import Picture
from windloom.errors import WindloomError
from windloom.explain.charts import chart_json, chart_svg, charts_text
from windloom.plan.adapting import ChartView


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
