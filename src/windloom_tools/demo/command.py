"""`windloom demo`: runs a hundred queries from one shared plan, measures, checks against Spark, and reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from windloom_tools.demo.catalog import demo_catalog

if TYPE_CHECKING:
    from windloom.engine import Loom, Results
    from windloom.spark.api import DataFrame
    from windloom.spark.verify.verify import Verification

_KEYS = 20
#: Trades that are written to a file, for the commands to try next.
_WRITTEN = 200_000


@dataclass(frozen=True, slots=True)
class Extent:
    """How many events are generated, queries measured one by one, and queries compared with Spark.

    On few events, what starting a Spark job costs would be all that is measured: then none are.
    """

    events: int
    sampled: int
    compared: int


FULL, QUICK = Extent(1_000_000, 4, 7), Extent(50_000, 0, 2)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds that a few queries took, and what all queries would take at that rate."""

    what: str
    seconds: dict[str, float]
    scaled_seconds: float

    @property
    def note(self) -> str:
        return f"measured on {len(self.seconds)} queries, scaled to all"


@click.command(
    epilog="Example: windloom demo --events 5000000 --out my-demo",
    short_help="Run a hundred queries from one shared plan, on local Spark.",
)
@click.option("--quick", is_flag=True, help="A small run, to see that everything works: half a minute.")
@click.option(
    "--events",
    type=click.IntRange(min=1),
    default=None,
    help=f"Number of events to generate.  [default: {FULL.events}; with --quick {QUICK.events}]",
)
@click.option("--rate", default=100, show_default=True, help="Events per second of event time.")
@click.option("--seed", default=1, show_default=True, help="Seed of the synthetic trades.")
@click.option("--cores", default="2", show_default=True, help="Cores that the local Spark uses.")
@click.option("--memory", default="3g", show_default=True, help="Heap size of the local Spark.")
@click.option("--out", default="windloom-demo", show_default=True, help="Directory for the report and the catalog.")
def demo(quick: bool, events: int | None, rate: int, seed: int, cores: str, memory: str, out: str) -> int:
    """Weave about a hundred sliding-window queries over synthetic trades into one plan and run it.

    Shows the plan, what it achieves, what No Share and Spark's own window() would have cost (measured on a few
    queries, scaled, and labelled as such), compares a sample with Spark row by row, and writes an HTML report.
    """
    extent = QUICK if quick else FULL
    events = extent.events if events is None else events
    console = Console(stderr=False, highlight=False)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    catalog = folder / "catalog.cql"
    catalog.write_text(demo_catalog(rate), encoding="utf-8")

    loom, frame = _prepare(console, catalog, events, rate, seed, cores, memory)
    frame.limit(_WRITTEN).coalesce(1).write.mode("overwrite").parquet(str(folder / "trades"))
    console.rule("the plan, before anything was seen")
    console.print(loom.explain(), markup=False, soft_wrap=True)
    before = loom.explain("svg")
    console.rule("the run")
    with console.status("first run …"):
        first = loom.run()
    with console.status("second run …"):
        results = loom.run()
    _show_run(console, first, results)
    console.print(f"the plan with what the first run saw: {loom.explain().partition(chr(10))[0]}", markup=False)
    sample = _sample(loom, extent.sampled)
    measured = _alternatives(console, loom, frame, results, sample) if sample else []
    console.rule("checked against Spark's own window()")
    checks = _verify(console, loom, results, sample, extent.compared)

    from windloom_tools.demo.report import write_demo_report

    page = write_demo_report(folder, before, loom, results, measured, checks)
    console.print(f"\nreport: {page}\n{next_steps(folder)}", soft_wrap=True, markup=False)
    return 0 if all(verification.ok for verification in checks) else 1


def next_steps(folder: Path) -> str:
    catalog, trades = folder / "catalog.cql", folder / "trades"
    steps = {
        "what each query costs, and what sharing saves it": f"windloom plan {catalog}",
        "the same queries as a service, with a page to look at": f"windloom serve {catalog} --stream trades={trades}"
        f" --out {folder / 'live'}",
        "a catalog from the columns of your own data": "windloom init FILE",
    }
    return "\n".join(
        ["three commands to try next:", *(f"  {command}\n      {about}" for about, command in steps.items())]
    )


