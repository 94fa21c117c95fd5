"""The journal of rounds, with which they can run again: a checkpoint for a stream, nothing for a batch run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from windloom.answers.emission.emission import ReportedRows
from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.records import PlanRecord
from windloom.state.state import State


class NoJournal:
    """The journal of a run that starts over if it fails: it has one plan, never repeats a round, and keeps nothing.

    Its methods are those of `Checkpoint`.
    """

    last_committed = -1
    last_batch = -1

    def __init__(self, record: PlanRecord) -> None:
        self._record = record

    def plan(self, version: int) -> PlanRecord:
        return self._record

    def begin(self, round: int, batch: int | None = None, *, answers_of: PlanRecord | None = None) -> PlanRecord:
        return self._record

    def upcoming(self, round: int) -> PlanRecord:
        return self._record

    def was_answering(self, round: int) -> bool:
        return False

    def has_begun(self, round: int) -> bool:
        return False

    def has_failed(self, round: int) -> bool:
        return False

    def note_failure(self, round: int) -> None: ...

    def newest_plan(self) -> PlanRecord | None:
        return self._record

    def write_log(self, log: RoundLog) -> None: ...

    def read_log(self, round: int) -> RoundLog | None:
        return None

    def logged(self, last: int) -> Iterator[RoundLog]:
        return iter(())

    def committed_at(self, round: int) -> float:
        return 0.0

    def reading(self) -> AbstractContextManager[None]:
        return nullcontext()

    def commit(self, round: int, progress: Mapping[str, Any]) -> None: ...

    def write_emitted(self, round: int, emitted: ReportedRows) -> None: ...

    def read_emitted(self) -> ReportedRows:
        return ReportedRows()

    def drop_emitted(self) -> None: ...

    def snapshot(self, round: int, state: State, plan_version: int | None = None) -> None: ...

    def snapshots(self) -> list[int]:
        return []

    def retain(self) -> None: ...


Journal = Checkpoint | NoJournal
