"""The log of one round: everything that the step was called with.

What came is logged as cells or, where they take less room, as projected tuples: weaving these again gives the same
cells. A round that ran in shards on executors has neither, but notes of what its shards wrote.

| bytes | what                                                                           |
|-------|--------------------------------------------------------------------------------|
| 8     | `WLOOMLOG`                                                                     |
| 4     | version, little-endian                                                         |
| 4     | CRC-32 of all that follows                                                     |
| 4     | length of the JSON that follows, little-endian                                 |
| …     | JSON: round, plan version, what is told by stream, shards, sizes of the rest   |
| rest  | cells; tuples, and tuples behind a frontier, an Arrow stream per scan; positions |
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from windloom.durable.encoding import decode, encode, restored_state
from windloom.durable.records import damaged
from windloom.durable.shards.notes import ShardNote
from windloom.durable.versions import other_version
from windloom.plan.physical import Plan
from windloom.plan.scans import WovenScan
from windloom.rounds.behind import Behind
from windloom.rounds.positions import Positions
from windloom.rounds.round_input import RoundInput
from windloom.rounds.state import State
from windloom.rounds.taken import Taken
from windloom.rounds.weaving import read_tuples, weave

#: Written by this Windloom, and the only one that it reads.
VERSION = 5

_MAGIC = b"WLOOMLOG"
_HEAD = struct.Struct("<8sII")
_LENGTH = struct.Struct("<I")
_HINT = "restore it from a copy, or start over with a new checkpoint"


@dataclass(frozen=True, slots=True)
class RoundLog:
    """What the step was called with, in the plan of `plan_version`, and what else the round is told by.

    `tuples` are, by number of the scan, those whose cells `input` need not have: see `complete`. `untimed` counts the
    tuples of each stream that had no usable time and were left out.
    """

    round: int
    plan_version: int
    input: RoundInput
    untimed: Mapping[str, int] = field(default_factory=dict)
    shards: tuple[ShardNote, ...] = ()  # by number of the shard
    tuples: Mapping[int, pa.Table] = field(default_factory=dict)

    def complete(self, plan: Plan) -> RoundInput:
        """What the step is called with; `plan` is that of the round."""
        cells = dict(restored_state(State(self.input.taken.cells), plan).cells)
        for number, table in self.tuples.items():
            scan = plan.scans[number]
            assert isinstance(scan, WovenScan), "only woven scans leave tuples"
            if not any(fed.number in cells for fed in scan.feeds):
                cells |= weave(plan, scan, read_tuples(plan, scan, table))
        return self.input.taking(replace(self.input.taken, cells=cells))

    def smaller(self, plan: Plan) -> RoundLog:
        """The same log with either the tuples or the cells of every scan, whichever take less room."""
        cells, tuples = dict(self.input.taken.cells), {}
        for number, table in self.tuples.items():
            made = [fed.number for fed in plan.scans[number].feeds if fed.number in cells]
            if table.nbytes < sum(cells[one].nbytes for one in made):
                tuples[number] = table
                for one in made:
                    del cells[one]
        return replace(self, input=self.input.taking(replace(self.input.taken, cells=cells)), tuples=tuples)

    def to_bytes(self) -> bytes:
        given = self.input
        blobs: dict[str, Any] = {}
        if given.taken.cells:
            blobs["cells"] = encode(State(given.taken.cells))
        blobs |= {f"tuples {number}": _table_bytes(table) for number, table in sorted(self.tuples.items())}
        behind = sorted(given.taken.behind.items())
        blobs |= {f"behind {number}": _table_bytes(one.to_table()) for number, one in behind}
        if given.rows is not None:
            blobs["positions"] = given.rows.to_bytes()
        about = {
            "round": self.round,
            "plan_version": self.plan_version,
            "frontiers": dict(given.frontiers),
            "seen": dict(given.seen),
            "first": dict(given.first),
            "idle": sorted(given.idle),
            "untimed": dict(self.untimed),
            "shards": [note.to_json() for note in self.shards],
            "sizes": {name: len(data) for name, data in blobs.items()},
        }
        text = json.dumps(about).encode()
        pieces: list[Any] = [_LENGTH.pack(len(text)), text, *blobs.values()]
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
        place = _LENGTH.size + length
        about = json.loads(bytes(body[_LENGTH.size : place]))
        blobs: dict[str, memoryview] = {}
        for name, size in about["sizes"].items():
            blobs[name] = body[place : place + size]
            place += size
        shards = tuple(ShardNote.from_json(note) for note in about["shards"])
        tuples = _tables(blobs, "tuples")
        return cls(about["round"], about["plan_version"], _input(about, blobs), about["untimed"], shards, tuples)


def _input(about: Mapping[str, Any], blobs: Mapping[str, memoryview]) -> RoundInput:
    cells = decode(bytes(blobs["cells"])).cells if "cells" in blobs else {}
    behind = {number: Behind.from_table(table) for number, table in _tables(blobs, "behind").items()}
    rows = Positions.from_bytes(bytes(blobs["positions"])) if "positions" in blobs else None
    idle = frozenset(about["idle"])
    return RoundInput(Taken(cells, behind), about["frontiers"], about["seen"], about["first"], rows, idle)


def _tables(blobs: Mapping[str, memoryview], kind: str) -> dict[int, pa.Table]:
    """Tables of one kind, by number of the scan."""
    named = [name.split() for name in blobs if " " in name]
    return {
        int(number): pa.ipc.open_stream(pa.py_buffer(blobs[f"{kind} {number}"])).read_all()
        for found, number in named
        if found == kind
    }


def _table_bytes(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return sink.getvalue()
