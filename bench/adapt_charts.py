"""What planning for many queries takes: once, and to draw a chart and fill a region: processor seconds."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from time import process_time
from typing import NoReturn

from bench.bids import unlike_queries
from bench.measure import Outcome
from windloom import Loom
from windloom.optimizer.adapt.basins import Basin, basins_of
from windloom.optimizer.adapt.candidates import candidates_at
from windloom.optimizer.adapt.chart_figures import value_of
from windloom.optimizer.adapt.charts import ChartOptions, draw_chart
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions
from windloom.statistics.estimates import Estimates
from windloom.statistics.set_statistics import Ongoing

BIDS = "ts timestamp, auction bigint, bidder bigint, price double, channel string, country string"
#: Seconds of event time of a round.
ROUND = 100.0


def basin_of(count: int, mixed: bool) -> Basin:
    """That of unlike queries over bids, without a Spark session."""
    asked = (f"CREATE QUERY {query.name} AS {query.cql};" for query in unlike_queries(count, mixed))
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as name:
        catalog = Path(name) / "bids.cql"
        catalog.write_text("\n".join([f"CREATE STREAM bids ({BIDS}) TIME ts;", *asked]), encoding="utf-8")
        loom = Loom(_no_session)
        loom.load(catalog)
    registry, known = loom._registry, PlanningFacts(ongoing=Ongoing(ROUND))
    (found,) = basins_of(registry.sources, loom.queries.values(), registry.types(), PlanOptions(), known)
    return found


def _no_session() -> NoReturn:
    raise AssertionError("a chart needs no session")


def planning(repeats: int) -> Outcome:
    """Processor seconds of finding the candidates for 100 mixed queries at some estimates; the median counts."""
    basin, took = basin_of(100, True), []
    for _ in range(1 + max(3, repeats)):
        begun = process_time()
        candidates_at(basin, Estimates(), Objective())
        took.append(process_time() - begun)
    note = "100 mixed queries, with the plans that are compared"
    return Outcome("processor time to plan again", statistics.median(took[1:]), "s", 0.5, "<=", note)


def drawing(repeats: int) -> Outcome:
    """Processor seconds of drawing a chart for 100 mixed queries; the median counts."""
    basin = basin_of(100, True)
    drawn, filled = [], []
    for _ in range(1 + max(3, repeats)):
        begun = process_time()
        chart = draw_chart(basin, Estimates(), Objective(), ChartOptions())
        drawn.append(process_time() - begun)
        region = chart.region([value_of(figure, basin, chart.base) for figure in chart.figures])
        begun = process_time()
        chart.fill(region)
        filled.append(process_time() - begun)
    seconds = statistics.median(drawn[1:])
    note = f"100 mixed queries; to fill a region takes {statistics.median(filled[1:]):.2f} s"
    return Outcome("processor time to draw a chart", seconds, "s", 1.0, "<=", note)
