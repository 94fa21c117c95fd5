"""Records of a checkpoint: the plans of rounds, snapshots of the state, and the catalog that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from windloom.checkpoint.frames import Frame, frame_bytes, frame_pieces, read_file
from windloom.checkpoint.json_codec import from_json, to_json
from windloom.checkpoint.segment_files import SegmentFiles, named_segments
from windloom.checkpoint.state_codec import read_state, write_state
from windloom.model.stream import Relation, Stream
from windloom.model.time import spoken_duration
from windloom.plan.costs import Choices
from windloom.state.held import HeldSets
from windloom.state.state import State
from windloom.statistics.estimates import Estimates
from windloom.statistics.set_statistics import Ongoing


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
        return from_json(cls, read_file("plan", name, data, hint).body)


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """The state after a round, in terms of the plan with this version."""

    round: int
    plan_version: int
    state: State

    def to_pieces(self, files: SegmentFiles) -> list[Any]:
        """Return the snapshot as bytes and views to be written one after another; segments are written already."""
        held = self.state.cells if isinstance(self.state.cells, HeldSets) else HeldSets(self.state.cells)
        state, blobs = write_state(replace(self.state, cells=held.tables))
        about = {"round": self.round, "plan_version": self.plan_version, "segments": files.described(held)}
        return frame_pieces("snapshot", {**about, "state": state}, blobs)

    @classmethod
    def from_bytes(cls, name: str, data: bytes, files: SegmentFiles) -> StateSnapshot:
        frame = _read_snapshot(name, data)
        state = read_state(frame.body["state"], frame.blobs)
        held = HeldSets(state.cells, files.opened(frame.body["segments"]))
        return cls(frame.body["round"], frame.body["plan_version"], replace(state, cells=held))


def segments_named_in(name: str, data: bytes) -> set[str]:
    """Return the segments that the bytes of a snapshot name."""
    return named_segments(_read_snapshot(name, data).body["segments"])


def _read_snapshot(name: str, data: bytes) -> Frame:
    return read_file("snapshot", name, data, "delete it: an older snapshot and the log make the same state")


def identity_of(streams: Mapping[str, Stream], relations: Mapping[str, Relation]) -> dict[str, Any]:
    """Return everything about streams and relations that must not change between two starts; rates may change."""
    return {
        "streams": {
            name: {
                "columns": {column: kind.name for column, kind in stream.columns.items()},
                "time": stream.time,
                "time_unit": stream.time_unit,
                "delay_ticks": stream.delay_ticks,
            }
            for name, stream in streams.items()
        },
        "relations": {
            name: {
                "columns": {column: kind.name for column, kind in relation.columns.items()},
                "retroactive": relation.is_retroactive,
            }
            for name, relation in relations.items()
        },
    }


@dataclass(frozen=True, slots=True)
class CatalogDifference:
    """A sentence about what differs between two identities, and what a user can do about it."""

    fact: str
    way_out: str


_APART = "give it a checkpoint of its own, and what came before as history=…"


def with_changes(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return an identity with what may change between two starts as the catalog has it, and a sentence about each.

    Columns may come, behind those that are there: files of kept tuples call a column by its place. Delays may change,
    because the log has every frontier. Relations may come.
    """
    streams, facts = dict(recorded["streams"]), []
    for name, new in wanted["streams"].items():
        old = streams.get(name)
        if old is None:
            continue
        come = {column: kind for column, kind in new["columns"].items() if column not in old["columns"]}
        facts += [f"stream '{name}': column '{column}' ({kind}) is new" for column, kind in come.items()]
        if old["delay_ticks"] != new["delay_ticks"]:
            now, before = (spoken_duration(each["delay_ticks"]) for each in (new, old))
            facts.append(f"stream '{name}': its delay is {now} from now on, and was {before}")
        streams[name] = {**old, "columns": {**old["columns"], **come}, "delay_ticks": new["delay_ticks"]}
    relations = {**recorded["relations"], **wanted["relations"]}
    return {**recorded, "streams": streams, "relations": relations}, facts


def differences(
    recorded: Mapping[str, Any], wanted: Mapping[str, Any], where: str = "in the checkpoint"
) -> Iterator[CatalogDifference]:
    """Yield each difference between the identity of a checkpoint and that of the catalog.

    A relation that only one of them has is not a difference; it matters only if a query reads it.
    """
    for name in wanted["streams"]:
        if name not in recorded["streams"]:
            yield CatalogDifference(f"stream '{name}' is not {where}", _APART)
    for name, old in recorded["streams"].items():
        new = wanted["streams"].get(name)
        if new is None:
            fact = f"stream '{name}' of the checkpoint is not in this catalog"
            yield CatalogDifference(fact, "register it under that name, even if no query reads it any more")
            continue
        yield from _columns(f"stream '{name}'", old["columns"], new["columns"], where)
        if (old["time"], old["time_unit"]) != (new["time"], new["time_unit"]):
            here, there = (
                each["time"] if each["time_unit"] is None else f"{each['time']} in {each['time_unit']}"
                for each in (new, old)
            )
            yield CatalogDifference(f"stream '{name}': its time is '{here}' here and '{there}' {where}", _APART)
        if old["delay_ticks"] != new["delay_ticks"]:
            here, there = (spoken_duration(stream["delay_ticks"]) for stream in (new, old))
            fact = f"stream '{name}': its delay is {here} here and {there} {where}"
            yield CatalogDifference(fact, f"delay='{there}'")
    for name in recorded["relations"].keys() & wanted["relations"].keys():
        old, new = recorded["relations"][name], wanted["relations"][name]
        yield from _columns(f"relation '{name}'", old["columns"], new["columns"], where)
        if old["retroactive"] != new["retroactive"]:
            here, there = ("retroactive" if relation["retroactive"] else "not retroactive" for relation in (new, old))
            fact = f"relation '{name}' is {here} here and {there} {where}"
            yield CatalogDifference(fact, f"register it as it was: retroactive={old['retroactive']}")


def _columns(source: str, old: Mapping[str, str], new: Mapping[str, str], where: str) -> Iterator[CatalogDifference]:
    for column in dict.fromkeys([*old, *new]):
        here, there = new.get(column), old.get(column)
        if here != there:
            fact = f"{source}: column '{column}' is {here or 'missing'} here and {there or 'missing'} {where}"
            if there is None:
                way_out = f"leave it out: df.drop('{column}')"
            elif here is None:
                way_out = f"add it: df.withColumn('{column}', lit(None).cast('{there}'))"
            else:
                way_out = f"cast it: df.withColumn('{column}', col('{column}').cast('{there}'))"
            yield CatalogDifference(fact, way_out)
