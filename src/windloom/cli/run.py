"""`windloom run`: answer every query of a catalog."""

from __future__ import annotations

import json

import click

from windloom.cli.options import open_loom, plan_options, session_options, showing_progress, stream_option


@click.command(
    epilog="Example: windloom run trades.cql --stream trades=trades.parquet --out answers",
    short_help="Answer every query of a catalog.",
)
@click.argument("catalog", type=click.Path())
@stream_option
@click.option("--out", metavar="DIR", default=None, help="Write answers as Parquet into this new directory.")
@click.option("--placement", default="auto", metavar="auto|driver|executors", help="Where the final step runs.")
@plan_options
@session_options
@click.option("--json", "as_json", is_flag=True, help="Print the figures of the run as JSON.")
@click.option("--dry-run", is_flag=True, help="Check the catalog and the data's columns, print the plan, run nothing.")
def run(
    catalog: str,
    streams: tuple[str, ...],
    out: str | None,
    placement: str,
    strategy: str,
    slicing: str,
    technique: str,
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    as_json: bool,
    dry_run: bool,
) -> None:
    """Answer every query of CATALOG over the data given, from one shared plan.

    With --out, answers go to Parquet: one table for each set of output columns, rows carry the query's name,
    and manifest.json says which table holds which queries. Without it, a summary and a few rows are shown.
    """
    from windloom.engine.store import check_empty

    if out is not None:
        from pathlib import Path

        check_empty(Path(out))
    with showing_progress() as progress:
        loom = open_loom(catalog, streams, cores, memory, conf)
        if dry_run:
            click.echo(loom.explain(strategy=strategy, slicing=slicing, technique=technique))
            return
        results = loom.run(
            strategy, placement=placement, slicing=slicing, technique=technique, out=out, progress=progress
        )
    stats = results.stats
    if as_json:
        click.echo(json.dumps({**stats.as_dict(), "out": out}))
        return
    click.echo(
        f"{stats.queries:,} queries, {stats.trees} tree{'s' if stats.trees != 1 else ''} ({stats.strategy}):"
        f" {stats.events:,} events → {stats.partials:,} partials → {stats.results:,} rows"
        f" in {stats.total_seconds:.2f} s ({stats.placement})"
    )
    if out is not None:
        click.echo(f"written to {out}; manifest.json lists its tables")
        return
    for name in list(results)[:3]:
        click.echo(f"\n{name}: {' '.join(loom.queries[name].text.split())}")
        results[name].orderBy("window_start").show(5, truncate=False)
    click.echo("give --out DIR to keep all answers")
