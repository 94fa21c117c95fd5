"""The log of one round: everything that the step was called with.

A round that ran in shards on executors has no partials here but notes of what its shards wrote.

| bytes | what                                                                       |
|-------|----------------------------------------------------------------------------|
| 8     | `WLOOMLOG`                                                                 |
| 4     | version, little-endian                                                     |
| 4     | CRC-32 of all that follows                                                 |
| 4     | length of the JSON that follows, little-endian                             |
| …     | JSON: round, plan version, what is told by stream, tables, shards          |
| rest  | the tables, one Arrow IPC stream per scan; positions, if there are any |
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windloom.rounds.checkpoint.records import damaged
from windloom.rounds.positions import Positions, RowIntake
from windloom.rounds.round_input import RoundInput
from windloom.rounds.shards.notes import ShardNote
from windloom.rounds.versions import other_version

#: Written by this Windloom, and the only one that it reads.
VERSION = 4

_MAGIC = b"WLOOMLOG"
_HEAD = struct.Struct("<8sII")
_LENGTH = struct.Struct("<I")
_HINT = "restore it from a copy, or start over with a new checkpoint"


@dataclass(frozen=True, slots=True)
class RoundLog:
    """What the step was called with, in the plan of `plan_version`, and what else the round is told by.

    `untimed` counts the tuples of each stream that had no usable time and were left out.
    """

    round: int
    plan_version: int
    input: RoundInput
    untimed: Mapping[str, int] = field(default_factory=dict)
    shards: tuple[ShardNote, ...] = ()  # by number of the shard

    def to_bytes(self) -> bytes:
        given = self.input
        tables = {number: _table_bytes(table) for number, table in sorted(given.partials.items())}
        about = {
            "round": self.round,
            "plan_version": self.plan_version,
            "frontiers": dict(given.frontiers),
            "seen": dict(given.seen),
            "first": dict(given.first),
            "idle": sorted(given.idle),
            "untimed": dict(self.untimed),
            "shards": [note.to_json() for note in self.shards],
            "tables": {str(number): len(data) for number, data in tables.items()},
            "late_rows": None if given.rows is None else {str(one): late for one, late in given.rows.late.items()},
        }
        text = json.dumps(about).encode()
        positions = [] if given.rows is None else [given.rows.positions.to_bytes()]
        pieces: list[Any] = [_LENGTH.pack(len(text)), text, *tables.values(), *positions]
        checksum = 0
        for piece in pieces:
            checksum = zlib.crc32(piece, checksum)
        return b"".join([_HEAD.pack(_MAGIC, VERSION, checksum), *pieces])

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> RoundLog:
        """Refuses, by name, what is damaged, cut short or of another version."""
        if len(data) < _HEAD.size + _LENGTH.size or data[:8] != _MAGIC:
            raise damaged(name, f"{len(data)} bytes that do not begin as a log of Windloom", _HINT)
        _, version, checksum = _HEAD.unpack_from(data)
        if version != VERSION:
            raise other_version(f"the checkpoint's file '{name}'", version, VERSION)
        body = memoryview(data)[_HEAD.size :]
        if zlib.crc32(body) != checksum:
            raise damaged(name, f"{len(data)} bytes whose checksum does not fit", _HINT)
        (length,) = _LENGTH.unpack_from(body)
        tables = _LENGTH.size + length
        about = json.loads(bytes(body[_LENGTH.size : tables]))
        shards = tuple(ShardNote.from_json(note) for note in about["shards"])
        return cls(about["round"], about["plan_version"], _input(about, body[tables:]), about["untimed"], shards)


def _input(about: Mapping[str, Any], tables: memoryview) -> RoundInput:
    partials, place = {}, 0
    for number, size in about["tables"].items():
        partials[int(number)] = pa.ipc.open_stream(pa.py_buffer(tables[place : place + size])).read_all()
        place += size
    rows = None
    if about["late_rows"] is not None:
        late = {int(number): tuples for number, tuples in about["late_rows"].items()}
        rows = RowIntake(Positions.from_bytes(bytes(tables[place:])), late)
    idle = frozenset(about["idle"])
    return RoundInput(partials, about["frontiers"], about["seen"], about["first"], rows, idle)


def _table_bytes(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return sink.getvalue()
