"""A stream through a window, which is what a plain query reads; `model.join` has the other class of source."""

from __future__ import annotations

from dataclasses import dataclass, field

from windloom.model.relation import EnrichedStream
from windloom.model.windows import Window


@dataclass(frozen=True, slots=True)
class WindowedStream:
    """One stream through one window: `trades [RANGE 1 hour SLIDE 1 minute] AS t`.

    The alias only qualifies names in the text of the query: sources that differ in it are equal. As a side of a join
    it may also be a relation, whose window is a version; `stream` is then its name. If the stream is enriched with
    relations, `enriched` is that stream, and `stream` its name.

    >>> from windloom.model.windows import TimeWindow
    >>> source = WindowedStream("trades", TimeWindow(10, 5), "t")
    >>> source == WindowedStream("trades", TimeWindow(10, 5)), source.streams
    (True, ('trades',))
    """

    stream: str
    window: Window  # the one that answers report on
    alias: str | None = field(default=None, compare=False)
    enriched: EnrichedStream | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads, in the order in which it names them: together they decide when windows close."""
        if self.window.is_version:
            return ()
        return (self.stream,) if self.enriched is None else (self.enriched.base,)

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations it reads, retroactive or not."""
        if self.window.is_version:
            return (self.stream,)
        return () if self.enriched is None else self.enriched.relations

    @property
    def relation(self) -> str:
        """The name of the tuples on which its expressions are evaluated."""
        return self.stream

    def windows_over(self, stream: str) -> tuple[Window, ...]:
        """The windows through which it reads one stream; none if it does not."""
        return (self.window,) if stream in self.streams else ()

    def __str__(self) -> str:
        text = f"{self.stream} {self.window}"
        return text if self.alias is None else f"{text} AS {self.alias}"
