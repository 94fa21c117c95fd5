"""What it takes to draw a chart for many queries, and to fill the region in which a stream is: processor seconds."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from time import process_time
from typing import NoReturn

from bench.bids import unlike_queries
from bench.measure import Outcome
from windloom import Loom
from windloom.optimizer import Known, PlanOptions
from windloom.optimizer.adapt.basin import Basin, basins_of
from windloom.optimizer.adapt.chart import ChartOptions
from windloom.optimizer.adapt.figures import value_of
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.sensitivity import draw_chart
from windloom.plan.estimates import Estimates
from windloom.plan.statistics import Ongoing

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
    registry, known = loom._registry, Known(ongoing=Ongoing(ROUND))
    (found,) = basins_of(registry.sources, loom.queries.values(), registry.types(), PlanOptions(), known)
    return found


def _no_session() -> NoReturn:
    raise AssertionError("a chart needs no session")


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
