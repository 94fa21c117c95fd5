"""`windloom state`: what the checkpoint of an operator holds, and what keeps it alive."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from windloom.cli.options import name_value_pairs, session_options, table_lines


@click.command(
    epilog="Example: windloom state checkpoint", short_help="Show what the state of a streaming operator holds."
)
@click.argument("checkpoint", metavar="CHECKPOINT", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@session_options
def state(checkpoint: str, as_json: bool, cores: str, memory: str | None, conf: tuple[str, ...]) -> None:
    """Show what is in the state of a stream that was written with `loom.answers(…).writeStream`.

    CHECKPOINT is its checkpointLocation. The stream may run meanwhile. Per set of slices: its cells and bytes, from
    which instant on, and the query whose windows keep them longest.
    """
    from windloom.model.formatting import size_text
    from windloom.model.time import format_instant
    from windloom.spark.operator.state import read_state
    from windloom.spark.session import local_session

    settings = name_value_pairs(conf, "--conf", "KEY=VALUE")
    found = read_state(local_session(cores=cores, memory=memory, conf=settings), checkpoint)
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    for name, tick in sorted(found.frontiers.items()):
        click.echo(f"{name}: windows are closed up to {format_instant(tick)}")
    cells = [
        [
            each.text,
            str(len(each.queries)),
            f"{each.cells:,}",
            f"{each.segments:,} + {each.summaries:,}",
            size_text(each.size),
            "–" if each.oldest is None else format_instant(each.oldest),
            each.kept_for,
        ]
        for each in found.sets
    ]
    names = ["set", "queries", "cells", "segments + summaries", "size", "since", "kept for"]
    click.echo("\n".join(table_lines(names, cells, right=names[1:5])))
    total = sum(each.size for each in found.sets)
    click.echo(f"{size_text(total)} in {found.buckets} buckets, and {size_text(found.heads)} of facts and catalogues")
