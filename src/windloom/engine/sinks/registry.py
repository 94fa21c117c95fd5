"""The sinks that a stream can be started with, by name; a function of the user is one without a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from windloom.engine.sinks.callback import CallbackSink
from windloom.engine.sinks.live import LiveSink
from windloom.engine.sinks.memory import MemorySink
from windloom.engine.sinks.parquet import ParquetSink
from windloom.engine.sinks.sink import NamedSink, Sink, SinkPlace
from windloom.errors import WindloomError, near_names
from windloom.spark.api import DataFrame

#: One line per sink.
SINKS: Mapping[str, type[NamedSink]] = {
    "parquet": ParquetSink,
    "memory": MemorySink,
    "live": LiveSink,
}

SinkChoice = str | Callable[[DataFrame, int], object]


def choose_sinks(
    sink: SinkChoice | Sequence[SinkChoice], path: str | Path | None, checkpoint: str | Path | None
) -> list[SinkChoice]:
    """What the user has chosen, checked before anything runs."""
    choices = [sink] if isinstance(sink, str) or callable(sink) else list(sink)
    for one in choices:
        if not callable(one) and one not in SINKS:
            raise WindloomError(
                f"unknown sink {one!r}", "it says where answers go", near_names(str(one), [*SINKS, "a function"])
            )
    if not choices:
        raise WindloomError("a stream needs a sink", "none is given", f"use one of: {', '.join(SINKS)}, a function")
    placed = [one for one in choices if isinstance(one, str) and SINKS[one].takes_path]
    if placed and (path is None or checkpoint is None):
        raise WindloomError(
            f"sink='{placed[0]}' needs a place of its own, and a checkpoint",
            f"path is {path!r}, checkpoint is {checkpoint!r}",
            "loom.start(path='answers', checkpoint='checkpoint')",
        )
    if path is not None and not placed:
        takers = [repr(name) for name, kind in SINKS.items() if kind.takes_path]
        raise WindloomError(
            f"path '{path}' is not used",
            f"sinks that write to a path are {', '.join(takers)}; the sink is {', '.join(map(str, choices))}",
            f"leave it out, or use sink={takers[0]}",
        )
    return choices


def open_sink(choice: SinkChoice, place: SinkPlace) -> Sink:
    return SINKS[choice].open(place) if isinstance(choice, str) else CallbackSink(place.spark, choice)
