"""The state that all requests share: the loom, its watchers, its figures, and access rights."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from windloom.engine.running.delivery import SinkWait
from windloom.engine.running.progress import RoundProgress
from windloom.service.access import Gate, Level
from windloom.service.faults import RefusedError
from windloom.service.feed import RoundFeed
from windloom.service.metrics import Metrics
from windloom.service.models import Latest
from windloom.service.running import RunningLoom
from windloom.service.totals import Totals

#: Plans, questions and reads of many files that may run at once; more would only wait for each other.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_cost` is in seconds of work per second of event time; None for no limit."""

    body_bytes: int = 64 << 10
    seconds: float = 30.0
    patience: float = 5.0  # seconds that a request waits for others to finish
    rows: int = 100_000
    max_cost: float | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """Answers that are the same for everyone until the next round, or until queries change."""

    latest: dict[str, Latest] = field(default_factory=dict)


class Service:
    def __init__(
        self,
        loom: RunningLoom,
        gate: Gate | None = None,
        limits: Limits | None = None,
        *,
        feed: RoundFeed | None = None,
        is_local: bool = True,
        is_secure: bool = False,
    ) -> None:
        """`is_local`: only this machine can connect. `is_secure`: browsers connect through TLS."""
        self.loom, self.gate, self.limits = loom, gate or Gate(None), limits or Limits()
        self.is_local, self.is_secure = is_local, is_secure
        self.feed = feed or RoundFeed()
        self.totals = Totals()
        self.metrics = Metrics(self._costs, lambda: self.feed.watchers)
        self.kept = Kept()
        self._working = threading.BoundedSemaphore(_AT_ONCE)

    def round_done(self, done: RoundProgress) -> None:
        """Note a round; called by the thread of the round."""
        self.totals.add(done)
        self.metrics.add(done)
        self.kept = Kept()
        self.feed.publish(done)

    def round_waits(self, wait: SinkWait | None) -> None:
        """Note a wait; called by the thread of a round when a sink is down, at each attempt, and when it is back."""
        self.metrics.wait(wait)
        self.feed.announce("waiting")

    def queries_changed(self) -> None:
        self.kept = Kept()
        self.feed.announce("queries")

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold a place among the requests that take more than a moment."""
        if not self._working.acquire(timeout=self.limits.patience):
            raise RefusedError(
                429, "too much is asked at once", f"{_AT_ONCE} plans and questions are being worked on", "try again"
            )
        try:
            yield
        finally:
            self._working.release()

    def _costs(self) -> dict[str, float]:
        costs = self.loom.costs()["queries"]  # includes sides of joins
        return {name: costs[name]["seconds"] for name in self.loom.queries if name in costs}


def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


Served = Annotated[Service, Depends(_service)]


def _level(request: Request, service: Served) -> Level:
    return service.gate.level_of(request.headers, request.cookies)


def _may_read(level: Annotated[Level, Depends(_level)]) -> Level:
    if level < Level.READ:
        raise RefusedError(
            401, "a token is needed", "", "send it as 'Authorization: Bearer TOKEN', or log in on the page"
        )
    return level


def _may_change(level: Annotated[Level, Depends(_may_read)]) -> Level:
    if level < Level.ADMIN:
        raise RefusedError(403, "this token may only read", "", "use an admin token to change queries")
    return level


AnyLevel = Annotated[Level, Depends(_level)]
MayRead = Depends(_may_read)
MayChange = Depends(_may_change)
