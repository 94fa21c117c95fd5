"""`windloom run --follow`: answer windows as files appear in directories, until it is told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from windloom.cli.options import load_loom, paths_of, showing_progress, table_lines
from windloom.cli.rounds import RoundView, view_of
from windloom.errors import WindloomError

if TYPE_CHECKING:
    from windloom.engine.streaming import Handle

#: How often the main thread looks whether the stream has ended or is to stop.
_LOOK_SECONDS = 0.2


def follow_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of streams; none has a value unless it is given, so that it can be refused without --follow."""
    for option in (
        click.option(
            "--handover", default=None, metavar="INSTANT", help="History counts before it, streams from it on."
        ),
        click.option("--history", multiple=True, metavar="NAME=PATH", help="Data to answer before the stream."),
        click.option("--untimed", default=None, metavar="stop|skip", help="What tuples without a time do."),
        click.option(
            "--idle-after",
            default=None,
            metavar="DURATION",
            help="A stream silent for so long does not hold back queries that read others too.",
        ),
        click.option("--keep", default=None, metavar="DURATION", help="History kept for queries to come."),
        click.option("--files", type=click.IntRange(min=1), default=None, metavar="N", help="Most new files a round."),
        click.option("--finish", is_flag=True, help="With --trigger now: answer the windows still open at the end."),
        click.option(
            "--trigger",
            default=None,
            metavar="DURATION|now",
            help="A round this often ('5 seconds'), or all there is now and no more; default: as data come.",
        ),
        click.option(
            "--checkpoint",
            default=None,
            metavar="DIR",
            help="What a restart needs; by default '_checkpoint' in the directory of --out.",
        ),
        click.option(
            "--follow", is_flag=True, help="Go on: answer files as they appear. For the options up to --handover."
        ),
    ):
        command = option(command)
    return command


def refuse_without_follow(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value:
            option = "--" + name.replace("_", "-")
            raise WindloomError(
                f"{option} is for streams",
                "without --follow the data given are read once, and all windows answered",
                f"add --follow, or leave {option} out",
            )


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """Checked before Spark starts; `start` are arguments of `loom.start`."""

    streams: tuple[str, ...]
    history: tuple[str, ...]
    out: str | None
    checkpoint: str | None
    files: int | None
    start: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        streams: tuple[str, ...],
        out: str | None,
        placement: str | None,
        *,
        checkpoint: str | None,
        trigger: str | None,
        files: int | None,
        history: tuple[str, ...],
        handover: str | None,
        untimed: str | None,
        **others: Any,
    ) -> FollowOptions:
        from windloom.engine.streaming.options import StreamOptions, parse_instant

        if others["finish"] and (trigger or "").strip().lower() != "now":
            raise WindloomError(
                "--finish needs a stream that ends",
                "it answers the windows that are still open when all data have been read",
                "add --trigger now, or leave --finish out",
            )
        if checkpoint is None and out is not None:
            checkpoint = f"{out}/_checkpoint"
        chosen: dict[str, Any] = {"trigger": _trigger(trigger), "untimed": untimed or "stop", **others}
        chosen["placement"] = placement or "driver"
        StreamOptions.of(**chosen, snapshot_rounds=1)
        if handover is not None:
            parse_instant("--handover", handover)
        sink = {"sink": "live"} if out is None else {"sink": "parquet", "path": out}
        start = {**chosen, **sink, "checkpoint": checkpoint, "handover": handover}
        return cls(streams, history, out, checkpoint, files, start)


def _trigger(text: str | None) -> dict[str, object] | None:
    if text is None:
        return None
    return {"availableNow": True} if text.strip().lower() == "now" else {"processingTime": text}


def follow_streams(
    catalog: str,
    options: FollowOptions,
    plan: Mapping[str, Any],
    session: tuple[str, str | None, tuple[str, ...]],
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Run until the stream ends, fails or is told to stop (Ctrl-C, SIGTERM), showing every round."""
    from windloom.spark.sources.file_streams import find_file_stream
    from windloom.spark.sources.read import find_source

    with showing_progress() as progress:
        loom = load_loom(catalog, *session, progress)
        places = paths_of(loom, catalog, options.streams, "--stream")
        before = paths_of(loom, catalog, options.history, "--history")
        found = {name: find_file_stream(loom.streams[name], path) for name, path in places.items()}
        sources = {name: find_source(loom.streams[name], path) for name, path in before.items()}
        spark = loom.spark
    # From here on: Spark's own handler, set when the session started, cancels the jobs of the round that runs.
    with stop_signals() as asked:
        history = {name: source.read(spark) for name, source in sources.items()}
        for name, one in found.items():
            loom.stream(name, one.read(spark, options.files))
        if dry_run:
            click.echo(loom.explain("json" if as_json else "text", **plan))
            return
        with view_of(as_json) as view:
            handle = loom.start(**options.start, **plan, history=history or None, progress=view.show)
            wait_for_end(handle, asked, view)
    _conclude(handle, view, options, was_asked=asked.is_set(), as_json=as_json)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; a second one ends at once, which loses nothing either."""
    asked = threading.Event()

    def ask(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {one: signal.signal(one, ask) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def wait_for_end(handle: Handle, asked: threading.Event, view: RoundView) -> None:
    """Until the end, or until someone asks for it."""
    while not handle.await_termination(_LOOK_SECONDS):
        if asked.is_set() or not view.is_read:
            break
    if handle.is_active:
        if asked.is_set():
            view.say("stopping after the round that runs; once more to stop at once")
        # Not here: a second Ctrl-C would come amid a call to the JVM, which complains at length.
        threading.Thread(target=handle.stop, name="windloom-stop", daemon=True).start()
    handle.await_termination()


def _conclude(handle: Handle, view: RoundView, options: FollowOptions, *, was_asked: bool, as_json: bool) -> None:
    """Totals, where answers are, and how to go on; on stderr where stdout has JSON lines."""
    lines = [f"{'stopped' if was_asked else 'ended'}: {view.totals}"]
    if options.out is not None:
        lines.append(f"answers are in {options.out}; manifest.json lists its tables")
    elif not as_json:
        lines += _latest(handle)
    if options.start["finish"] and not was_asked:
        lines.append("every window is answered; tuples that come later would be late")
    elif options.checkpoint is not None:
        lines.append(f"the checkpoint is {options.checkpoint}: the same command goes on from there")
    else:
        lines.append("nothing is kept; give --out, or --checkpoint, to go on another time")
    click.echo("\n".join(lines), err=as_json)


def _latest(handle: Handle) -> list[str]:
    """The latest answers of a few queries."""
    lines = []
    for name in list(handle.queries)[:3]:
        rows = handle.arrow(name).slice(0, 5)
        lines += ["", f"{name}, the latest of each group: {' '.join(handle.queries[name].split())}", *table_lines(rows)]
    return [*lines, ""]
