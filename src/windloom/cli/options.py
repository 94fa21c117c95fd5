"""Parts that the commands share: options, a loom made from a catalog and paths, progress on the terminal."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windloom.errors import WindloomError, WindloomWarning, near_names

if TYPE_CHECKING:
    import pyarrow as pa

    from windloom.engine import Loom
    from windloom.sinks.registry import SinkChoice
    from windloom.spark.api import SparkSession


Command = Callable[..., Any]
Progress = Callable[[str], None]


def combined(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator for all these options; help lists them from the last to the first."""
    return lambda command: reduce(lambda decorated, option: option(decorated), options, command)


class _NameOption(click.Option):
    """An option whose help lists the known names; the registries that hold them are loaded only for that."""

    def make_metavar(self, ctx: click.Context) -> str:
        from windloom.kernels.folds.registry import FOLDS
        from windloom.kernels.techniques.registry import TECHNIQUES
        from windloom.optimizer.intake.choose import INTAKES
        from windloom.optimizer.joins.plan import JOIN_PLANS
        from windloom.optimizer.sharing.registry import STRATEGIES
        from windloom.slicing.slicings import SLICINGS

        names = {
            "strategy": ["auto", *STRATEGIES],
            "slicing": [*SLICINGS],
            "technique": ["auto", *TECHNIQUES],
            "intake": [*INTAKES],
            "joins": [*JOIN_PLANS],
            "fold": ["auto", *FOLDS],
        }
        return "|".join(names[str(self.name)])


#: How the plan is made.
plan_options = combined(
    click.option("--technique", cls=_NameOption, default="auto", help="How windows are computed from slices."),
    click.option("--slicing", cls=_NameOption, default="pairs", help="Where streams are cut."),
    click.option("--strategy", cls=_NameOption, default="auto", help="Which queries share slices."),
)


#: Further options of plans that run.
run_options = combined(
    click.option("--fold", cls=_NameOption, default="auto", help="How the sides of joins are multiplied."),
    click.option(
        "--joins", cls=_NameOption, default="auto", help="Which sides of joins are aggregated early, a bit each."
    ),
    click.option("--intake", cls=_NameOption, default="auto", help="How tuples become partials."),
)


untimed_option = click.option(
    "--untimed",
    default=None,
    metavar="skip|stop",
    help="What rows without a usable time do: skip (they are in no window, and counted) or stop.",
)
objective_option = click.option(
    "--objective",
    default=None,
    metavar="latency|memory|latency=W,memory=W",
    help="What plans are chosen for, or weights of both; latency by default.",
)
#: How plans of a stream follow its data.
ADAPT_OPTIONS = (
    objective_option,
    click.option("--fixed-plan", is_flag=True, help="Keep the first plan; by default plans follow the data."),
    click.option(
        "--epsilon",
        type=float,
        default=None,
        metavar="E",
        help="Keep the first plan until queries that come have made it this share more costly than expected. [0.1]",
    ),
)


def read_objective(text: str | None) -> str | dict[str, float]:
    """Return latency or memory, or weights of both: latency=0.4,memory=0.6."""
    if text is None or "=" not in text:
        return text or "latency"
    weights: dict[str, float] = {}
    for item in text.split(","):
        name, _, weight = item.partition("=")
        try:
            weights[name.strip()] = float(weight)
        except ValueError:
            raise WindloomError(
                f"cannot read --objective '{text}'",
                f"the weight of '{name.strip()}' is '{weight}'",
                "write --objective latency=0.4,memory=0.6",
            ) from None
    return weights


