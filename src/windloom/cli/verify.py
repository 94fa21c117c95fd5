"""`windloom verify`: recomputes queries with Spark's own window() and compares."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from windloom.cli.options import (
    check_plan_options,
    data_options,
    open_loom,
    plan_options,
    run_options,
    session_options,
    showing_progress,
)


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
) -> int:
    """Run CATALOG, recompute its queries with Spark's own window(), and compare every row.

    Spark copies each row range/slide times for a sliding window, so a query with a large overlap takes a while.
    The exit code is 1 if a row differs.
    """
    from windloom.engine.results import unknown_query
    from windloom.spark.placement import check_placement

    check_plan_options(strategy, slicing, technique, intake, joins, fold)
    check_placement(placement)
    with showing_progress() as progress:
        loom = open_loom(catalog, streams, relations, cores, memory, conf, progress)
        for name in names:
            if name not in loom.queries:
                raise unknown_query(name, list(loom.queries))
        results = loom.run(
            strategy,
            placement=placement,
            slicing=slicing,
            technique=technique,
            intake=intake,
            joins=joins,
            fold=fold,
            progress=progress,
        )
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
