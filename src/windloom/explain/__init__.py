"""EXPLAIN: a plan as text, as JSON and as a picture."""

from windloom.explain.charts import adapt_json, adapt_lines, chart_json, chart_svg, charts_text, damaged_text
from windloom.explain.json import explain_json
from windloom.explain.picture.picture import explain_svg
from windloom.explain.sharing import sharing_json, sharing_text
from windloom.explain.text import explain_text

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
