"""`windloom warm`: compiles the kernels and makes Spark start faster, once for the installed packages."""

from __future__ import annotations

import click


@click.command(
    epilog="Example: windloom warm",
    short_help="Compile kernels and prepare Spark, once.",
)
def warm() -> None:
    """Compile the kernels, and make an archive of Spark's classes with which its JVM starts in half the time.

    `make setup` does this. Repeat it after an upgrade of Windloom, Spark or Java; what is done already is
    not done again. All commands work without it, but the first ones take longer.
    """
    from windloom.engine.rehearsal import prepare

    prepare(lambda line: click.echo(f"… {line}"))
