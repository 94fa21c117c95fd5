"""Loads a catalog query by query: a wrong query does not keep the others from being served."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from windloom.engine import Loom
from windloom.engine.running.delivery import SinkWait
from windloom.engine.running.progress import RoundProgress
from windloom.errors import WindloomError
from windloom.language import parse_catalog
from windloom.service.feed import HISTORY
from windloom.service.running import Rejected


def load_queries(loom: Loom, path: str, *, strict: bool) -> list[Rejected]:
    """Register the queries of a catalog whose streams are registered, with their data; return the wrong ones.

    With `strict`, raises the error of the first wrong query.
    """
    rejected: list[Rejected] = []
    for entry in parse_catalog(Path(path).read_text(encoding="utf-8"), source=Path(path).name).queries:
        try:
            entry.parse({**loom.streams, **loom.relations})  # reports mistakes with their place in the catalog
            loom.query(entry.name, entry.text)
        except WindloomError as error:
            if strict:
                raise
            rejected.append(Rejected(entry.name, entry.text, error))
    if not loom.queries:
        if rejected:
            raise rejected[0].error
        raise WindloomError(
            "there is no query to serve", "the catalog creates none", "write CREATE QUERY name AS SELECT …; in it"
        )
    return rejected


class Relay:
    """Passes rounds on to all that are connected; each also gets those that were done before.

    It also passes on what the current round waits for, if a sink is down.
    """

    def __init__(self) -> None:
        self._done: deque[RoundProgress] = deque(maxlen=HISTORY)
        self._wait: SinkWait | None = None
        self._to: list[Callable[[RoundProgress], None]] = []
        self._waiting: list[Callable[[SinkWait | None], None]] = []
        self._lock = threading.Lock()

    def __call__(self, done: RoundProgress) -> None:
        with self._lock:
            self._done.append(done)
            for to in self._to:
                to(done)

    def wait(self, wait: SinkWait | None) -> None:
        with self._lock:
            self._wait = wait
            for to in self._waiting:
                to(wait)

    def connect(self, to: Callable[[RoundProgress], None], waiting: Callable[[SinkWait | None], None]) -> None:
        with self._lock:
            for done in self._done:
                to(done)
            if self._wait is not None:
                waiting(self._wait)
            self._to.append(to)
            self._waiting.append(waiting)
