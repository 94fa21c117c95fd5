"""Recovery: reads the newest readable snapshot, then repeats the step over the logs of the rounds committed since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windloom.durable.checkpoint import Checkpoint
from windloom.durable.encoding import restored_state
from windloom.durable.framing import DamagedError
from windloom.durable.records import PlanRecord
from windloom.durable.shards.notes import kept_from_of
from windloom.durable.snapshots import Snapshot
from windloom.errors import WindloomError
from windloom.plan.physical import Plan
from windloom.rounds.carry import carry
from windloom.rounds.state import State
from windloom.rounds.step import step


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state after the last committed round, in terms of `plan`; both plans are None before the first round."""

    state: State
    plan_record: PlanRecord | None
    plan: Plan | None
    next_round: int


def recover(checkpoint: Checkpoint, plan_of: Callable[[PlanRecord], Plan]) -> Recovered:
    """Return the state after the last committed round. Answers are not computed again, because the sinks have their
    rows.
    """
    last = checkpoint.last_committed
    snapshot = _newest_snapshot(checkpoint, last)
    state, record, plan = State(), None, None
    if snapshot is not None:
        state, record = snapshot.state, checkpoint.plan(snapshot.plan_version)
        plan = plan_of(record)
        state = restored_state(state, plan)
    first = 0 if snapshot is None else snapshot.round + 1
    for round in range(first, last + 1):
        log = checkpoint.read_log(round)
        if log is None:
            raise WindloomError(
                f"the checkpoint cannot be recovered: the log of round {round} is missing",
                "the round is committed, and no snapshot that can be read covers it",
                "restore the log or a snapshot from a copy, or start over with a new checkpoint",
            )
        log = log
        if record is None or log.plan_version != record.version:
            record = checkpoint.plan(log.plan_version)
            old, plan = plan, plan_of(record)
            if old is not None:
                state = carry(state, old, plan)
            if log.began is not None:
                state = log.began.holding(state)
        assert plan is not None
        state, _, _ = step(state, log.complete(plan, state), plan, history_ticks=record.history_ticks)
        state = state.forgetting(kept_from_of(log.shards))
    return Recovered(state, record, plan, last + 1)


def _newest_snapshot(checkpoint: Checkpoint, last: int) -> Snapshot | None:
    """Return the newest readable snapshot of a committed round; the answers of an uncommitted one are still needed."""
    for round in reversed(checkpoint.snapshots()):
        if round <= last:
            try:
                return checkpoint.read_snapshot(round)
            except DamagedError:
                checkpoint.drop_snapshot(round)
    return None
