"""Charts as SVG: bars, the parts of a whole, and lines."""

from windloom.report.charts import Series, bar_chart, line_chart, stacked_bar

__all__ = ["Series", "bar_chart", "line_chart", "stacked_bar"]
