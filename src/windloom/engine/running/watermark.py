"""The frontier of each stream after a round: its largest event time so far, less its delay."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windloom.model.stream import Stream
from windloom.model.time import TICK_MIN
from windloom.rounds import RoundInput, State
from windloom.rounds.frontiers import advanced, all_closed


class Watermarks:
    """Decides frontiers, and which streams are idle. Both are logged with the round; a replay does not read the clock.

    A stream is idle if it has brought nothing for `idle_after` seconds; it then does not hold back queries that also
    read other streams. Its own frontier stays where it is, because nothing shows that its time has advanced.
    """

    def __init__(self, streams: Mapping[str, Stream], clock: Callable[[], float], idle_after: float | None) -> None:
        self._streams, self._clock, self._idle_after = streams, clock, idle_after
        self._heard = dict.fromkeys(streams, clock())

    def after(self, state: State, largest: Mapping[str, int], smallest: Mapping[str, int]) -> RoundInput:
        """Return the input of a round that has brought ticks from `smallest` to `largest`, still without cells.

        Streams that no query reads also have a frontier, at which a query that is added later begins.
        """
        now = self._clock()
        self._heard.update(dict.fromkeys(largest, now))
        seen = advanced(state.seen, largest)
        reached = {name: max(tick - self._streams[name].delay_ticks, TICK_MIN) for name, tick in seen.items()}
        idle: frozenset[str] = frozenset()
        if self._idle_after is not None:
            idle = frozenset(name for name, heard in self._heard.items() if now - heard >= self._idle_after)
        return RoundInput(frontiers=advanced(state.frontiers, reached), seen=seen, first=dict(smallest), idle=idle)

    def ended(self, state: State, largest: Mapping[str, int], smallest: Mapping[str, int]) -> RoundInput:
        """Return the input of the last round, after which no tuple comes: every window is closed."""
        return RoundInput(
            frontiers=all_closed(self._streams.values()), seen=advanced(state.seen, largest), first=dict(smallest)
        )
