"""A snapshot: the state after a round as bytes, with the round and the version of the plan in whose terms it is."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.durable.encoding import read_state, write_state
from windloom.durable.framing import frame_bytes, read_frame
from windloom.rounds.state import State

_HINT = "delete it: an older snapshot and the log make the same state"


@dataclass(frozen=True, slots=True)
class Snapshot:
    round: int
    plan_version: int
    state: State

    def to_bytes(self) -> bytes:
        state, blobs = write_state(self.state)
        return frame_bytes("snapshot", {"round": self.round, "plan_version": self.plan_version, "state": state}, blobs)

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> Snapshot:
        frame = read_frame("snapshot", f"the checkpoint's file '{name}'", data, _HINT)
        return cls(frame.body["round"], frame.body["plan_version"], read_state(frame.body["state"], frame.blobs))
