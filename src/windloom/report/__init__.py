"""A run as one HTML file that anyone can open: key figures, the plan's picture, charts and tables."""

from windloom.explain.picture.line_charts import Series, bar_chart, line_chart, stacked_bar
from windloom.report.page import Fact, Report, Section, facts_html, report_html, table, write_report

__all__ = [
    "Fact",
    "Report",
    "Section",
    "Series",
    "bar_chart",
    "facts_html",
    "line_chart",
    "report_html",
    "stacked_bar",
    "table",
    "write_report",
]
