"""`windloom run`: answers every query of a catalog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windloom.cli.follow import FollowOptions, follow_options, follow_streams, refuse_without_follow
from windloom.cli.options import (
    check_plan_options,
    data_options,
    open_loom,
    plan_options,
    run_options,
    session_options,
    showing_progress,
)
from windloom.cli.tables import arrow_lines

if TYPE_CHECKING:
    from windloom.engine import Loom, Results, RunStats


@click.command(
    epilog="Example: windloom run trades.cql --stream trades=trades.parquet --out answers",
    short_help="Answer every query of a catalog.",
)
@click.argument("catalog", type=click.Path())
@data_options
@click.option("--out", metavar="DIR", default=None, help="Write answers as Parquet into this new directory.")
@click.option("--placement", default=None, metavar="auto|driver|executors", help="Where the final step runs.")
@follow_options
@plan_options
@run_options
@session_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print the figures of the run (or the plan of a dry run) as JSON."
)
@click.option("--dry-run", is_flag=True, help="Check the catalog and the columns, print the plan, run nothing.")
def run(
    catalog: str,
    streams: tuple[str, ...],
    relations: tuple[str, ...],
    out: str | None,
    placement: str | None,
    follow: bool,
    strategy: str,
    slicing: str,
    technique: str,
    intake: str,
    joins: str,
    fold: str,
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    as_json: bool,
    dry_run: bool,
    **following: Any,
) -> None:
    """Answer every query of CATALOG over the given data, from one shared plan.

    With --out, answers go to Parquet: one table per set of output columns, whose rows carry the name of their query;
    manifest.json says which table holds which queries. Without it, a summary and a few rows are shown.

    With --follow, PATH is a directory, and windows are answered round by round as files appear in it, until Ctrl-C.
    The same command continues where it stopped. docs/streaming.md explains late tuples, restarts and the checkpoint.
    """
    from windloom.engine.sinks.store import check_empty
    from windloom.spark.placement import check_placement

    check_plan_options(strategy, slicing, technique, intake, joins, fold)
    plan: dict[str, Any] = {
        "strategy": strategy,
        "slicing": slicing,
        "technique": technique,
        "intake": intake,
        "joins": joins,
        "fold": fold,
    }
    if follow:
        options = FollowOptions.of(streams, relations, out, placement, **following)
        follow_streams(catalog, options, plan, (cores, memory, conf), as_json=as_json, dry_run=dry_run)
        return
    refuse_without_follow(following)
    placement = placement or "auto"
    check_placement(placement)
    if out is not None:
        check_empty(Path(out))
    with showing_progress() as progress:
        loom = open_loom(catalog, streams, relations, cores, memory, conf, progress)
        if dry_run:
            form = "json" if as_json else "text"
            click.echo(loom.explain(form, **plan))
            return
        results = loom.run(**plan, placement=placement, out=out, progress=progress)
    if as_json:
        click.echo(json.dumps({**results.stats.as_dict(), "out": out}))
        return
    shown = [f"written to {out}; manifest.json lists its tables"] if out is not None else _some_rows(loom, results)
    click.echo("\n".join([_summary(results.stats), *shown]))


def _summary(stats: RunStats) -> str:
    return (
        f"{stats.queries:,} {'query' if stats.queries == 1 else 'queries'},"
        f" {stats.trees} {'tree' if stats.trees == 1 else 'trees'} ({stats.strategy}):"
        f" {stats.events:,} events → {stats.partials:,} partials → {stats.results:,} rows"
        f" in {stats.total_seconds:.2f} s ({stats.placement})"
    )


def _some_rows(loom: Loom, results: Results) -> list[str]:
    from windloom.spark.errors import as_windloom_errors

    lines = []
    for name in list(results)[:3]:
        lines += ["", f"{name}: {' '.join(loom.queries[name].text.split())}"]
        with as_windloom_errors(f"query '{name}'"):
            rows = results[name].orderBy("window_start").limit(5).toArrow()
        lines += arrow_lines(rows)
    return [*lines, "", "give --out DIR to keep all answers"]