def take_plan_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of the plan out of those of a command; return them after a check, before Spark starts."""
    from windloom.optimizer.stages import PlanOptions

    plan = {name: options.pop(name) for name in ("strategy", "slicing", "technique", "intake", "joins", "fold")}
    PlanOptions(**plan)
    return plan


#: The Spark session.
session_options = combined(
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; may be repeated."),
    click.option("--memory", default=None, metavar="SIZE", help="Heap size of the local Spark, such as 4g."),
    click.option("--cores", default="*", metavar="N", help="Cores that the local Spark uses; all by default."),
)


#: The data of streams and relations.
data_options = combined(
    click.option(
        "--relation",
        "relations",
        multiple=True,
        metavar="NAME=PATH",
        help="The data of a relation, in files as for --stream; a stream reads them again when they have changed.",
    ),
    click.option(
        "--stream",
        "streams",
        multiple=True,
        metavar="NAME=PATH",
        help="The data of a stream: a file or directory of Parquet, CSV, JSON lines or ORC; may be repeated.",
    ),
)


def open_loom(
    catalog: str,
    streams: tuple[str, ...],
    relations: tuple[str, ...],
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    progress: Progress | None = None,
) -> Loom:
    """Return a loom with the catalog and the given data; Spark starts only if it is needed."""
    from windloom.spark.sources.read import find_source

    loom = load_loom(catalog, cores, memory, conf, progress)
    paths = paths_of(loom, catalog, streams, "--stream")
    sources = {name: find_source(loom.streams[name], path) for name, path in paths.items()}
    add_relations(loom, catalog, relations)
    for name, source in sources.items():
        loom.stream(name, source.read(loom.spark))
    return loom


def add_relations(loom: Loom, catalog: str, texts: tuple[str, ...]) -> None:
    """Give relations their data, from NAME=PATH; what is wrong with a path is told before Spark starts."""
    from windloom.spark.sources.read import RelationFiles, find_source

    paths = paths_of(loom, catalog, texts, "--relation")
    for name, path in paths.items():
        find_source(loom.relations[name], path)
    for name, path in paths.items():
        loom.relation(name, RelationFiles(loom.spark, loom.relations[name], path))


def load_loom(
    catalog: str,
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    progress: Progress | None = None,
    *,
    with_queries: bool = True,
) -> Loom:
    """Return a loom with the catalog, without data; Spark starts only if it is needed, and `progress` is told then."""
    from windloom.engine import Loom
    from windloom.spark.session import local_session

    settings = name_value_pairs(conf, "--conf", "KEY=VALUE")

    def start() -> SparkSession:
        (progress or _say)("starting Spark")
        return local_session(cores=cores, memory=memory, conf=settings)

    loom = Loom(start)
    loom.load(catalog, queries=with_queries)
    return loom


def paths_of(loom: Loom, catalog: str, texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Return paths by stream or relation, from NAME=PATH; refuse those that the catalog does not have."""
    paths = name_value_pairs(texts, option, "NAME=PATH")
    what, other = ("relation", "stream") if option == "--relation" else ("stream", "relation")
    known, others = (list(loom.streams), list(loom.relations))[:: -1 if what == "relation" else 1]
    for name in paths:
        if name not in known:
            is_other = name in others
            example = "(id BIGINT, …)" if what == "relation" else "(ts TIMESTAMP, …) TIME ts"
            declare = f"declare it in the catalog: CREATE {what.upper()} {name} {example};"
            raise WindloomError(
                f"the catalog has no {what} '{name}'",
                f"'{catalog}' creates {', '.join(known) or f'no {what}'}"
                + (f", and a {other} '{name}'" if is_other else ""),
                f"write --{other} {name}={paths[name]}" if is_other else near_names(name, known) if known else declare,
            )
    return paths


def name_value_pairs(texts: tuple[str, ...], option: str, form: str) -> dict[str, str]:
    """Return options of the form NAME=VALUE, each name once."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            missing = "the name" if not name else "'=' and what follows it"
            raise WindloomError(f"cannot read {option} '{text}'", f"{missing} is missing", f"write {option} {form}")
        if name in pairs:
            both_values = f"as '{pairs[name]}' and as '{value}'"
            raise WindloomError(
                f"{option} '{name}' is given twice", both_values, "give it once; a directory holds many files"
            )
        pairs[name] = value
    return pairs


@contextmanager
def showing_progress(quiet: bool = False) -> Iterator[Progress]:
    """Show the current stage on stderr: with a spinner on a terminal, otherwise with one line per stage."""
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


#: Sinks that --sink is not for, because they write to no place.
_WITHOUT_TARGET = ("memory", "live")


class _SinkOption(click.Option):
    """Its help lists the sinks that have a target, those of installed packages included."""

    def make_metavar(self, ctx: click.Context) -> str:
        from windloom.sinks.registry import sink_names

        return f"{'|'.join(name for name in sink_names() if name not in _WITHOUT_TARGET)}=TARGET"


@contextmanager
def saying_warnings(say: Progress = _say) -> Iterator[None]:
    """Show warnings as lines for people."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, WindloomWarning):
                say(f"warning: {message}")
            else:
                shown(message, category, *where, **more)

        warnings.simplefilter("always", WindloomWarning)
        warnings.showwarning = show
        yield


