"""State as bytes and back: the ring of partials, with a version and a checksum.

Only the cells are kept. What a technique derives from them (trees, deques, totals) is made anew from the cells at every
step, so a late update to an older slice, or a plan that changes technique, finds nothing stale.

| bytes | what                                                     |
|-------|----------------------------------------------------------|
| 8     | `WINDLOOM`                                               |
| 4     | version, little-endian                                   |
| 4     | CRC-32 of all that follows                               |
| rest  | an Arrow IPC stream: one row, a list column an array     |

The schema's metadata says which list is which, as JSON. Of an aggregate that a user defined, it has the name and the
fields of its values.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import namedtuple
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from windloom.aggregates.lifted import AnyLifted, Lifted
from windloom.aggregates.listed import Listed
from windloom.aggregates.registry import LIST_RULES
from windloom.aggregates.user_defined import restored
from windloom.durable.versions import other_version
from windloom.errors import WindloomError
from windloom.kernels.families.algebra import FAMILIES, AddInt, Columns
from windloom.kernels.lists.cells import Lists
from windloom.plan.physical import Plan
from windloom.rounds.cells import Cells
from windloom.rounds.positions import Positions
from windloom.rounds.state import Cut, History, State
from windloom.slicing.edges import EdgeClass, EdgeSet

#: Written by this Windloom, and the only one that it reads.
VERSION = 4

_MAGIC = b"WINDLOOM"
_HEAD = struct.Struct("<8sII")
_LIST_KINDS: tuple[type[np.generic], ...] = (np.int64, np.int32, np.int64)
_FAMILIES = {family.columns: family for family in FAMILIES.values() if not family.is_list}


def encode(state: State) -> bytes:
    """The state as bytes that `decode` reads, here or elsewhere."""
    arrays: list[pa.Array] = []

    def keep(array: Any) -> int:
        """Where among the lists an array goes."""
        arrays.append(array if isinstance(array, pa.Array) else pa.array(array))
        return len(arrays) - 1

    def part_of(part: Columns) -> dict[str, Any]:
        columns = [keep(column) for column in part]
        family = _FAMILIES.get(type(part))
        if family is not None:
            return {"family": family.name, "columns": columns}
        return {"own": type(part).__name__, "fields": list(part._fields), "columns": columns}

    def lifted_of(one: AnyLifted) -> dict[str, Any]:
        if isinstance(one, Listed):
            lists = [keep(column) for column in one.cells]
            return {"kind": one.rule.kind, "lists": lists, "dictionary": keep(one.dictionary)}
        return {
            "parts": [part_of(part) for part in one.parts],
            "valid": None if one.valid is None else keep(one.valid.value),
            "dictionary": None if one.dictionary is None else keep(one.dictionary),
        }

    sets = [
        {
            "number": number,
            "keys": [keep(key) for key in cells.keys],
            "group_bounds": keep(cells.group_bounds),
            "starts": keep(cells.starts),
            "lifted": [lifted_of(one) for one in cells.lifted],
        }
        for number, cells in sorted(state.cells.items())
    ]
    # Positions go last, and only where tuples are counted.
    positions = keep(pa.array([state.positions.to_bytes()], pa.large_binary())) if state.positions.counts else None
    lists = [pa.LargeListArray.from_arrays(pa.array([0, len(one)], pa.int64()), one) for one in arrays]
    told = {"sets": sets, "positions": positions, **_bookkeeping(state)}
    about = {"windloom": json.dumps(told)}
    schema = pa.schema([pa.field(str(i), one.type) for i, one in enumerate(lists)], metadata=about)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(lists, schema=schema))
    body: bytes = sink.getvalue().to_pybytes()
    return _HEAD.pack(_MAGIC, VERSION, zlib.crc32(body)) + body


def decode(data: bytes) -> State:
    """The state that was encoded; refuses bytes that are damaged, cut short or of another version."""
    if len(data) < _HEAD.size or data[:8] != _MAGIC:
        raise _refusal("these bytes are not a state of Windloom", "they do not begin as one")
    _, version, checksum = _HEAD.unpack_from(data)
    if version != VERSION:
        raise other_version("the state", version, VERSION)
    body = data[_HEAD.size :]
    if zlib.crc32(body) != checksum:
        raise _refusal("these bytes of a state are damaged", f"{len(data)} bytes whose checksum does not fit")
    try:
        batch = pa.ipc.open_stream(body).read_next_batch()
        about = json.loads(batch.schema.metadata[b"windloom"])
        return _state(batch, about)
    except (pa.ArrowException, LookupError, TypeError, ValueError) as error:
        raise _refusal("these bytes of a state are damaged", str(error)) from None


def restored_state(state: State, plan: Plan) -> State:
    """A decoded state with the plan's definitions of aggregates, of which a file has but the columns."""
    cells = dict(state.cells)
    for one in plan.sets:
        held, components = cells.get(one.number), one.components
        if held is not None and any(planned.component.own is not None for planned in components):
            pairs = zip(components, held.lifted, strict=True)
            lifted = (part if planned.component.own is None else restored(planned, part) for planned, part in pairs)
            cells[one.number] = replace(held, lifted=tuple(lifted))
    return replace(state, cells=cells)


