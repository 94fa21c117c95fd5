"""The log of one round: the partials that Spark handed over, and what else the step was called with.

A round that ran in shards on executors has no partials here but notes of what its shards wrote.

| bytes | what                                                                       |
|-------|----------------------------------------------------------------------------|
| 8     | `WLOOMLOG`                                                                 |
| 4     | version, little-endian                                                     |
| 4     | CRC-32 of all that follows                                                 |
| 4     | length of the JSON that follows, little-endian                             |
| …     | JSON: round, plan version, watermark, seen and first, tables, shards       |
| rest  | the tables, one Arrow IPC stream a partial set; positions, if there are any |
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windloom.rounds.checkpoint.records import damaged, newer
from windloom.rounds.positions import Positions, RowIntake
from windloom.rounds.shards.notes import ShardNote

#: 2 can hold notes of shards, 3 has the first tick of each stream, and positions.
VERSION = 3
READABLE = (1, 2, 3)

_MAGIC = b"WLOOMLOG"
_HEAD = struct.Struct("<8sII")
_LENGTH = struct.Struct("<I")
_HINT = "restore it from a copy, or start over with a new checkpoint"


@dataclass(frozen=True, slots=True)
class RoundLog:
    """`partials` by number of the partial set in the plan of `plan_version`.

    Of each stream, `seen` is the largest tick so far and `first` the smallest of the round.

    `untimed` counts the tuples of each stream that had no usable time and were left out.
    """

    round: int
    plan_version: int
    watermark: int
    seen: Mapping[str, int]
    partials: Mapping[int, pa.Table]
    untimed: Mapping[str, int] = field(default_factory=dict)
    shards: tuple[ShardNote, ...] = ()  # by number of the shard
    first: Mapping[str, int] = field(default_factory=dict)
    rows: RowIntake | None = None

    def to_bytes(self) -> bytes:
        tables = {number: _table_bytes(table) for number, table in sorted(self.partials.items())}
        about = {
            "round": self.round,
            "plan_version": self.plan_version,
            "watermark": self.watermark,
            "seen": dict(self.seen),
            "first": dict(self.first),
            "untimed": dict(self.untimed),
            "shards": [note.to_json() for note in self.shards],
            "tables": {str(number): len(data) for number, data in tables.items()},
            "late_rows": None if self.rows is None else {str(one): late for one, late in self.rows.late.items()},
        }
        text = json.dumps(about).encode()
        positions = [] if self.rows is None else [self.rows.positions.to_bytes()]
        pieces: list[Any] = [_LENGTH.pack(len(text)), text, *tables.values(), *positions]
        checksum = 0
        for piece in pieces:
            checksum = zlib.crc32(piece, checksum)
        return b"".join([_HEAD.pack(_MAGIC, VERSION, checksum), *pieces])

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> RoundLog:
        """Refuses, by name, what is damaged, cut short or of a newer version."""
        if len(data) < _HEAD.size + _LENGTH.size or data[:8] != _MAGIC:
            raise damaged(name, f"{len(data)} bytes that do not begin as a log of Windloom", _HINT)
        _, version, checksum = _HEAD.unpack_from(data)
        if version not in READABLE:
            raise newer(name, version, READABLE)
        body = memoryview(data)[_HEAD.size :]
        if zlib.crc32(body) != checksum:
            raise damaged(name, f"{len(data)} bytes whose checksum does not fit", _HINT)
        (length,) = _LENGTH.unpack_from(body)
        place = _LENGTH.size + length
        about = json.loads(bytes(body[_LENGTH.size : place]))
        partials = {}
        for number, size in about["tables"].items():
            partials[int(number)] = pa.ipc.open_stream(pa.py_buffer(body[place : place + size])).read_all()
            place += size
        seen, untimed = about["seen"], about.get("untimed", {})
        shards = tuple(ShardNote.from_json(note) for note in about.get("shards", []))
        rows, late = None, about.get("late_rows")
        if late is not None:
            counted = {int(number): tuples for number, tuples in late.items()}
            rows = RowIntake(Positions.from_bytes(bytes(body[place:])), counted)
        first = about.get("first", {})
        return cls(
            about["round"], about["plan_version"], about["watermark"], seen, partials, untimed, shards, first, rows
        )


def _table_bytes(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return sink.getvalue()
