"""Small files of a checkpoint: frames without blobs, which are JSON. The plan record is one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from windloom.checkpoint.frames import frame_bytes, read_frame
from windloom.checkpoint.json_codec import from_json, to_json
from windloom.checkpoint.state_codec import read_state, write_state
from windloom.model.stream import Relation, Stream
from windloom.model.time import format_duration
from windloom.plan.costs import Choices
from windloom.state.state import State
from windloom.statistics.estimates import Estimates
from windloom.statistics.set_statistics import Ongoing


def read_record(kind: str, name: str, data: bytes, hint: str) -> dict[str, Any]:
    """Return the body of a record; `hint` says what to do if it is damaged."""
    return read_frame(kind, f"the checkpoint's file '{name}'", data, hint).body


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """Everything needed to make a plan again: `queries` by name, `options`, all its `choices`, and `estimates`.

    A repeated round must have the plan it had: the log may hold tuples as they were projected for that plan.
    `estimates` and `ongoing` are what rounds had shown when it was made. Records without trees leave all choices open.

    A record holds from `from_round` on, until a record with a higher version does. `declared` are the queries that the
    program declared when it started the stream: at the next start, they distinguish what the program itself has changed
    from what was changed while the stream ran.
    """

    version: int
    from_round: int
    queries: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    declared: Mapping[str, str] = field(default_factory=dict)
    aggregates: Mapping[str, str] = field(default_factory=dict)  # user-defined aggregates: the fields of their values
    estimates: Estimates = field(default_factory=Estimates)
    ongoing: Ongoing = field(default_factory=Ongoing)

    @property
    def given(self) -> Choices | None:
        """The choices with which the plan is made; None if they are left open."""
        return self.choices if self.choices.trees else None

    def starting(self, round: int) -> PlanRecord:
        """Return this record, holding from another round on."""
        return replace(self, from_round=round)

    @property
    def history_ticks(self) -> int:
        """How long cells are kept for later queries: part of the record, because the state depends on it."""
        return int(self.options.get("history_ticks", 0))

    def to_bytes(self) -> bytes:
        return frame_bytes("plan", to_json(PlanRecord, self))

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> PlanRecord:
        hint = (
            "restore it from a copy; if no round has run with it yet, deleting it undoes the change of queries it holds"
        )
        return from_json(cls, read_record("plan", name, data, hint))


# A snapshot: the state after a round as bytes, with the round and the version of the plan in whose terms it is.

_HINT = "delete it: an older snapshot and the log make the same state"


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    round: int
    plan_version: int
    state: State

    def to_bytes(self) -> bytes:
        state, blobs = write_state(self.state)
        return frame_bytes("snapshot", {"round": self.round, "plan_version": self.plan_version, "state": state}, blobs)

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> StateSnapshot:
        frame = read_frame("snapshot", f"the checkpoint's file '{name}'", data, _HINT)
        return cls(frame.body["round"], frame.body["plan_version"], read_state(frame.body["state"], frame.blobs))


# The identity of a checkpoint: the streams and relations it was made for, and how those of a catalog differ.


def identity_of(streams: Mapping[str, Stream]) -> dict[str, Any]:
    """Return everything about streams that must not change between two starts; the rate may change."""
    return {
        name: {
            "columns": {column: kind.name for column, kind in stream.columns.items()},
            "time": stream.time,
            "time_unit": stream.time_unit,
            "delay_ticks": stream.delay_ticks,
        }
        for name, stream in streams.items()
    }


def relations_of(relations: Mapping[str, Relation]) -> dict[str, Any]:
    """Return everything about relations that must not change between two starts."""
    return {
        name: {
            "columns": {column: kind.name for column, kind in relation.columns.items()},
            "retroactive": relation.is_retroactive,
        }
        for name, relation in relations.items()
    }


def differences(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each difference between the checkpoint's streams and those of the catalog."""
    for name in wanted:
        if name not in recorded:
            yield f"stream '{name}' is not in the checkpoint"
    for name, old in recorded.items():
        new = wanted.get(name)
        if new is None:
            yield f"stream '{name}' of the checkpoint is not in this catalog"
            continue
        yield from _columns(f"stream '{name}'", old["columns"], new["columns"])
        if old["time"] != new["time"] or old["time_unit"] != new["time_unit"]:
            yield f"stream '{name}': its time is '{_time(new)}' here and '{_time(old)}' in the checkpoint"
        if old["delay_ticks"] != new["delay_ticks"]:
            here, there = (format_duration(stream["delay_ticks"]) for stream in (new, old))
            yield f"stream '{name}': its delay is {here} here and {there} in the checkpoint"


def relation_differences(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each difference between the checkpoint's relations and those of the catalog.

    A missing relation is not a difference; it matters only if a query reads it.
    """
    for name in recorded.keys() & wanted.keys():
        old, new = recorded[name], wanted[name]
        yield from _columns(f"relation '{name}'", old["columns"], new["columns"])
        if old["retroactive"] != new["retroactive"]:
            here, there = ("retroactive" if relation["retroactive"] else "not retroactive" for relation in (new, old))
            yield f"relation '{name}' is {here} here and {there} in the checkpoint"


def _columns(source: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for column in dict.fromkeys([*old, *new]):
        here, there = new.get(column), old.get(column)
        if here != there:
            known = f"{here or 'missing'} here and {there or 'missing'} in the checkpoint"
            yield f"{source}: column '{column}' is {known}"


def _time(stream: Mapping[str, Any]) -> str:
    unit = stream["time_unit"]
    return str(stream["time"]) if unit is None else f"{stream['time']} in {unit}"
