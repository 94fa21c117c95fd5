"""The rows that queries have reported, as a file of the checkpoint."""

from __future__ import annotations

from windloom.durable.arrow_blobs import table_blob, table_of
from windloom.durable.framing import frame_bytes, read_frame
from windloom.rounds.emission import Emitted

_HINT = "restore it from a copy, or start over with a new checkpoint"


def write_emitted(emitted: Emitted) -> bytes:
    tables_by_kind = [("standing", emitted.standing), ("known", emitted.known)]
    tables = [(kind, key, table) for kind, by_key in tables_by_kind for key, table in sorted(by_key.items())]
    body = {"tables": [[kind, key] for kind, key, _ in tables]}
    return frame_bytes("emitted", body, {str(index): table_blob(table) for index, (_, _, table) in enumerate(tables)})


def read_emitted(name: str, data: bytes) -> Emitted:
    frame = read_frame("emitted", f"the checkpoint's file '{name}'", data, _HINT)
    tables_by_kind: dict[str, dict[str, object]] = {"standing": {}, "known": {}}
    for index, (kind, key) in enumerate(frame.body["tables"]):
        tables_by_kind[kind][key] = table_of(frame.blobs[str(index)])
    return Emitted(**tables_by_kind)
