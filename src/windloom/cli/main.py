"""`windloom run | show | explain | verify | …`: a user's error is one message and exit code 2, never a traceback."""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from windloom import __version__
from windloom.cli.ask import ask
from windloom.cli.explain import explain, verify
from windloom.cli.init import init
from windloom.cli.options import saying_warnings
from windloom.cli.plan import plan
from windloom.cli.run import run
from windloom.cli.serve import serve
from windloom.cli.show import show
from windloom.cli.state import state
from windloom.cli.translate import translate
from windloom.errors import WindloomError


@click.command(epilog="Example: windloom warm", short_help="Compile kernels and prepare Spark, once.")
def warm() -> None:
    """Compile the kernels, and make an archive of Spark's classes with which its JVM starts in half the time.

    `make setup` does this. Repeat it after an upgrade of Windloom, Spark or Java; what is done already is
    not done again. All commands work without it, but the first ones take longer.
    """
    import_module(_WARM_UP).prepare(lambda line: click.echo(f"… {line}"))


_WELCOME = """Windloom answers hundreds of sliding-window queries over a few streams from one shared plan, on Spark.

  windloom demo                                             a hundred queries at work, compared with Spark; a report
  windloom init FILE                                        a catalog from the columns of your own data
  windloom explain CATALOG                                  what will run, and why; needs no data
  windloom run CATALOG --stream NAME=PATH --out DIR         answers as Parquet; --follow for files as they appear
  windloom show DIR QUERY                                   the answers in a directory
  windloom verify CATALOG --stream NAME=PATH                every row compared with Spark's own window()
  windloom serve CATALOG --stream NAME=DIR --out DIR        the same for as long as wanted, with an API and a page

windloom --help lists all commands; each has its own --help with an example.
"""

#: Modules beside this package that hold a command of this name. They are named here and not found through entry points:
#: a checkout on the path has no metadata, and an editable install may have that of an older one.
_TOOLS = {"calibrate": "windloom_tools.calibration.command", "demo": "windloom_tools.demo.command"}
_WARM_UP = "windloom_tools.warm_up"  # what the command `warm` runs, too large to be loaded for a list of commands


class _Commands(UserDict[str, Any]):
    """Commands by name; one that is given by its module is imported when it is first used."""

    def __getitem__(self, name: str) -> Any:
        command = self.data[name]
        if isinstance(command, str):
            command = self.data[name] = getattr(import_module(command), name)
        return command


@click.group(
    commands=_Commands(_TOOLS),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Start with: windloom demo. Every command has its own --help with an example.",
)
@click.version_option(__version__, prog_name="windloom")
@click.pass_context
def cli(context: click.Context) -> None:
    """Hundreds of sliding-window queries over a few streams, woven into one shared plan and run on Spark.

    A CATALOG is a text file of statements:

    \b
      CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE) TIME ts DELAY 10 seconds;
      CREATE QUERY avg_1h AS
        SELECT symbol, avg(price) AS p FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol;
    """
    if context.invoked_subcommand is None:
        click.echo(_WELCOME, nl=False)


for command in (init, run, show, serve, ask, explain, plan, verify, translate, state, warm):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `windloom` command."""
    try:
        with saying_warnings():
            code = cli.main(arguments, standalone_mode=False)
    except WindloomError as error:
        _complain(str(error))
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        _complain("stopped")
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    first, *rest = text.split("\n")
    click.echo("\n".join([click.style("error: ", fg="red", bold=True) + first, *rest]), err=True)


if __name__ == "__main__":
    main()
