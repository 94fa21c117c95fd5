"""The sinks that a stream can be started with, by name: Windloom's own, and those of installed packages.

A package offers a sink by an entry point in the group `windloom.sinks`: its name is the name of the sink, its value a
class with the methods of `NamedSink`. A function of the user is a sink without a name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from itertools import chain, count
from pathlib import Path

from windloom.errors import WindloomError, near_names
from windloom.sinks.callback import CallbackSink
from windloom.sinks.sink import NamedSink, Sink, SinkPlace
from windloom.spark.api import DataFrame

GROUP = "windloom.sinks"
#: One line per sink. A module is imported only when its sink is asked for: some need packages that are extras.
SINKS: Mapping[str, str] = {
    "parquet": "windloom.sinks.parquet:ParquetSink",
    "memory": "windloom.sinks.memory:MemorySink",
    "current": "windloom.sinks.current:CurrentSink",
    "live": "windloom.sinks.live:LiveSink",
    "delta": "windloom.sinks.delta:DeltaSink",
    "postgres": "windloom.sinks.postgres:PostgresSink",
    "webhook": "windloom.sinks.webhook:WebhookSink",
}
#: Extras of Windloom, by the package that they install.
_EXTRAS = {"deltalake": "delta", "psycopg": "postgres"}


@dataclass(frozen=True, slots=True)
class ChosenSink:
    """A sink by name; `target` says where it writes, and `options` how."""

    name: str
    target: object = None
    options: Mapping[str, object] = field(default_factory=dict)


SinkChoice = str | ChosenSink | Callable[[DataFrame, int], object]
#: Makes a sink; called when the checkpoint is open.
SinkOpener = Callable[[SinkPlace], Sink]


def sink(name: str, target: object = None, **options: object) -> ChosenSink:
    """Return a sink with options, for `loom.start`: `sink("postgres", "postgresql:///metrics", schema="live")`.

    `target` is where the sink writes: a path, or an address.
    """
    return ChosenSink(name, target, options)


def sink_names() -> list[str]:
    """Return the names of all sinks, Windloom's own first."""
    return list(dict.fromkeys([*SINKS, *(entry_point.name for entry_point in entry_points(group=GROUP))]))


def find_sink(name: str) -> type[NamedSink]:
    """Return the class of a sink; its module is imported now."""
    if name in SINKS:
        entry_point = EntryPoint(name, SINKS[name], GROUP)
    else:
        installed = entry_points(group=GROUP, name=name)
        if not installed:
            hint = near_names(str(name), [*sink_names(), "a function"])
            raise WindloomError(f"unknown sink {name!r}", "it says where answers go", hint)
        entry_point = next(iter(installed))
    try:
        kind: type[NamedSink] = entry_point.load()
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        extra = _EXTRAS.get(package)
        raise WindloomError(
            f"the sink '{name}' needs a package that is not installed",
            f"'{package}' is missing" if isinstance(error, ModuleNotFoundError) else str(error),
            f"pip install 'windloom[{extra}]'" if extra else f"install '{package or name}'",
        ) from None
    except AttributeError as error:
        raise WindloomError(
            f"the sink '{name}' cannot be loaded",
            str(error),
            f"correct the entry point '{entry_point.value}' of its package",
        ) from None
    lacking = [member for member in ("target", "open", "write", "rows", "close") if not hasattr(kind, member)]
    if lacking:
        raise WindloomError(
            f"'{entry_point.value}' is not a sink",
            f"it has no {' and no '.join(f'`{member}`' for member in lacking)}",
            "write it as docs/sinks.md shows under 'A sink of your own'",
        )
    return kind


def choose_sinks(
    choice: SinkChoice | Sequence[SinkChoice], path: str | Path | None, checkpoint: str | Path | None
) -> dict[str, SinkOpener]:
    """Return the sinks that the user has chosen, each under its own name, checked before anything runs.

    `path` is the target of sinks that take a path and are not given one.
    """
    choices = [choice] if isinstance(choice, str | ChosenSink) or callable(choice) else list(choice or ())
    if not choices:
        raise WindloomError(
            "a stream needs a sink", "none is given", f"use one of: {', '.join(sink_names())}, a function"
        )
    openers: dict[str, SinkOpener] = {}
    is_used = False
    for one in choices:
        if callable(one):
            openers[_unused("function", openers)] = partial(CallbackSink, function=one)
            continue
        chosen = one if isinstance(one, ChosenSink) else ChosenSink(str(one))
        kind = find_sink(chosen.name)
        options = _options(chosen, kind)
        if path is not None and kind.target == "path" and "path" not in options:
            options["path"], is_used = path, True
        _check_target(chosen.name, kind, options, checkpoint)
        openers[_unused(chosen.name, openers)] = partial(kind.open, **options)
    if path is not None and not is_used:
        path_sinks = []
        for name in sink_names():
            try:
                takes_path = find_sink(name).target == "path"
            except WindloomError:  # the package of this sink is not installed
                continue
            path_sinks += [f"'{name}'"] if takes_path else []
        raise WindloomError(
            f"path '{path}' is not used",
            f"sinks that write to a path are {', '.join(path_sinks)}; the sink is {', '.join(openers)}",
            "leave it out, or use sink='parquet'",
        )
    return openers


def _options(chosen: ChosenSink, kind: type[NamedSink]) -> dict[str, object]:
    """Return the keyword arguments for `open`; raise for options that it does not have."""
    parameters = inspect.signature(kind.open).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    for name in chosen.options:
        if name not in known and not takes_any:
            detail = f"it is given as {chosen.options[name]!r}"
            raise WindloomError(f"the sink '{chosen.name}' has no option '{name}'", detail, near_names(name, known))
    if chosen.target is None:
        return dict(chosen.options)
    if kind.target is None:
        raise WindloomError(f"the sink '{chosen.name}' has no target", f"it is given {chosen.target!r}", "leave it out")
    if kind.target in chosen.options:
        raise WindloomError(
            f"the target of the sink '{chosen.name}' is given twice",
            f"as {chosen.target!r} and as {kind.target}={chosen.options[kind.target]!r}",
            "give it once",
        )
    return {**chosen.options, kind.target: chosen.target}


def _check_target(
    name: str, kind: type[NamedSink], options: Mapping[str, object], checkpoint: str | Path | None
) -> None:
    """Check that a sink that writes elsewhere has a checkpoint: without one, a restart would write its rows again."""
    if kind.target is None or (kind.target in options and checkpoint is not None):
        return
    if kind.target == "path":
        raise WindloomError(
            f"sink='{name}' needs a place of its own, and a checkpoint",
            f"path is {_shown(options.get('path'))}, checkpoint is {_shown(checkpoint)}",
            "loom.start(path='answers', checkpoint='checkpoint')",
        )
    raise WindloomError(
        f"sink='{name}' needs to know where to write, and a checkpoint",
        f"{kind.target} is {_shown(options.get(kind.target))}, checkpoint is {_shown(checkpoint)}",
        f"loom.start(sink('{name}', {kind.target}=…), checkpoint='checkpoint')",
    )


def _shown(value: object) -> str:
    return "not given" if value is None else f"'{value}'"


def _unused(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken yet: two sinks of one kind need different names."""
    names = chain([name], (f"{name} {number}" for number in count(2)))
    return next(unused for unused in names if unused not in taken)
