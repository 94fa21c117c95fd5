"""`windloom warm`: compile the kernels and make Spark start faster, once for the packages that are installed."""

from __future__ import annotations

import click


@click.command(
    epilog="Example: windloom warm",
    short_help="Compile kernels and prepare Spark, once.",
)
def warm() -> None:
    """Compile the kernels, and keep an archive of Spark's classes from which its JVM starts in half the time.

    `make setup` does it. After an upgrade of Windloom, Spark or Java it can be repeated; what is done already is
    not done again. Without it all commands work, and the first ones take longer.
    """
    from windloom.engine.rehearsal import prepare

    prepare(lambda line: click.echo(f"… {line}"))
