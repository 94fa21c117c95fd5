"""The demo's HTML report: figures, a picture of the plan, costs, sample answers, and the comparison with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from windloom.explain.picture.line_charts import Series, line_chart
from windloom_tools.demo.bars import bar_chart, stacked_bar
from windloom_tools.demo.page import Fact, Report, Section, table, write_report

if TYPE_CHECKING:
    from windloom.engine import Loom, Results
    from windloom.spark.verify.verify import Verification
    from windloom_tools.demo.command import Measured


def write_demo_report(
    folder: Path, before: str, loom: Loom, results: Results, measured: list[Measured], checks: list[Verification]
) -> Path:
    """Writes `report.html` and `plan.svg` into the folder; `before` pictures the plan when nothing was known yet."""
    picture = str(loom.explain("svg"))
    (folder / "plan.svg").write_text(picture, encoding="utf-8")
    stats = results.stats
    seconds = stats.total_seconds
    report = Report(
        "Windloom demo",
        f"{stats.queries} sliding-window queries over {stats.events:,} trades, answered from one shared plan on Spark",
        (
            Fact("events per second", f"{stats.events / seconds:,.0f}", "all queries together"),
            Fact("results per second", f"{stats.results / seconds:,.0f}", f"{stats.results:,} rows"),
            Fact("partials", f"{stats.partials:,}", "summaries of slices, shared by the queries"),
            Fact(
                "checked",
                f"{sum(verification.rows for verification in checks):,} rows",
                "equal to Spark's own window()",
            ),
        ),
        (
            Section(
                "The plan before the first run", str(before), "Made with the rate of the catalog and assumed groups."
            ),
            Section("The plan after it, with what the run saw", picture, _PLAN_TEXT),
            *([Section("What the alternatives cost", _costs(results, measured), _COSTS_TEXT)] if measured else []),
            Section("Where the time went", stacked_bar([(name, s, "") for name, s in stats.seconds.items()])),
            *([Section("What single queries took", _single_queries(measured), _SINGLE_TEXT)] if measured else []),
            Section("A sample of answers", _answers(results), "Average price of one symbol, by range and slide."),
            Section("Checked against Spark", _checks(checks), "Every row of these queries, compared value by value."),
        ),
    )
    return write_report(folder / "report.html", report)


_PLAN_TEXT = (
    "Streams are cut into slices, trees of queries are answered from them. Rates and groups are those that the first"
    " run saw; what is measured below ran with this plan."
)
_SINGLE_TEXT = "The queries that were measured one by one: by Windloom without sharing, and by Spark's own window()."
_COSTS_TEXT = (
    "Windloom's time is measured. The others are measured on a few queries at even steps of range/slide, on the same"
    " data in the same session, and scaled to the number of queries."
)


def _costs(results: Results, measured: list[Measured]) -> str:
    seconds = results.stats.total_seconds
    rows = [("Windloom", seconds, f"{results.stats.queries} queries, measured")]
    rows += [
        (baseline.what, baseline.scaled_seconds, f"{baseline.scaled_seconds / seconds:,.0f} ×; {baseline.note}")
        for baseline in measured
    ]
    return bar_chart(rows, "s", log=True, title="seconds, logarithmic")


def _single_queries(measured: list[Measured]) -> str:
    rows = [(name, seconds, baseline.what) for baseline in measured for name, seconds in baseline.seconds.items()]
    return bar_chart(rows, "s", log=True, title="seconds of single queries, logarithmic", highlight=None)


def _answers(results: Results) -> str:
    series = []
    for name, label in (("price_60_10", "1 min / 10 s"), ("price_1800_60", "30 min / 1 min")):
        rows = [row for row in results.arrow(name).to_pylist() if row["symbol"] == "S00"]
        rows.sort(key=lambda row: row["window_end"])
        step = max(1, len(rows) // 400)
        series.append(Series(label, tuple((row["window_end"], row["average"]) for row in rows[::step])))
    return line_chart(series, y_label="average price of S00")


def _checks(checks: list[Verification]) -> str:
    rows = [
        (verification.query, f"{verification.rows:,}", f"{verification.largest_error:.1e}", verification.ok)
        for verification in checks
    ]
    return table(("query", "rows compared", "largest error relative to Σ|x|", "equal"), rows)
