"""What queries have reported, as a file of the checkpoint."""

from __future__ import annotations

from windloom.durable.arrow_blobs import table_blob, table_of
from windloom.durable.framing import frame_bytes, read_frame
from windloom.rounds.emission import Emitted

_HINT = "restore it from a copy, or start over with a new checkpoint"


def write_emitted(emitted: Emitted) -> bytes:
    kept = [("standing", emitted.standing), ("known", emitted.known)]
    tables = [(kind, key, table) for kind, held in kept for key, table in sorted(held.items())]
    body = {"tables": [[kind, key] for kind, key, _ in tables]}
    return frame_bytes("emitted", body, {str(place): table_blob(table) for place, (_, _, table) in enumerate(tables)})


def read_emitted(name: str, data: bytes) -> Emitted:
    frame = read_frame("emitted", f"the checkpoint's file '{name}'", data, _HINT)
    held: dict[str, dict[str, object]] = {"standing": {}, "known": {}}
    for place, (kind, key) in enumerate(frame.body["tables"]):
        held[kind][key] = table_of(frame.blobs[str(place)])
    return Emitted(**held)