def _refusal(message: str, detail: str) -> WindloomError:
    return WindloomError(
        message, detail, "what works: whole bytes made by `encode`, or a rebuild from the log of partials"
    )


def _state(batch: pa.RecordBatch, about: dict[str, Any]) -> State:
    def array(place: int) -> pa.Array:
        return batch.column(place).flatten()

    def numbers(place: int, kind: type[np.generic] | None) -> Any:
        # Memory of our own: kernels are compiled for arrays that can be written.
        return np.array(array(place).to_numpy(zero_copy_only=False), dtype=kind)

    def part_of(one: dict[str, Any]) -> Columns:
        if "own" in one:
            # Only a plan has the definition: see `restored_state`.
            return namedtuple(one["own"], one["fields"])(*(numbers(place, None) for place in one["columns"]))
        family = FAMILIES[one["family"]]
        places = zip(one["columns"], family.kinds, strict=True)
        return family.of(*(numbers(place, kind) for place, kind in places))

    def lifted_of(one: dict[str, Any]) -> AnyLifted:
        if "lists" in one:
            columns = (numbers(place, kind) for place, kind in zip(one["lists"], _LIST_KINDS, strict=True))
            return Listed(LIST_RULES[one["kind"]], Lists(*columns), array(one["dictionary"]))
        return Lifted(
            tuple(part_of(part) for part in one["parts"]),
            None if one["valid"] is None else AddInt(numbers(one["valid"], np.int64)),
            None if one["dictionary"] is None else array(one["dictionary"]),
        )

    cells = {
        int(one["number"]): Cells(
            [array(place) for place in one["keys"]],
            numbers(one["group_bounds"], np.int64),
            numbers(one["starts"], np.int64),
            tuple(lifted_of(part) for part in one["lifted"]),
        )
        for one in about["sets"]
    }
    place = about["positions"]
    return State(
        cells,
        about["frontiers"],
        about["seen"],
        about["since"],
        frozenset(about["fresh"]),
        {int(number): _history(one) for number, one in about["history"].items()},
        about["first"],
        Positions() if place is None else Positions.from_bytes(array(place)[0].as_py()),
        {tuple(inputs): tick for inputs, tick in about["ahead"]},
    )


def _bookkeeping(state: State) -> dict[str, Any]:
    def history_of(one: History) -> dict[str, Any]:
        cuts = [[cut.until, [[each.period, each.residue] for each in cut.edges.classes]] for cut in one.cuts]
        known = {str(index): tick for index, tick in one.known_from.items()}
        return {"kept_from": one.kept_from, "known_from": known, "cuts": cuts}

    return {
        "frontiers": dict(state.frontiers),
        "ahead": [[list(inputs), tick] for inputs, tick in state.ahead.items()],
        "seen": dict(state.seen),
        "first": dict(state.first),
        "since": dict(state.since),
        "fresh": sorted(state.fresh),
        "history": {str(number): history_of(one) for number, one in sorted(state.history.items())},
    }


def _history(about: dict[str, Any]) -> History:
    cuts = tuple(
        Cut(EdgeSet(tuple(EdgeClass(period, residue) for period, residue in classes)), until)
        for until, classes in about["cuts"]
    )
    known = {int(index): tick for index, tick in about["known_from"].items()}
    return History(about["kept_from"], known, cuts)
