"""What a round tells of time: of each stream its frontier, which is its largest event time so far less its delay."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windloom.model.stream import Stream
from windloom.model.time import TICK_MIN
from windloom.rounds import RoundInput, State
from windloom.rounds.frontiers import advanced, all_closed


class Watermarks:
    """Decides frontiers, and which streams are idle. Both are logged with the round: a replay does not ask the clock.

    A stream is idle when it has brought nothing for `idle_after` seconds; it then does not hold back queries that read
    other streams too. Its own frontier stays where it is: nothing says that its time went on.
    """

    def __init__(self, streams: Mapping[str, Stream], clock: Callable[[], float], idle_after: float | None) -> None:
        self._streams, self._clock, self._idle_after = streams, clock, idle_after
        self._heard = dict.fromkeys(streams, clock())

    def after(self, state: State, largest: Mapping[str, int], smallest: Mapping[str, int]) -> RoundInput:
        """The input of a round, still without partials, that has brought ticks from `smallest` to `largest`.

        Streams that no query reads have a frontier too: a query that comes later begins there.
        """
        now = self._clock()
        self._heard.update(dict.fromkeys(largest, now))
        seen = advanced(state.seen, largest)
        reached = {name: max(tick - self._streams[name].delay_ticks, TICK_MIN) for name, tick in seen.items()}
        return RoundInput(
            frontiers=advanced(state.frontiers, reached), seen=seen, first=dict(smallest), idle=self._idle(now)
        )

    def ended(self, state: State, largest: Mapping[str, int], smallest: Mapping[str, int]) -> RoundInput:
        """The same for the last round there is: no tuple comes any more, and every window is closed."""
        return RoundInput(
            frontiers=all_closed(self._streams.values()), seen=advanced(state.seen, largest), first=dict(smallest)
        )

    def _idle(self, now: float) -> frozenset[str]:
        if self._idle_after is None:
            return frozenset()
        return frozenset(name for name, heard in self._heard.items() if now - heard >= self._idle_after)
