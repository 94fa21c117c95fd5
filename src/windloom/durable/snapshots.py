"""A snapshot: the state after a round as bytes, with the round and the version of the plan it is in terms of."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from windloom.durable.encoding import decode, encode
from windloom.durable.records import damaged
from windloom.durable.versions import other_version
from windloom.errors import WindloomError
from windloom.rounds.state import State

VERSION = 1

_MAGIC = b"WLOOMSNP"
_HEAD = struct.Struct("<8sII")
_WHEN = struct.Struct("<qq")
_HINT = "delete it: an older snapshot and the log make the same state"


@dataclass(frozen=True, slots=True)
class Snapshot:
    round: int
    plan_version: int
    state: State

    def to_bytes(self) -> bytes:
        when, state = _WHEN.pack(self.round, self.plan_version), encode(self.state)
        return _HEAD.pack(_MAGIC, VERSION, zlib.crc32(state, zlib.crc32(when))) + when + state

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> Snapshot:
        if len(data) < _HEAD.size + _WHEN.size or data[:8] != _MAGIC:
            raise damaged(name, f"{len(data)} bytes that do not begin as a snapshot of Windloom", _HINT)
        _, version, checksum = _HEAD.unpack_from(data)
        if version != VERSION:
            raise other_version(f"the checkpoint's file '{name}'", version, VERSION)
        body = memoryview(data)[_HEAD.size :]
        if zlib.crc32(body) != checksum:
            raise damaged(name, f"{len(data)} bytes whose checksum does not fit", _HINT)
        round_, plan_version = _WHEN.unpack_from(body)
        try:
            return cls(round_, plan_version, decode(bytes(body[_WHEN.size :])))
        except WindloomError as error:
            raise WindloomError(f"the checkpoint's file '{name}': {error.message}", error.detail, error.hint) from None
