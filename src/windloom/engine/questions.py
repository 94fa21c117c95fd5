"""Questions to a running loom: answered once, from the state after the last committed round, while rounds continue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from windloom.answers.presentation import presented
from windloom.checkpoint.records import PlanRecord
from windloom.engine.live_queries import LiveQueries
from windloom.engine.loop import RoundLoop
from windloom.engine.progress import instant
from windloom.engine.snapshots import CommittedRound, RoundSnapshot, SnapshotAnswer
from windloom.errors import WindloomError
from windloom.model.clauses import Emits
from windloom.model.query import Query
from windloom.optimizer.facts import PlanningFacts
from windloom.plan.plan import Plan

#: The most times that an answer is repaired, if round after round is committed meanwhile.
MOST_REPAIRS = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question asked once: rows of complete windows, and the watermark they are complete to.

    It reflects `round`, the last round that was committed, and nothing of the round that was running. `staleness` is
    how many seconds had passed since that commit when the answer was given.
    """

    table: pa.Table
    watermark: str | None
    complete_from: str | None
    round: int = -1
    staleness: float = 0.0


class Moment:
    """The committed state at one instant, for several questions: all of them see the same round."""

    def __init__(self, questions: Questions, snapshot: RoundSnapshot) -> None:
        self._questions, self._snapshot = questions, snapshot

    @property
    def round(self) -> int:
        return self._snapshot.committed.round

    @property
    def staleness(self) -> float:
        """Seconds since that round was committed."""
        return max(0.0, time.time() - self._snapshot.committed.at)

    def ask(self, text: str) -> Answer:
        """Answer a query once, as of this instant."""
        question = self._questions.read(text)
        with self._questions.asking():
            return _told(question[0], self._snapshot.answer(*question), self._snapshot.committed)


class Questions:
    """Answers questions from the loop; nothing is registered, and no round waits."""

    def __init__(self, loop: RoundLoop, queries: LiveQueries, newest: Callable[[], PlanRecord]) -> None:
        """`newest` returns the plan record that the next round takes up."""
        self._loop, self._queries, self._newest = loop, queries, newest
        self.asking = loop.questions.asking

    @contextmanager
    def moment(self) -> Iterator[Moment]:
        with self._loop.snapshot() as snapshot:
            yield Moment(self, snapshot)

    def ask(self, text: str, *, latest: bool = False) -> Answer:
        """Answer a query once; with `latest`, as of the newest round that is committed when the answer is given.

        Rounds that are committed while it is made are added to it, at most MOST_REPAIRS times; if there are more, or if
        the query can no longer be answered, that is an error: an older answer is never given instead.
        """
        question = self.read(text)
        with self.asking():
            with self._loop.snapshot() as snapshot:
                committed = snapshot.committed
                answer = snapshot.answer(*question)
            repairs = 0
            while latest and self._loop.committed.round > answer.round:
                if repairs == MOST_REPAIRS:
                    raise WindloomError(
                        "rounds are committed faster than the question is answered",
                        f"after {repairs} repairs the answer reflects round {answer.round}, and round"
                        f" {self._loop.committed.round} is committed",
                        "ask without latest: the answer names the round that it reflects",
                    )
                repairs += 1
                with self._loop.snapshot() as snapshot:
                    committed = snapshot.committed
                    try:
                        answer = snapshot.repair(*question, answer)
                    except WindloomError:  # what a repair needs is no longer kept
                        answer = snapshot.answer(*question)
            return _told(question[0], answer, committed)

    def read(self, text: str) -> tuple[Query, Plan]:
        """Return a query, and its plan by itself, with the estimates and options of the last round's plan."""
        query = self._queries.bind("ask", text)
        if query.emission.kind is not Emits.FINAL:
            raise WindloomError(
                f"a question cannot have {query.emission}",
                "it is answered once, with every window that is closed",
                "leave EMIT out, or add the query to the stream",
            )
        record = self._loop.committed.record or self._newest()
        known = PlanningFacts(estimates=record.estimates, ongoing=record.ongoing)
        return query, self._queries.plan_alone(query, known, record.options)


def _told(query: Query, answer: SnapshotAnswer, committed: CommittedRound) -> Answer:
    since = None if answer.since is None else instant(answer.since)
    staleness = max(0.0, time.time() - committed.at)
    return Answer(presented(answer.rows, query), instant(answer.closed), since, answer.round, staleness)
