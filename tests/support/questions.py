"""Questions beside rounds, without a JVM, and a checker of their history in the manner of Jepsen's.

Everything that askers and rounds do is written down: what was asked, when, and what came back. The checker knows what
each round brought, and nothing of the engine: an answer is right if some serial execution gives it, in which the
question comes after every round that was committed when it was asked, and before every round that began after it was
answered.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.compare import assert_equal_rows
from support.micro_batches import MicroBatches
from support.rounds import plan_of
from windloom.engine.snapshots import SnapshotAnswer
from windloom.model import Query
from windloom.model.time import TICK_MIN
from windloom.testing import answer

Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """One answer: by whom, of which round it says to be, and the rounds that were committed before and after."""

    asker: int
    query: Query
    found: SnapshotAnswer
    before: int
    after: int
    is_latest: bool = False


@dataclass
class History:
    """What happened; `rounds` are the rows of each, `closed` up to where windows were closed after it."""

    delay: int
    rounds: list[Sequence[Row]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, event: Event) -> None:
        with self._lock:
            self.events.append(event)

    def arrived(self, round: int) -> list[Row]:
        return [row for rows in self.rounds[: round + 1] for row in rows]

    def closed(self, round: int) -> int:
        ticks = [row["tick"] for row in self.arrived(round)]
        return max(ticks) - self.delay if ticks else TICK_MIN

    def check(self) -> None:
        """Every answer equals a serial execution, and whoever asks never sees time go back."""
        last: dict[int, int] = {}
        for event in self.events:
            round = event.found.round
            assert event.before <= round <= event.after, "an answer of a round that was not the last committed one"
            assert round >= last.get(event.asker, -1), "an answer that is older than the one before"
            last[event.asker] = round
            assert event.found.closed == self.closed(round)
            assert_equal_rows(event.query, self.arrived(round), self._serial(event.query, round), rows_of(event.found))

    def _serial(self, query: Query, round: int) -> list[Row]:
        """What the question gives if nothing else happens between two rounds."""
        return [row for row in answer(query, self.arrived(round)) if row["window_end"] <= self.closed(round)]


def rows_of(found: SnapshotAnswer) -> list[Row]:
    rows: list[Row] = found.rows.to_pylist()
    for row in rows:
        for edge in ("window_start", "window_end"):
            row[edge] = _tick(row[edge])
    return rows


def _tick(instant: Any) -> int:
    return round(instant.timestamp() * 1_000_000)


class Asker:
    """Asks one stream, and writes down what it is told."""

    def __init__(self, life: MicroBatches, history: History, number: int) -> None:
        self._life, self._history, self._number = life, history, number

    def ask(self, query: Query) -> SnapshotAnswer:
        before = self._life.loop.committed.round
        with self._life.loop.snapshot() as snapshot:
            found = snapshot.answer(query, plan_of({query.name: query}))
        return self._add(query, found, before)

    def ask_several(self, queries: Sequence[Query]) -> None:
        """Of one instant."""
        before = self._life.loop.committed.round
        with self._life.loop.snapshot() as snapshot:
            for query in queries:
                found = snapshot.answer(query, plan_of({query.name: query}))
                assert found.round == snapshot.committed.round
                self._add(query, found, before)

    def repair(self, query: Query, found: SnapshotAnswer) -> SnapshotAnswer:
        """Bring an answer up to the last round."""
        before = self._life.loop.committed.round
        with self._life.loop.snapshot() as snapshot:
            repaired = snapshot.repair(query, plan_of({query.name: query}), found)
        return self._add(query, repaired, before)

    def _add(self, query: Query, found: SnapshotAnswer, before: int) -> SnapshotAnswer:
        after = self._life.loop.committed.round
        self._history.add(Event(self._number, query, found, before, after))
        return found


@contextmanager
def in_threads(*bodies: Any) -> Iterator[None]:
    """Runs functions beside the body of the `with`; an error in one is raised at its end."""
    errors: list[BaseException] = []

    def run(body: Any) -> None:
        try:
            body()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join(timeout=300)
    if errors:
        raise errors[0]