#: Where the answers of a stream go besides --out, and how long a round waits for a sink.
sink_options = combined(
    click.option(
        "--sink-patience",
        default=None,
        metavar="DURATION",
        help="How long a round waits for a sink that is down before the stream stops; 10 minutes by default.",
    ),
    click.option(
        "--sink-option",
        "sink_settings",
        multiple=True,
        metavar="NAME.KEY=VALUE",
        help="An option of a sink, such as postgres.schema=live; may be repeated.",
    ),
    click.option(
        "--sink",
        "sinks",
        cls=_SinkOption,
        multiple=True,
        help="Where answers go besides --out: a directory, an address; may be repeated.",
    ),
)


def sink_choices(
    sinks: tuple[str, ...], settings: tuple[str, ...], out: str | None, checkpoint: str | None
) -> list[SinkChoice]:
    """Return what `loom.start` is given; refuse what cannot be before Spark starts."""
    from windloom.sinks.registry import choose_sinks, find_sink, sink, sink_names

    targets: dict[str, str | None] = {}
    for text in sinks:
        name, _, target = text.partition("=")
        if name in targets:
            raise WindloomError(f"--sink '{name}' is given twice", f"the second is '{text}'", "give it once")
        if name not in sink_names():  # of the sinks in Python, a command cannot be given a function
            hint = near_names(name, [sink_name for sink_name in sink_names() if sink_name not in _WITHOUT_TARGET])
            raise WindloomError(f"unknown sink '{name}'", f"it is given as --sink '{text}'", hint)
        targets[name] = target or None
    options: dict[str, dict[str, object]] = {name: {} for name in targets}
    for text in settings:
        name_and_key, equals, value = text.partition("=")
        name, _, key = name_and_key.partition(".")
        if not (name and key and equals):
            form = "write --sink-option NAME.KEY=VALUE, such as postgres.schema=live"
            raise WindloomError(f"cannot read --sink-option '{text}'", "it names no sink, no option or no value", form)
        if name not in options:
            raise WindloomError(
                f"--sink-option '{text}' is for a sink that is not given",
                f"--sink gives {', '.join(options)}" if options else "no --sink is given",
                f"add --sink {name}=TARGET, or leave it out",
            )
        options[name][key] = value
    for name, where in targets.items():
        _check_target(name, find_sink(name).target, where, options[name], checkpoint)
    first: list[SinkChoice] = [sink("parquet", out)] if out is not None else []
    chosen = [*first, *(sink(name, where, **options[name]) for name, where in targets.items())]
    chosen = chosen or ["live"]
    choose_sinks(chosen, None, checkpoint)
    return chosen


def _check_target(
    name: str, wanted: str | None, target: str | None, options: Mapping[str, object], checkpoint: str | None
) -> None:
    if wanted is not None and target is None and wanted not in options:
        raise WindloomError(
            f"--sink '{name}' does not say where to write",
            f"its target, the {wanted}, is missing",
            f"write --sink {name}={wanted.upper()}",
        )
    if wanted is not None and checkpoint is None:
        raise WindloomError(
            f"--sink '{name}' needs a checkpoint",
            "without one, a restart would write all rows once more",
            "give --checkpoint DIR, or --out DIR",
        )


#: Wider than any table: the terminal wraps a long line, and `grep` finds it whole.
_WIDTH = 10_000


def table_lines(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = (), indent: str = ""
) -> list[str]:
    """Return the lines of a table; the columns in `right` are aligned right. Cells are text, never markup.

    >>> table_lines(["tree", "cost"], [["0", "12"], ["1", "3"]], right=["cost"])
    ['tree  cost', '0       12', '1        3']
    """
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in headers:
        table.add_column(Text(name), justify="right" if name in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(width=_WIDTH, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return [indent + line.rstrip() for line in captured.get().splitlines()]


def arrow_lines(rows: pa.Table) -> list[str]:
    """Return a few rows of answers, under the names of their columns."""
    cells = ([str(value) for value in row.values()] for row in rows.to_pylist())
    return table_lines(rows.column_names, cells, indent="  ")
