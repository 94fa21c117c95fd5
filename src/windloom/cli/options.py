"""What the commands share: options, a loom made of a catalog and paths, progress on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from windloom.errors import WindloomError, near_names

if TYPE_CHECKING:
    import pyarrow as pa

    from windloom.engine import Loom
    from windloom.spark.api import SparkSession

Command = Callable[..., Any]
Progress = Callable[[str], None]


class _NameOption(click.Option):
    """An option whose help lists the names there are, from the registries; they are loaded only to be shown."""

    def make_metavar(self, ctx: click.Context) -> str:
        from windloom.kernels import TECHNIQUES
        from windloom.optimizer import INTAKES, STRATEGIES
        from windloom.slicing import SLICINGS

        names = {
            "strategy": ["auto", *STRATEGIES],
            "slicing": [*SLICINGS],
            "technique": ["auto", *TECHNIQUES],
            "intake": [*INTAKES],
        }
        return "|".join(names[str(self.name)])


def plan_options(command: Command) -> Command:
    """How the plan is made."""
    for option in (
        click.option("--technique", cls=_NameOption, default="auto", help="Final aggregation."),
        click.option("--slicing", cls=_NameOption, default="pairs", help="Where streams are cut."),
        click.option("--strategy", cls=_NameOption, default="auto", help="What queries share."),
    ):
        command = option(command)
    return command


def intake_option(command: Command) -> Command:
    return click.option("--intake", cls=_NameOption, default="auto", help="How tuples become partials.")(command)


def check_plan_options(strategy: str, slicing: str, technique: str, intake: str = "auto") -> None:
    """Before Spark starts: a slip of the pen should not take ten seconds to be told."""
    from windloom.optimizer import PlanOptions

    PlanOptions(strategy, slicing, technique, intake)


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


def open_loom(
    catalog: str,
    streams: tuple[str, ...],
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    progress: Progress | None = None,
) -> Loom:
    """A loom of the catalog, with the data given; Spark starts only where it is needed."""
    from windloom.spark.sources.read import find_source

    loom = load_loom(catalog, cores, memory, conf, progress)
    paths = paths_of(loom, catalog, streams, "--stream")
    sources = {name: find_source(loom.streams[name], path) for name, path in paths.items()}
    for name, source in sources.items():
        loom.stream(name, source.read(loom.spark))
    return loom


def load_loom(
    catalog: str,
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    progress: Progress | None = None,
    *,
    with_queries: bool = True,
) -> Loom:
    """A loom of the catalog, without data; Spark starts only where it is needed, and `progress` is told then."""
    from windloom.engine import Loom
    from windloom.spark.session.local import local_session

    settings = name_value_pairs(conf, "--conf", "KEY=VALUE")

    def start() -> SparkSession:
        (progress or _say)("starting Spark")
        return local_session(cores=cores, memory=memory, conf=settings)

    loom = Loom(start)
    loom.load(catalog, queries=with_queries)
    return loom


def paths_of(loom: Loom, catalog: str, texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Paths by stream, from NAME=PATH; refuses streams that the catalog does not have."""
    paths = name_value_pairs(texts, option, "NAME=PATH")
    for name in paths:
        if name not in loom.streams:
            raise WindloomError(
                f"the catalog has no stream '{name}'",
                f"'{catalog}' creates {', '.join(loom.streams) or 'none'}",
                near_names(name, list(loom.streams)),
            )
    return paths


def name_value_pairs(texts: tuple[str, ...], option: str, form: str) -> dict[str, str]:
    """Options of the form NAME=VALUE, each name once."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            missing = "the name" if not name else "'=' and what follows it"
            raise WindloomError(f"cannot read {option} '{text}'", f"{missing} is missing", f"write {option} {form}")
        if name in found:
            given = f"as '{found[name]}' and as '{value}'"
            raise WindloomError(
                f"{option} '{name}' is given twice", given, "give it once; a directory holds many files"
            )
        found[name] = value
    return found


@contextmanager
def showing_progress(quiet: bool = False) -> Iterator[Progress]:
    """A spinner with the present stage on a terminal, a line a stage elsewhere; on stderr, never in the output."""
    console = Console(stderr=True)
    if quiet:
        yield lambda line: None
    elif console.is_terminal:
        with console.status("planning …") as status:
            yield lambda line: status.update(line + " …")
    else:
        yield _say


def _say(line: str) -> None:
    click.echo(f"… {line}", err=True)


def table_lines(rows: pa.Table) -> list[str]:
    """A few rows as aligned text, under the names of their columns."""
    lines = [rows.column_names, *([str(value) for value in row.values()] for row in rows.to_pylist())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  " + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
