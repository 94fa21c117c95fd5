"""The journal of rounds, with which they can run again: a checkpoint for a stream, nothing for a batch run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

from windloom.answers.emission.emission import ReportedRows
from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.records import PlanRecord


class NoJournal:
    """The journal of a run that starts over if it fails: it has one plan, never repeats a round, and keeps nothing.

    Its methods are those of `Checkpoint`.
    """

    last_committed = -1
    last_batch = -1

    def __init__(self, record: PlanRecord) -> None:
        self._record = record

    def _plan(self, *_: object, **__: object) -> PlanRecord:
        return self._record

    def _no(self, *_: object) -> bool:
        return False

    def _nothing(self, *_: object, **__: object) -> None: ...

    plan = begin = upcoming = newest_plan = _plan
    was_answering = has_begun = has_failed = _no
    note_failure = write_log = commit = write_emitted = drop_emitted = snapshot = snapshot_beside = retain = _nothing
    is_writing = False

    def read_log(self, round: int) -> RoundLog | None:
        return None

    def logged(self, last: int) -> Iterator[RoundLog]:
        return iter(())

    def committed_at(self, round: int) -> float:
        return 0.0

    def reading(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read_emitted(self) -> ReportedRows:
        return ReportedRows()

    def settle(self, *, wait: bool = True) -> bool:
        return True

    def snapshots(self) -> list[int]:
        return []


#: Where a run records its rounds.
Journal = Checkpoint | NoJournal
