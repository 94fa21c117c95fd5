"""Writes the rows of a round to every sink, and waits for one that is down.

A sink that raises SinkDownError is given the same round again, after pauses that grow, until it takes the round or
patience is over: then the stream fails. Nothing is lost either way, because the round is logged and not committed.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from windloom.answers.blocks import Stopwatch
from windloom.errors import SinkDownError, WindloomError
from windloom.sinks.sink import RoundAnswers, Sink

#: How many seconds a round waits for a sink, unless the user sets another time.
PATIENCE_SECONDS = 600.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


@dataclass(frozen=True, slots=True)
class SinkWait:
    """A round that waits for a sink, until the stream fails after `patience` seconds."""

    sink: str
    round: int
    since: datetime
    attempts: int
    reason: str
    patience: float

    @property
    def seconds(self) -> float:
        """How long the round has waited so far."""
        return (datetime.now(UTC) - self.since).total_seconds()

    def __str__(self) -> str:
        tried = "once" if self.attempts == 1 else f"{self.attempts} times"
        return (
            f"round {self.round} waits for the sink '{self.sink}' since {self.since:%H:%M:%S} UTC, tried {tried}:"
            f" {self.reason} (the stream stops after {duration_words(self.patience)})"
        )


class SinkGivenUpError(WindloomError):
    """A sink has been down for longer than a round waits for it."""


class RoundStoppedError(Exception):
    """The stream was stopped while a round waited; the round is not committed, and runs again at the next start."""


class Delivery:
    """`waiting` is the wait of the current round, or None. The lock of the loop is released during a wait."""

    def __init__(
        self,
        sinks: Mapping[str, Sink],
        lock: threading.RLock,
        patience: float,
        on_wait: Callable[[SinkWait | None], None],
    ) -> None:
        self.waiting: SinkWait | None = None
        self._sinks, self._patience, self._on_wait = sinks, patience, on_wait
        self._wake = threading.Condition(lock)
        self._is_stopped = False

    def give(self, round: int, answers: RoundAnswers, watch: Stopwatch) -> dict[str, dict[str, float]]:
        """Give a round to all sinks; return figures by sink. The seconds of the first include making the rows."""
        figures_by_sink = {}
        for name, sink in self._sinks.items():
            outage: _Outage | None = None
            while True:
                begun = time.monotonic()
                try:
                    with watch("answers"):
                        figures = sink.write(round, answers) or {}
                    break
                except SinkDownError as error:
                    outage = outage or _Outage(name, round, time.monotonic(), datetime.now(UTC))
                    with watch("waiting"):
                        self._wait(outage, error)
            waited = {} if outage is None else {"waited": begun - outage.begun}
            if outage is not None:
                self.waiting = None
                self._on_wait(None)
            figures_by_sink[name] = {"seconds": time.monotonic() - begun, **waited, **figures}
        return figures_by_sink

    def stop(self) -> None:
        """End a wait, and refuse to wait from now on; called with the lock held."""
        self._is_stopped = True
        self._wake.notify_all()

    def _wait(self, outage: _Outage, error: SinkDownError) -> None:
        """Wait until the next attempt; the last attempt is when patience ends."""
        reason = f"{error.message}: {error.detail}" if error.detail else error.message
        left = self._patience - (time.monotonic() - outage.begun)
        if left <= 0:
            lasted = f" for {duration_words(self._patience)}" if self._patience else ""
            message = f"the sink '{outage.sink}' has been down{lasted}"
            raise SinkGivenUpError(message, reason, error.hint or "bring it back") from error
        outage.attempts += 1
        pause, outage.pause = outage.pause, min(2 * outage.pause, _LONGEST_PAUSE)
        pause = min(pause * random.uniform(0.8, 1.2), left)  # not all who wait for one server return at once
        waits = outage.sink, outage.round, outage.since, outage.attempts
        self.waiting = SinkWait(*waits, reason[:300], self._patience)
        try:
            self._on_wait(self.waiting)
            self._wake.wait_for(lambda: self._is_stopped, pause)
        except BaseException:
            self.waiting = None
            raise
        if self._is_stopped:
            self.waiting = None
            raise RoundStoppedError


@dataclass(slots=True)
class _Outage:
    """A sink that is down, from the first attempt that failed on."""

    sink: str
    round: int
    begun: float
    since: datetime
    attempts: int = 0
    pause: float = _FIRST_PAUSE


def duration_words(seconds: float) -> str:
    """Return seconds in words.

    >>> duration_words(600), duration_words(90), duration_words(1)
    ('10 minutes', '90 seconds', '1 second')
    """
    for unit, length in (("hour", 3_600), ("minute", 60)):
        if seconds >= length and seconds % length == 0:
            count = seconds / length
            return f"{count:g} {unit}{'' if count == 1 else 's'}"
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"
