"""`windloom run`: answers every query of a catalog, once or, with --follow, as files appear until told to stop."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windloom.cli.options import (
    ADAPT_OPTIONS,
    add_relations,
    arrow_lines,
    combined,
    data_options,
    load_loom,
    open_loom,
    paths_of,
    plan_options,
    read_objective,
    run_options,
    saying_warnings,
    session_options,
    showing_progress,
    sink_choices,
    sink_options,
    take_plan_options,
    untimed_option,
)
from windloom.cli.rounds import RoundLine, view_of
from windloom.errors import WindloomError

if TYPE_CHECKING:
    from windloom.engine import Loom, Results
    from windloom.engine.handle import Handle


#: How often the main thread checks whether the stream has ended or should stop.
_LOOK_SECONDS = 0.2
#: Options whose values have another name than they.
_OPTIONS = {"sinks": "--sink", "sink_settings": "--sink-option"}

#: Given to `windloom run` and to `windloom serve`.
WITHOUT_OPTION = click.option(
    "--without",
    multiple=True,
    metavar="NAME",
    help="Go on without this query, which was added while the stream ran; may be repeated.",
)
BUDGET_OPTIONS = (
    click.option(
        "--schedule",
        default=None,
        metavar="NAME",
        help="With --budget: what is answered together (edf, aggressive, conservative, hybrid, late, late_pending).",
    ),
    click.option(
        "--budget",
        default=None,
        metavar="DURATION",
        help="How long a round may take; what does not fit is answered later, the least urgent last.",
    ),
)


#: Streams. None has a default value, so that a given one can be refused without --follow.
follow_options = combined(
    sink_options,
    click.option(
        "--handover", default=None, metavar="INSTANT", help="The instant up to which tuples come from the history."
    ),
    click.option("--history", multiple=True, metavar="NAME=PATH", help="Batch data to answer before the stream."),
    click.option(
        "--idle-after",
        default=None,
        metavar="DURATION",
        help="A stream that is silent for this long does not hold back queries that also read others.",
    ),
    *ADAPT_OPTIONS,
    click.option("--keep", default=None, metavar="DURATION", help="How much of the past to keep for later queries."),
    *BUDGET_OPTIONS,
    WITHOUT_OPTION,
    click.option(
        "--files",
        type=click.IntRange(min=1),
        default=None,
        metavar="N",
        help="Read at most this many new files per round.",
    ),
    click.option(
        "--finish", is_flag=True, help="With --trigger now: answer the windows that are still open at the end."
    ),
    click.option(
        "--trigger",
        default=None,
        metavar="DURATION|now",
        help="How often a round starts ('5 seconds'), or 'now': take all there is and end.",
    ),
    click.option(
        "--checkpoint",
        default=None,
        metavar="DIR",
        help="Where to keep what a restart needs; by default '_checkpoint' in the directory of --out.",
    ),
    click.option(
        "--follow",
        is_flag=True,
        help="Answer files as they appear, until Ctrl-C; the options up to --sink-patience need it.",
    ),
)


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """Options that were checked before Spark starts; `start` are arguments of `loom.start`."""

    streams: tuple[str, ...]
    relations: tuple[str, ...]
    history: tuple[str, ...]
    out: str | None
    checkpoint: str | None
    files: int | None
    start: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        streams: tuple[str, ...],
        relations: tuple[str, ...],
        out: str | None,
        placement: str | None,
        *,
        checkpoint: str | None,
        trigger: str | None,
        files: int | None,
        history: tuple[str, ...],
        handover: str | None,
        untimed: str | None,
        sinks: tuple[str, ...],
        sink_settings: tuple[str, ...],
        fixed_plan: bool,
        epsilon: float | None,
        objective: str | None,
        **others: Any,
    ) -> FollowOptions:
        from windloom.engine.options import StreamOptions, parse_instant

        if others["finish"] and (trigger or "").strip().lower() != "now":
            raise WindloomError(
                "--finish needs a stream that ends",
                "it answers the windows that are still open when all data have been read",
                "add --trigger now, or leave --finish out",
            )
        if checkpoint is None and out is not None:
            checkpoint = f"{out}/_checkpoint"
        chosen: dict[str, Any] = {"trigger": _trigger(trigger), "untimed": untimed or "skip", **others}
        chosen["placement"] = placement or "driver"
        chosen["adapt"] = not fixed_plan if epsilon is None else {"epsilon": epsilon}
        chosen["objective"] = read_objective(objective)
        StreamOptions.of(**chosen, snapshot_rounds=1)
        if handover is not None:
            parse_instant("--handover", handover)
        sink = sink_choices(sinks, sink_settings, out, checkpoint)
        start = {**chosen, "sink": sink, "checkpoint": checkpoint, "handover": handover}
        return cls(streams, relations, history, out, checkpoint, files, start)


def _trigger(text: str | None) -> dict[str, object] | None:
    from windloom.model.time import parse_duration

    if text is None:
        return None
    if text.strip().lower() == "now":
        return {"availableNow": True}
    try:
        parse_duration(text)
    except WindloomError as error:
        hint = "write a duration, such as '5 seconds', or now, which takes all there is and ends"
        raise WindloomError(f"cannot read --trigger '{text}'", error.message, hint) from None
    return {"processingTime": text}


def follow_streams(
    catalog: str,
    options: FollowOptions,
    plan: Mapping[str, Any],
    session: tuple[str, str | None, tuple[str, ...]],
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Run until the stream ends, fails or is told to stop (Ctrl-C, SIGTERM), and show every round."""
    from windloom.spark.sources.files import find_file_stream
    from windloom.spark.sources.read import find_source

    with showing_progress() as progress:
        loom = load_loom(catalog, *session, progress)
        places = paths_of(loom, catalog, options.streams, "--stream")
        before = paths_of(loom, catalog, options.history, "--history")
        file_streams = {name: find_file_stream(loom.streams[name], path) for name, path in places.items()}
        sources = {name: find_source(loom.streams[name], path) for name, path in before.items()}
        add_relations(loom, catalog, options.relations)
        spark = loom.spark
    # Only now: Spark's own handler, set when the session started, would cancel the jobs of the current round.
    with stop_signals() as stop:
        history = {name: source.read(spark) for name, source in sources.items()}
        for name, file_stream in file_streams.items():
            loom.stream(name, file_stream.read(spark, options.files))
        if dry_run:
            click.echo(loom.explain("json" if as_json else "text", **plan))
            return
        with view_of(as_json) as view, saying_warnings(view.say):
            handle = loom.start(**options.start, **plan, history=history or None, progress=view.show, waiting=view.wait)
            wait_for_end(handle, stop, view)
    _conclude(handle, view, options, was_stopped=stop.is_set(), as_json=as_json)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Give an event that Ctrl-C and SIGTERM set; a second signal ends the process at once, losing nothing."""
    stop = threading.Event()

    def on_signal(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {signals: signal.signal(signals, on_signal) for signals in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for signals, handler in before.items():
            signal.signal(signals, handler)


def wait_for_end(handle: Handle, stop: threading.Event, view: RoundLine) -> None:
    """Wait until the stream ends or is asked to."""
    while not handle.await_termination(_LOOK_SECONDS):
        if stop.is_set() or not view.is_read:
            break
    if handle.is_active:
        if stop.is_set():
            view.say("stopping after the current round; press Ctrl-C again to stop at once")
        # Not in this thread: a second Ctrl-C would interrupt a call to the JVM, which complains at length.
        threading.Thread(target=handle.stop, name="windloom-stop", daemon=True).start()
    handle.await_termination()


def _conclude(handle: Handle, view: RoundLine, options: FollowOptions, *, was_stopped: bool, as_json: bool) -> None:
    """Print totals, where the answers are, and how to continue; on stderr if stdout has JSON lines."""
    lines = [f"{'stopped' if was_stopped else 'ended'}: {view.totals}"]
    if options.out is not None:
        lines.append(f"answers are in {options.out}: windloom show {options.out}")
    elif "live" in options.start["sink"] and not as_json:
        lines += _latest(handle)
    if options.start["finish"] and not was_stopped:
        lines.append("every window is answered; later tuples would be late")
    elif options.checkpoint is not None:
        lines.append(f"the checkpoint is {options.checkpoint}: the same command continues from there")
    else:
        lines.append("nothing is kept; give --out or --checkpoint to be able to continue later")
    click.echo("\n".join(lines), err=as_json)


def _latest(handle: Handle) -> list[str]:
    """Return the latest answers of a few queries."""
    lines = []
    for name in list(handle.queries)[:3]:
        rows = handle.arrow(name).slice(0, 5)
        lines += ["", f"{name}, the latest of each group: {' '.join(handle.queries[name].split())}", *arrow_lines(rows)]
    return [*lines, ""]


@click.command(
    epilog="Example: windloom run trades.cql --stream trades=trades.parquet --out answers",
    short_help="Answer every query of a catalog.",
)
@click.argument("catalog", type=click.Path())
@data_options
@click.option("--out", metavar="DIR", default=None, help="Write answers as Parquet into this new directory.")
@click.option("--placement", default=None, metavar="auto|driver|executors", help="Where the final step runs.")
@untimed_option
@follow_options
@plan_options
@run_options
@session_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print the figures of the run (or the plan of a dry run) as JSON."
)
@click.option("--dry-run", is_flag=True, help="Check the catalog and the columns, print the plan, run nothing.")
def run(
    catalog: str,
    streams: tuple[str, ...],
    relations: tuple[str, ...],
    out: str | None,
    placement: str | None,
    untimed: str | None,
    follow: bool,
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    as_json: bool,
    dry_run: bool,
    **following: Any,
) -> None:
    """Answer every query of CATALOG over the given data, from one shared plan.

    With --out, answers go to Parquet: one table per set of output columns, whose rows carry the name of their query;
    `windloom show DIR` prints them. Without it, a summary and a few rows are shown.

    With --follow, PATH is a directory, and windows are answered round by round as files appear in it, until Ctrl-C.
    The same command continues where it stopped. docs/streaming.md explains late tuples, restarts and the checkpoint.
    """
    from windloom.sinks.parquet import check_empty
    from windloom.spark.placement import check_placement
    from windloom.spark.untimed import check_untimed

    plan = take_plan_options(following)
    if follow:
        options = FollowOptions.of(streams, relations, out, placement, untimed=untimed, **following)
        follow_streams(catalog, options, plan, (cores, memory, conf), as_json=as_json, dry_run=dry_run)
        return
    if given := next((name for name, value in following.items() if value), None):
        option = _OPTIONS.get(given, "--" + given.replace("_", "-"))
        raise WindloomError(
            f"{option} is for streams",
            "without --follow the given data is read once, and all windows are answered",
            f"add --follow, or leave {option} out",
        )
    placement = placement or "auto"
    untimed = untimed or "skip"
    check_placement(placement)
    check_untimed(untimed)
    if out is not None:
        check_empty(Path(out))
    with showing_progress() as progress:
        loom = open_loom(catalog, streams, relations, cores, memory, conf, progress)
        if dry_run:
            click.echo(loom.explain("json" if as_json else "text", **plan))
            return
        results = loom.run(**plan, placement=placement, out=out, untimed=untimed, progress=progress)
    if as_json:
        click.echo(json.dumps({**results.stats.as_dict(), "out": out}))
        return
    shown = [f"written to {out}: windloom show {out}"] if out is not None else _some_rows(loom, results)
    stats = results.stats
    click.echo(
        f"{stats.queries:,} {'query' if stats.queries == 1 else 'queries'},"
        f" {stats.trees} {'tree' if stats.trees == 1 else 'trees'} ({stats.strategy}):"
        f" {stats.events:,} events → {stats.partials:,} partials → {stats.results:,} rows"
        f" in {stats.total_seconds:.2f} s ({stats.placement})"
    )
    click.echo("\n".join(shown))


def _some_rows(loom: Loom, results: Results) -> list[str]:
    from windloom.spark.errors import as_windloom_errors

    lines = []
    for name in list(results)[:3]:
        lines += ["", f"{name}: {' '.join(loom.queries[name].text.split())}"]
        with as_windloom_errors(f"query '{name}'"):
            frame = results[name]
            is_sorted = loom.queries[name].presentation.order or "window_start" not in frame.columns
            rows = (frame if is_sorted else frame.orderBy("window_start")).limit(5).toArrow()
        lines += arrow_lines(rows)
    return [*lines, "", "give --out DIR to keep all answers"]
