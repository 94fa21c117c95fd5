"""`windloom show`: the answers in a directory, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windloom.cli.options import arrow_lines, table_lines
from windloom.errors import WindloomError

if TYPE_CHECKING:
    from windloom.engine.answer_folder import AnswerFolder


@click.command(
    epilog="Example: windloom show answers avg_1h", short_help="Show answers that were written to a directory."
)
@click.argument("directory", metavar="DIR", type=click.Path())
@click.argument("query", required=False)
@click.option("--limit", default=20, metavar="N", help="How many rows are shown, the latest; 20 by default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(directory: str, query: str | None, limit: int, as_json: bool) -> None:
    """List the queries whose answers are in DIR, or show the latest rows of one QUERY.

    DIR is what `windloom run --out` was given. Instants are shown in UTC. Python reads the same with
    `windloom.read(DIR)`; Spark, pandas and DuckDB read the files as they are (docs/sinks.md).
    """
    from windloom.engine.answer_folder import AnswerFolder

    if limit < 1:
        raise WindloomError(f"--limit is {limit}", "it says how many rows are shown", "give a number from 1 on")
    folder = AnswerFolder(Path(directory))
    if query is None:
        _list(folder, as_json=as_json)
    else:
        _show(folder, query, limit, as_json=as_json)


def _list(folder: AnswerFolder, *, as_json: bool) -> None:
    from windloom.model.formatting import plain

    found = folder.summary()
    if as_json:
        listed = [
            {"query": name, "rows": each.rows, "first": plain(each.first), "last": plain(each.last), "text": each.text}
            for name, each in found.items()
        ]
        click.echo(json.dumps(listed))
        return
    cells = [
        [name, f"{each.rows:,}", *("–" if edge is None else str(edge) for edge in (each.first, each.last))]
        for name, each in found.items()
    ]
    lines = table_lines(["query", "rows", "first window from", "last window until"], cells, right=["rows"])
    click.echo("\n".join(lines))


def _show(folder: AnswerFolder, name: str, limit: int, *, as_json: bool) -> None:
    from windloom.model.formatting import plain

    rows = folder.arrow(name)
    by = [("window_end", "ascending"), ("window_start", "ascending")]
    latest = rows.sort_by(by).slice(max(0, rows.num_rows - limit))
    if as_json:
        listed = [{column: plain(value) for column, value in row.items()} for row in latest.to_pylist()]
        click.echo(json.dumps({"query": name, "rows": rows.num_rows, "latest": listed}))
        return
    lines = arrow_lines(latest)
    if latest.num_rows < rows.num_rows:
        lines += ["", f"the latest {latest.num_rows:,} of {rows.num_rows:,} rows; --limit N shows more"]
    click.echo("\n".join(lines if rows.num_rows else ["there are no rows"]))
