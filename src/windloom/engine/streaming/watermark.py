"""The watermark of a round: the largest event time of each stream less its delay, and of several streams the least."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from windloom.model.stream import Stream
from windloom.model.time import TICK_MIN
from windloom.plan.physical import Plan


class Watermarks:
    """Decides watermarks. What it decides is logged with the round: a replay does not ask the clock again.

    A stream that has brought nothing for `idle_after` seconds does not hold back the others.
    """

    def __init__(self, clock: Callable[[], float], idle_after: float | None) -> None:
        self._clock, self._idle_after = clock, idle_after
        self._started = clock()
        self._heard: dict[str, float] = {}

    def after(self, plan: Plan, seen: Mapping[str, int], largest: Mapping[str, int]) -> tuple[dict[str, int], int]:
        """The largest tick of each stream, and the watermark, when a round has brought `largest`."""
        now = self._clock()
        together = dict(seen)
        for stream, tick in largest.items():
            together[stream] = max(tick, seen.get(stream, tick))
            self._heard[stream] = now
        return together, self.of(plan.streams, together)

    def of(self, streams: Iterable[Stream], seen: Mapping[str, int]) -> int:
        """`streams` are those some query reads, `seen` the largest tick of each so far."""
        ticks = {one.name: max(seen[one.name] - one.delay_ticks, TICK_MIN) for one in streams if one.name in seen}
        waiting = [ticks.get(one.name, TICK_MIN) for one in streams if not self._is_idle(one.name)]
        # All idle: nothing holds anything back, and nothing says that time went on either.
        return min(waiting or [max(ticks.values(), default=TICK_MIN)])

    def _is_idle(self, stream: str) -> bool:
        if self._idle_after is None:
            return False
        return self._clock() - self._heard.get(stream, self._started) >= self._idle_after
