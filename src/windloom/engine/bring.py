"""DataFrames as queries: their leaves become streams, which the same leaves share, and their plans become text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from windloom.model.stream import Stream
from windloom.spark.api import DataFrame
from windloom.spark.plans.written import WrittenQuery, WrittenText, unique_names

#: The name of a time that is computed from other columns.
_TIME = "event_time"


@dataclass(frozen=True, slots=True)
class BroughtStream:
    """A stream over the leaf of a DataFrame.

    `time_sql` is the time as SQL over the leaf, and `delay` what withWatermark says. If the stream is not registered
    yet, `frame` is its data.
    """

    name: str
    time: str
    time_sql: str
    delay: timedelta | None
    frame: DataFrame | None


@dataclass
class LeafStreams:
    """The streams of a loom by the leaves that they read, to find the stream of another DataFrame."""

    _times: dict[str, str] = field(default_factory=dict)  # of streams with a computed time: its SQL
    _leaves: dict[str, DataFrame] = field(default_factory=dict)  # what these read, without that time

    def stream_of(
        self,
        written: WrittenQuery | WrittenText,
        streams: Mapping[str, Stream],
        frames: Mapping[str, DataFrame],
        taken: list[str],
    ) -> BroughtStream:
        """Return the stream that a query reads: a registered one over the same leaf, or a new one."""
        delay = None if written.delay_ticks is None else timedelta(microseconds=written.delay_ticks)
        for name, frame in frames.items():
            stream = streams[name]
            if written.delay_ticks not in (None, stream.delay_ticks) or frame.isStreaming != written.is_streaming:
                continue
            computed = self._times.get(name)
            has_time = computed == written.window.time if computed else stream.time == written.window.column
            if has_time and written.leaf.reads_same(self._leaves.get(name, frame)):
                return BroughtStream(name, stream.time, written.window.time, delay, None)
        label = re.sub(r"\W+", "_", written.leaf.label).strip("_") or "events"
        (name,) = unique_names([label if not label[0].isdigit() else f"events_{label}"], taken)
        leaf = written.leaf.frame
        if written.window.column is not None:
            return BroughtStream(name, written.window.column, written.window.time, delay, leaf)
        (time,) = unique_names([_TIME], leaf.columns)
        return BroughtStream(
            name, time, written.window.time, delay, leaf.selectExpr("*", f"{written.window.time} AS {time}")
        )

    def forget(self, name: str) -> None:
        """Forget what a stream reads, which is dropped or gets other data."""
        self._times.pop(name, None)
        self._leaves.pop(name, None)

    def remember(self, brought: BroughtStream, written: WrittenQuery | WrittenText) -> None:
        """Keep what a new stream reads, if its time is computed."""
        if written.window.column is None:
            self._times[brought.name] = written.window.time
            self._leaves[brought.name] = written.leaf.frame
