"""What the commands share: options, a loom made of a catalog and paths, progress on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from windloom.errors import WindloomError, near_names
from windloom.kernels import TECHNIQUES
from windloom.optimizer import STRATEGIES
from windloom.slicing import SLICINGS

if TYPE_CHECKING:
    from windloom.engine import Loom

Command = Callable[..., Any]
Progress = Callable[[str], None]


def plan_options(command: Command) -> Command:
    """How the plan is made."""
    for option in (
        click.option("--technique", default="auto", metavar="|".join(["auto", *TECHNIQUES]), help="Final aggregation."),
        click.option("--slicing", default="pairs", metavar="|".join(SLICINGS), help="Where streams are cut."),
        click.option("--strategy", default="weave_share", metavar="|".join(STRATEGIES), help="What queries share."),
    ):
        command = option(command)
    return command


def session_options(command: Command) -> Command:
    """What runs it."""
    for option in (
        click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; may be repeated."),
        click.option("--memory", default=None, metavar="SIZE", help="Heap of the local Spark, such as 4g."),
        click.option("--cores", default="*", metavar="N", help="Cores of the local Spark; all by default."),
    ):
        command = option(command)
    return command


def stream_option(command: Command) -> Command:
    return click.option(
        "--stream",
        "streams",
        multiple=True,
        metavar="NAME=PATH",
        help="Data of a stream of the catalog: a file or directory of Parquet, CSV, JSON lines or ORC.",
    )(command)


def open_loom(catalog: str, streams: tuple[str, ...], cores: str, memory: str | None, conf: tuple[str, ...]) -> Loom:
    """A loom of the catalog, with the data given; Spark starts only where it is needed."""
    from windloom.engine import Loom
    from windloom.spark.session import local_session
    from windloom.spark.sources import read_source

    paths = dict(_split(one, "--stream", "NAME=PATH") for one in streams)
    settings = dict(_split(one, "--conf", "KEY=VALUE") for one in conf)
    loom = Loom(lambda: local_session(cores=cores, memory=memory, conf=settings))
    loom.load(catalog)
    for name in paths:
        if name not in loom.streams:
            raise WindloomError(f"the catalog has no stream '{name}'", hint=near_names(name, list(loom.streams)))
    for name, path in paths.items():
        loom.stream(name, read_source(loom.spark, loom.streams[name], path))
    return loom


def _split(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise WindloomError(f"cannot read {option} '{text}'", hint=f"write {option} {form}")
    return name, value


@contextmanager
def showing_progress(quiet: bool = False) -> Iterator[Progress]:
    """A spinner with the present stage on a terminal, a line a stage elsewhere; on stderr, never in the output."""
    console = Console(stderr=True)
    if quiet:
        yield lambda line: None
    elif console.is_terminal:
        with console.status("starting Spark …") as status:
            yield lambda line: status.update(line + " …")
    else:
        yield lambda line: click.echo(f"… {line}", err=True)
