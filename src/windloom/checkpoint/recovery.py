"""Recovery: reads the newest readable snapshot, then repeats the step over the logs of the rounds committed since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.state_codec import restored_state
from windloom.checkpoint.storage import Storage
from windloom.errors import WindloomError
from windloom.plan.plan import Plan
from windloom.rounds.step import step
from windloom.state.held import HeldSets
from windloom.state.plan_change import migrate
from windloom.state.state import State


@dataclass(frozen=True, slots=True)
class RecoveredState:
    """The state after the last committed round, in terms of `plan`; both plans are None before the first round."""

    state: State
    plan_record: PlanRecord | None
    plan: Plan | None
    next_round: int


def recover(
    checkpoint: Checkpoint, plan_of: Callable[[PlanRecord], Plan], snapshot_rounds: int | None = None
) -> RecoveredState:
    """Return the state after the last committed round; the sinks have its rows, so answers are not computed again.

    A snapshot after a round whose number is due is taken again if a crash has prevented it: how far back logs reach,
    and with them the past of added queries, must not depend on crashes.
    """
    last, snapshot = checkpoint.last_committed, checkpoint.newest_snapshot()
    state, record, plan = State(HeldSets()), None, None
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
        if record is None or log.plan_version != record.version:
            record = checkpoint.plan(log.plan_version)
            old, plan = plan, plan_of(record)
            if old is not None:
                state = migrate(state, old, plan)
        assert plan is not None
        state, _, _ = step(state, log.complete(plan, state), plan, history_ticks=record.history_ticks)
        if is_snapshot_due(round, snapshot_rounds) and round not in checkpoint.snapshots():
            checkpoint.snapshot(round, state)
    return RecoveredState(state, record, plan, last + 1)


def is_snapshot_due(committed: int, snapshot_rounds: int | None) -> bool:
    """Return whether the state after a round is kept, if it is after every so many rounds."""
    return committed >= 0 and snapshot_rounds is not None and (committed + 1) % snapshot_rounds == 0


#: Written into the checkpoints of streams whose state was divided into shards on executors.
_SHARDED = "placement.json"


def refuse_sharded(storage: Storage, place: str) -> None:
    """Raise if the state of a checkpoint lies in shards, which an earlier revision kept on executors."""
    if storage.read(_SHARDED) is not None:
        raise WindloomError(
            f"the state of the checkpoint '{place}' is in shards on executors",
            "an earlier revision of Windloom wrote it with placement='executors', and this one cannot read it",
            "give the stream a new checkpoint, and what came before as history; or answer it by the Spark operator:"
            " loom.answers().writeStream",
        )
