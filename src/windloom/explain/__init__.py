"""EXPLAIN: a plan as text, as JSON and as a picture."""

from windloom.explain.chart_picture import chart_svg
from windloom.explain.charts import adapt_json, adapt_lines, chart_json, charts_text, damaged_text
from windloom.explain.picture import explain_svg
from windloom.explain.sharing_json import sharing_json
from windloom.explain.sharing_text import sharing_text
from windloom.explain.text import explain_text
from windloom.explain.to_json import explain_json

__all__ = [
    "adapt_json",
    "adapt_lines",
    "chart_json",
    "chart_svg",
    "charts_text",
    "damaged_text",
    "explain_json",
    "explain_svg",
    "explain_text",
    "sharing_json",
    "sharing_text",
]
