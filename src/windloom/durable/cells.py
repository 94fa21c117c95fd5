"""Cells as part of a frame: a description of each set, and an Arrow stream of one row with a list column per array.

The description says which list holds which array. For a user-defined aggregate, it has the name and the fields of its
values.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windloom.aggregates.lifted import AnyLifted, Lifted
from windloom.aggregates.listed import Listed
from windloom.aggregates.registry import LIST_RULES
from windloom.kernels.families.algebra import FAMILIES, AddInt, Columns
from windloom.kernels.lists.cells import Lists
from windloom.rounds.cells import Cells, CellsBuilder

_LIST_KINDS: tuple[type[np.generic], ...] = (np.int64, np.int32, np.int64)
_FAMILIES = {family.columns: family for family in FAMILIES.values() if not family.is_list}


def write_cells(cells: Mapping[int, Cells]) -> tuple[list[dict[str, Any]], pa.Buffer]:
    """Return the description, for the body of a frame, and the blob."""
    arrays: list[pa.Array] = []

    def keep(array: Any) -> int:
        """Add an array; return its place among the lists."""
        arrays.append(array if isinstance(array, pa.Array) else pa.array(array))
        return len(arrays) - 1

    def limb_of(limb: Columns) -> dict[str, Any]:
        columns = [keep(column) for column in limb]
        family = _FAMILIES.get(type(limb))
        if family is not None:
            return {"family": family.name, "columns": columns}
        return {"own": type(limb).__name__, "fields": list(limb._fields), "columns": columns}

    def lifted_of(lifted: AnyLifted) -> dict[str, Any]:
        if isinstance(lifted, Listed):
            lists = [keep(column) for column in lifted.cells]
            return {"kind": lifted.rule.kind, "lists": lists, "dictionary": keep(lifted.dictionary)}
        return {
            "limbs": [limb_of(limb) for limb in lifted.limbs],
            "valid": None if lifted.valid is None else keep(lifted.valid.value),
            "dictionary": None if lifted.dictionary is None else keep(lifted.dictionary),
        }

    described = [
        {
            "number": number,
            "keys": [keep(key) for key in set_cells.keys],
            "group_bounds": keep(set_cells.group_bounds),
            "starts": keep(set_cells.starts),
            "lifted": [lifted_of(lifted) for lifted in set_cells.lifted],
        }
        for number, set_cells in sorted(cells.items())
    ]
    lists = [pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array) for array in arrays]
    schema = pa.schema([pa.field(str(i), values.type) for i, values in enumerate(lists)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(lists, schema=schema))
    return described, sink.getvalue()


def read_cells(described_sets: Sequence[Mapping[str, Any]], blob: memoryview) -> dict[int, Cells]:
    """Return the cells by number of the set, from their description and the blob."""
    batch = pa.ipc.open_stream(pa.py_buffer(blob)).read_next_batch()

    def array(index: int) -> pa.Array:
        return batch.column(index).flatten()

    def numbers(index: int, kind: type[np.generic] | None) -> Any:
        # A copy, because kernels are compiled for writable arrays.
        return np.array(array(index).to_numpy(zero_copy_only=False), dtype=kind)

    def limb_of(described: dict[str, Any]) -> Columns:
        if "own" in described:
            # Only a plan has the definition of the aggregate: see `restored_state`.
            return namedtuple(described["own"], described["fields"])(
                *(numbers(place, None) for place in described["columns"])
            )
        family = FAMILIES[described["family"]]
        places = zip(described["columns"], family.kinds, strict=True)
        return family.of(*(numbers(place, kind) for place, kind in places))

    def lifted_of(described: dict[str, Any]) -> AnyLifted:
        if "lists" in described:
            columns = (numbers(place, kind) for place, kind in zip(described["lists"], _LIST_KINDS, strict=True))
            return Listed(LIST_RULES[described["kind"]], Lists(*columns), array(described["dictionary"]))
        return Lifted(
            tuple(limb_of(limb) for limb in described["limbs"]),
            None if described["valid"] is None else AddInt(numbers(described["valid"], np.int64)),
            None if described["dictionary"] is None else array(described["dictionary"]),
        )

    return {
        int(set_cells["number"]): CellsBuilder(
            [array(place) for place in set_cells["keys"]],
            numbers(set_cells["group_bounds"], np.int64),
            numbers(set_cells["starts"], np.int64),
        ).build(map(lifted_of, set_cells["lifted"]))
        for set_cells in described_sets
    }


def write_summaries(summaries: Mapping[str, Cells]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the partials of rows by name of their query: their description, for the body of a frame, and blobs by
    name."""
    names = sorted(summaries)
    if not names:
        return {}, {}
    described, blob = write_cells({number: summaries[name] for number, name in enumerate(names)})
    return {"names": names, "sets": described}, {"summaries": blob}


def read_summaries(about: Mapping[str, Any], blobs: Mapping[str, memoryview]) -> dict[str, Cells]:
    if not about:
        return {}
    cells = read_cells(about["sets"], blobs["summaries"])
    return {name: cells[number] for number, name in enumerate(about["names"])}
