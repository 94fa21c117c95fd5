"""`windloom plan`: shows which queries would share trees, and the cost, for a catalog or a generated workload."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import click

from windloom.cli.options import plan_options
from windloom.errors import WindloomError

#: Defaults of the options of each generated workload.
_DEFAULTS: dict[str, dict[str, float | str]] = {
    "divisors": {"smax": 1_000, "skew": 0.0, "unit": "1 s"},
    "zipf": {"smax": 100_000, "skew": 0.6, "unit": "1 s", "templates": 26},
}


@click.command(
    epilog="Example: windloom plan --workload zipf --queries 250 --rate 100 --skew 0.7 --overlap 10",
    short_help="Show what queries would share, and the cost.",
)
@click.argument("catalog", required=False, type=click.Path())
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="[STREAM=]N",
    help="Events per second, of a stream of the catalog or of the workload.",
)
@click.option("--workload", type=click.Choice(list(_DEFAULTS)), help="Generate windows as the papers do.")
@click.option("--queries", type=click.IntRange(1), metavar="N", help="Number of queries. [1000]")
@click.option("--smax", type=click.IntRange(1), metavar="S", help="Longest slide, in units. [1000; zipf: 100000]")
@click.option(
    "--overlap", type=click.FloatRange(1), metavar="O", help="Largest number of windows that hold one event. [50]"
)
@click.option(
    "--templates", type=click.IntRange(0), metavar="N", help="Slides to draw from, at equal ratios; 0: all. [zipf: 26]"
)
@click.option("--skew", type=float, metavar="Z", help="Zipf skew toward long slides. [0; zipf: 0.6]")
@click.option("--seed", type=click.IntRange(0), metavar="K", help="Seed of the random windows. [1]")
@click.option("--unit", metavar="TIME", help="Length of a slide of 1. [1 s]")
@click.option("--aggregate", type=click.Choice(["sum", "max"]), help="The aggregate of every query. [sum]")
@click.option("--epsilon", type=float, metavar="E", help="Tolerance of the strategy 'incremental'. [0.1]")
@click.option("--memory", default="4g", metavar="SIZE", help="Memory that the search may use. [4g]")
@click.option(
    "--cost",
    default="seconds",
    type=click.Choice(["seconds", "paper"]),
    help="Predicted seconds, or the papers' operations.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plan_options
def plan(
    catalog: str | None,
    rates: tuple[str, ...],
    workload: str | None,
    epsilon: float | None,
    memory: str,
    cost: str,
    as_json: bool,
    strategy: str,
    slicing: str,
    technique: str,
    **given: Any,
) -> None:
    """Show which queries would share trees, what every tree and the plan cost, and how long the search took.

    Costs are predicted seconds per second of event time or, with --cost paper, the papers' operations per second.
    A generated workload has no data and no types; it is planned as windows only, and may have a million of them.
    """
    from windloom.cli.plan_report import find_catalog_sets, find_workload, to_json, to_text
    from windloom.optimizer.sharing.incremental_plan import Incremental
    from windloom.optimizer.sharing.registry import find_strategy
    from windloom.optimizer.stages import PlanOptions

    given = {name: value for name, value in given.items() if value is not None}
    if (catalog is None) == (workload is None):
        fact = "neither a catalog nor a workload is given" if catalog is None else "both are given"
        raise WindloomError("there are two things that can be planned, one at a time", fact, "windloom plan --help")
    if workload is None and given:
        raise WindloomError(
            f"--{next(iter(given))} does not go with a catalog",
            "it describes a generated workload",
            "leave it out, or give --workload instead of the catalog",
        )
    if epsilon is not None and strategy != "incremental":
        raise WindloomError(
            f"--epsilon does not go with --strategy {strategy}",
            "it is the tolerance of an incremental plan",
            "leave it out, or use --strategy incremental",
        )
    if strategy == "auto" and cost == "paper":
        strategy = "weave_share"
    PlanOptions(strategy, slicing, technique)  # reports a typing mistake at once
    limit = _bytes(memory)
    if workload is None:
        planned = find_catalog_sets(str(catalog), rates, slicing, technique, cost)
    else:
        planned = find_workload(workload, _DEFAULTS[workload] | given, rates, slicing, technique, cost)
    chosen = None if strategy == "auto" else find_strategy(strategy) if epsilon is None else Incremental(epsilon)
    for sharing in planned.sets:
        sharing.problem = replace(sharing.problem, memory_limit=limit)
        sharing.find(chosen)
    options = {"strategy": strategy, "slicing": slicing, "technique": technique}
    click.echo(json.dumps(to_json(planned, options), indent=2) if as_json else to_text(planned, options))


def _bytes(text: str) -> int:
    factors = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    number, factor = (text[:-1], factors[text[-1].lower()]) if text[-1:].lower() in factors else (text, 1)
    try:
        size = int(float(number) * factor)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise WindloomError(f"cannot read --memory '{text}'", "it is a number of bytes", "for example --memory 4g")
    return size
