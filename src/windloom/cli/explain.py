"""`windloom explain` shows the plan of a catalog; `windloom verify` compares its answers with Spark's own window()."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from windloom.cli.options import (
    data_options,
    objective_option,
    open_loom,
    plan_options,
    read_objective,
    run_options,
    session_options,
    showing_progress,
    take_plan_options,
)
from windloom.errors import WindloomError


@click.command(
    epilog="Example: windloom explain trades.cql --format svg --out plan.svg", short_help="Show the plan of a catalog."
)
@click.argument("catalog", type=click.Path())
@data_options
@click.option("--query", default=None, metavar="NAME", help="Show only this query, in full.")
@click.option("--all", "every", is_flag=True, help="Show every query, however many there are.")
@click.option("--sharing", is_flag=True, help="Show costs, what sharing saves, and why it does not save more.")
@click.option("--analyze", is_flag=True, help="Run the catalog over the data, and show where the time went.")
@click.option(
    "--checkpoint", default=None, metavar="DIR", help="Plan with what the rounds of a stream observed: its checkpoint."
)
@click.option("--chart", is_flag=True, help="Show which plan would be best where: rates, groups, predicates.")
@click.option("--parts", default=10, metavar="N", help="The parts of each dimension of a chart.")
@click.option("--dimensions", default=3, metavar="N", help="The most dimensions of a chart.")
@click.option("--partition", default="geometric", metavar="geometric|regular", help="How dimensions are cut.")
@objective_option
@click.option("--what-if", "added", default=None, metavar="TEXT", help="Show what one more query would cost.")
@click.option(
    "--cost",
    default="seconds",
    type=click.Choice(["seconds", "paper"]),
    help="Predicted seconds, or the papers' operations.",
)
@click.option(
    "--format", "form", default="text", type=click.Choice(["text", "json", "svg"]), help="The form of the plan."
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--out", metavar="FILE", default=None, help="Write the plan to this file.")
@plan_options
@run_options
@session_options
def explain(
    catalog: str,
    streams: tuple[str, ...],
    relations: tuple[str, ...],
    query: str | None,
    every: bool,
    sharing: bool,
    analyze: bool,
    checkpoint: str | None,
    chart: bool,
    parts: int,
    dimensions: int,
    partition: str,
    objective: str | None,
    added: str | None,
    cost: str,
    form: str,
    as_json: bool,
    out: str | None,
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    **others: Any,
) -> None:
    """Show what would run for CATALOG: streams, slices, trees, queries, and what they share.

    No data is needed, unless --analyze runs the catalog. Otherwise Spark is started only if it alone knows the type of
    some expression.
    """
    form = "json" if as_json else form
    source_of = click.get_current_context().get_parameter_source
    for name in () if chart else ("parts", "dimensions", "partition", "objective"):
        if source_of(name) is ParameterSource.COMMANDLINE:  # it would change nothing
            raise WindloomError(
                f"--{name} is for charts",
                "without --chart, the plan of one point is shown, and this option changes nothing",
                f"add --chart, or leave --{name} out",
            )
    options = take_plan_options(others)
    loom = open_loom(catalog, streams, relations, cores, memory, conf)
    if checkpoint is not None:
        damaged = loom.learn(checkpoint)
        if damaged:
            from windloom.explain.charts import damaged_text

            click.echo(f"… {damaged_text(damaged)}", err=True)
    if chart:
        if query is not None or sharing or cost != "seconds" or added is not None:
            raise WindloomError(
                "--chart shows one thing only",
                "which plan would be best where, in predicted seconds",
                "leave --query, --sharing, --cost and --what-if out",
            )
        text = loom.chart(
            form,
            parts=parts,
            dimensions=dimensions,
            partition=partition,
            objective=read_objective(objective),
            **options,
        )
    elif analyze:
        if query is not None or sharing or cost != "seconds" or added is not None or form == "svg":
            raise WindloomError(
                "--analyze shows one thing only",
                "where the time of a run went",
                "leave --query, --sharing, --cost, --what-if and svg out",
            )
        text = loom.run(**options).analyze(form).rstrip("\n")
    elif added is not None:
        if query is not None or sharing or cost != "seconds" or form == "svg":
            raise WindloomError(
                "--what-if shows one thing only",
                "what a query would add, in predicted seconds",
                "leave --query, --sharing, --cost and svg out",
            )
        added_cost = loom.what_if(added, **options)
        text = json.dumps(added_cost.as_dict(), indent=2, ensure_ascii=False) if form == "json" else repr(added_cost)
    else:
        text = loom.explain(form, query=query, queries=every, sharing=sharing, cost=cost, **options)
    if out is None:
        click.echo(text)
        return
    try:
        Path(out).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise WindloomError(f"cannot write '{out}'", str(error), "choose another file") from None
    click.echo(f"written to {out}")


@click.command(
    epilog="Example: windloom verify trades.cql --stream trades=trades.parquet --query avg_1h",
    short_help="Compare answers with Spark's own window().",
)
@click.argument("catalog", type=click.Path())
@data_options
@click.option("--query", "names", multiple=True, metavar="NAME", help="Compare only this query; may be repeated.")
@click.option("--placement", default="auto", metavar="auto|driver|executors", help="Where the final step runs.")
@plan_options
@run_options
@session_options
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def verify(
    catalog: str,
    streams: tuple[str, ...],
    relations: tuple[str, ...],
    names: tuple[str, ...],
    placement: str,
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    as_json: bool,
    **others: Any,
) -> int:
    """Run CATALOG, recompute its queries with Spark's own window(), and compare every row.

    Spark copies each row range/slide times for a sliding window, so a query with a large overlap takes a while.
    The exit code is 1 if a row differs.
    """
    from windloom.engine.results import unknown_query
    from windloom.spark.placement import check_placement

    options = take_plan_options(others)
    check_placement(placement)
    with showing_progress() as progress:
        loom = open_loom(catalog, streams, relations, cores, memory, conf, progress)
        for name in names:
            if name not in loom.queries:
                raise unknown_query(name, list(loom.queries))
        results = loom.run(**options, placement=placement, progress=progress)
        wanted = list(names) or list(results)
        verifications = []
        for number, name in enumerate(wanted, 1):
            progress(f"verifying {name} ({number} of {len(wanted)})")
            verifications.append(loom.verify(name, results))
    if as_json:
        click.echo(json.dumps([{**asdict(verification), "ok": verification.ok} for verification in verifications]))
    else:
        for verification in verifications:
            click.echo(str(verification))
    return 0 if all(verification.ok for verification in verifications) else 1
