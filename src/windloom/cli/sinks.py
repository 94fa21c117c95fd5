"""The options that say where answers of a stream go besides --out, and how long a round waits for a sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from windloom.errors import WindloomError, near_names

if TYPE_CHECKING:
    from windloom.engine.sinks.registry import SinkChoice


class _SinkOption(click.Option):
    """Its help lists the sinks that have a target, those of installed packages included."""

    def make_metavar(self, ctx: click.Context) -> str:
        from windloom.engine.sinks.registry import sink_names

        return f"{'|'.join(_with_target(sink_names()))}=TARGET"


def sink_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
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
    ):
        command = option(command)
    return command


def _with_target(names: list[str]) -> list[str]:
    """Return the sinks that --sink is for: those that write to a place."""
    return [name for name in names if name not in ("memory", "live")]


def sink_choices(
    sinks: tuple[str, ...], settings: tuple[str, ...], out: str | None, checkpoint: str | None
) -> list[SinkChoice]:
    """Return what `loom.start` is given; refuse what cannot be before Spark starts."""
    from windloom.engine.sinks.registry import choose_sinks, find_sink, sink, sink_names

    targets: dict[str, str | None] = {}
    for text in sinks:
        name, _, target = text.partition("=")
        if name in targets:
            raise WindloomError(f"--sink '{name}' is given twice", f"the second is '{text}'", "give it once")
        if name not in sink_names():  # of the sinks in Python, a command cannot be given a function
            hint = near_names(name, _with_target(sink_names()))
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
