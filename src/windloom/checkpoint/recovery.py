"""Recovery: reads the newest readable snapshot, then repeats the step over the logs of the rounds committed since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.frames import frame_bytes, read_file
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.shards.notes import kept_from_of
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
            if log.began is not None:
                state = log.began.holding(state)
        assert plan is not None
        state, _, _ = step(state, log.complete(plan, state), plan, history_ticks=record.history_ticks)
        state = state.forgetting(kept_from_of(log.shards))
        if is_snapshot_due(round, snapshot_rounds) and round not in checkpoint.snapshots():
            checkpoint.snapshot(round, state)
    return RecoveredState(state, record, plan, last + 1)


def is_snapshot_due(committed: int, snapshot_rounds: int | None) -> bool:
    """Return whether the state after a round is kept, if it is after every so many rounds."""
    return committed >= 0 and snapshot_rounds is not None and (committed + 1) % snapshot_rounds == 0


#: The number of shards of a checkpoint, fixed when it is first used, because the shard of a group must not change.
PLACEMENT = "placement.json"
_NEW = "give this stream a new checkpoint, and what came before as history"


def settle_shards(
    storage: Storage, checkpoint: Checkpoint, placement: str, shards: int | None, default: int
) -> int | None:
    """Return the number of shards; None if the state is on the driver. Raises if the checkpoint was made otherwise."""
    data = storage.read(PLACEMENT)
    if data is not None:
        recorded = int(read_file("placement", PLACEMENT, data, "restore it from a copy").body["shards"])
        if placement == "driver":
            raise WindloomError(
                "the checkpoint's state is on executors",
                f"it was started with placement='executors', in {recorded} shards",
                f"start it with placement='executors', or {_NEW}",
            )
        if shards is not None and shards != recorded:
            raise WindloomError(
                f"the checkpoint's state is in {recorded} shards",
                f"shards={shards} was requested, and groups would belong to other shards",
                f"leave shards out, or {_NEW}",
            )
        return recorded
    if placement == "driver":
        return None
    if checkpoint.begun(0) is not None or checkpoint.last_committed >= 0:
        raise WindloomError(
            "the checkpoint's state is on the driver",
            "it was started with placement='driver'",
            f"start it with placement='driver', or {_NEW}",
        )
    storage.write(PLACEMENT, frame_bytes("placement", {"placement": placement, "shards": shards or default}))
    return shards or default
