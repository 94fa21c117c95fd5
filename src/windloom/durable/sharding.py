"""The number of shards of a checkpoint, fixed when it is first used, because the shard of a group must not change."""

from __future__ import annotations

from windloom.durable.checkpoint import Checkpoint
from windloom.durable.framing import frame_bytes
from windloom.durable.records import read_record
from windloom.durable.storage import Storage
from windloom.errors import WindloomError

PLACEMENT = "placement.json"
_NEW = "give this stream a new checkpoint, and what came before as history"


def settle_shards(
    storage: Storage, checkpoint: Checkpoint, placement: str, shards: int | None, default: int
) -> int | None:
    """Return the number of shards; None if the state is on the driver. Raises if the checkpoint was made otherwise."""
    data = storage.read(PLACEMENT)
    if data is not None:
        recorded = int(read_record("placement", PLACEMENT, data, "restore it from a copy")["shards"])
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