def _prepare(
    console: Console, catalog: Path, events: int, rate: int, seed: int, cores: str, memory: str
) -> tuple[Loom, DataFrame]:
    from windloom.engine import Loom
    from windloom.spark.session import local_session
    from windloom.spark.sources.read import synthetic_trades

    with console.status("starting Spark …"):
        spark = local_session(cores=cores, memory=memory, app="windloom demo")
    loom = Loom(spark)
    loom.load(catalog)
    with console.status(f"generating {events:,} synthetic trades …"):
        frame = synthetic_trades(spark, events, rate, _KEYS, seed).persist()
        frame.count()
    loom.stream("trades", frame)
    console.print(
        f"{events:,} trades of {_KEYS} symbols, {rate:,} per second of event time ({events / rate / 3600:.1f} hours);"
        f" {len(loom.queries)} queries"
    )
    return loom, frame


def _show_run(console: Console, first: Results, results: Results) -> None:
    stats = results.stats
    seconds = stats.total_seconds
    console.print(
        f"{stats.events:,} events → {stats.partials:,} partials → {stats.results:,} rows in {seconds:.2f} s"
        f" (the first run, with the plan before, took {first.stats.total_seconds:.2f} s)"
    )
    console.print(f"[bold]{stats.events / seconds:,.0f} events/s, {stats.results / seconds:,.0f} results/s[/bold]")
    console.print("seconds per stage: " + ", ".join(f"{name} {value:.2f}" for name, value in stats.seconds.items()))


def _sample(loom: Loom, count: int) -> list[str]:
    """Queries at even steps of overlap (range/slide), which determines Spark's own cost."""
    ordered = sorted(loom.queries.values(), key=lambda query: (query.window.overlap, query.name))
    steps = [int((i + 0.5) * len(ordered) / count) for i in range(count)]
    return [ordered[step].name for step in steps]


def _alternatives(
    console: Console, loom: Loom, frame: DataFrame, results: Results, sample: list[str]
) -> list[Measured]:
    console.rule("what the alternatives cost")
    measured = [_no_share(console, loom, frame, sample), _spark_windows(console, loom, frame, sample)]
    _show_costs(console, results, measured)
    return measured


def _no_share(console: Console, loom: Loom, frame: DataFrame, sample: list[str]) -> Measured:
    from windloom.engine import Loom as NewLoom

    seconds = {}
    for name in sample:
        alone = NewLoom(loom.spark)
        alone.stream("trades", frame, time="ts")
        alone.query(name, loom.queries[name].text)
        with console.status(f"No Share: {name} alone …"):
            begun = perf_counter()
            alone.run()
            seconds[name] = perf_counter() - begun
    return Measured("No Share", seconds, _scaled(seconds, len(loom.queries)))


def _spark_windows(console: Console, loom: Loom, frame: DataFrame, sample: list[str]) -> Measured:
    from windloom.spark.verify.verify import time_spark_window

    seconds = {}
    for name in sample:
        with console.status(f"Spark's own window(): {name} …"):
            seconds[name] = time_spark_window(loom.queries[name], loom.streams, {"trades": frame})
    return Measured("Spark's own window()", seconds, _scaled(seconds, len(loom.queries)))


def _scaled(seconds: dict[str, float], queries: int) -> float:
    return sum(seconds.values()) / len(seconds) * queries


def _show_costs(console: Console, results: Results, measured: list[Measured]) -> None:
    stats = results.stats
    table = Table("", "seconds", "against Windloom", "how")
    table.add_row(f"Windloom, {stats.queries} queries", f"{stats.total_seconds:.2f}", "1", "measured")
    for baseline in measured:
        ratio = baseline.scaled_seconds / stats.total_seconds
        table.add_row(baseline.what, f"{baseline.scaled_seconds:,.1f}", f"{ratio:,.0f} × slower", baseline.note)
    console.print(table)


def _verify(console: Console, loom: Loom, results: Results, sample: list[str], most: int) -> list[Verification]:
    odd = [name for name in loom.queries if name.startswith("odd_")]
    checks = []
    for name in list(dict.fromkeys([*sample, *odd[:2], "large_300_60"]))[:most]:
        with console.status(f"verifying {name} …"):
            found = loom.verify(name, results)
        console.print(("[green]✓[/green] " if found.ok else "[red]✗[/red] ") + str(found), soft_wrap=True)
        checks.append(found)
    return checks
