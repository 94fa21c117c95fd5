"""`windloom translate`: a text for Spark, Flink, RisingWave, Materialize or DuckDB in our own form."""

from __future__ import annotations

from pathlib import Path

import click

from windloom.errors import WindloomError


@click.command(
    epilog="Example: windloom translate job.sql --dialect flink",
    short_help="Show texts for other systems in our own form.",
)
@click.argument("file", type=click.Path())
@click.option(
    "--dialect",
    type=click.Choice(["spark", "flink", "risingwave", "materialize", "duckdb"]),
    help="Whose text it is, if its constructs do not show it: whether double quotes hold names.",
)
def translate(file: str, dialect: str | None) -> int:
    """Print every query of FILE in our own form, as statements of a catalog, or the construct that stops it.

    Such texts need no translation: loom.query takes them as they are. FILE may create streams (CREATE STREAM …);
    of others, columns are taken to be numbers. The exit code is 1 if a query cannot be read.
    """
    from windloom.language.translate import translate as translated

    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WindloomError(f"cannot read '{file}'", str(error), "give the path of a text file in UTF-8") from None
    code = 0
    for query in translated(text, file, dialect):
        if query.error is not None:
            code = 1
            lines = [f"{query.name} cannot be read", *str(query.error).split("\n")]
            click.echo("\n".join(f"-- {line}".rstrip() for line in lines) + "\n")
            continue
        body = "\n".join(f"  {line}" for line in query.text.split("\n"))
        click.echo(f"CREATE QUERY {query.name} AS\n{body};")
        columns = None if query.query is None else query.query.presentation.columns
        if columns is not None:
            click.echo(f"-- as it stands, it shows: {', '.join(column.name for column in columns)}")
        click.echo("")
    return code
