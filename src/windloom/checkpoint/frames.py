"""The one form of everything that is kept: a line of JSON with kind, version and checksum, then the blobs it names.

    {"windloom": "log", "version": 1, "checksum": "5f1c2a9e", "bytes": 4711, "body": {…}, "sizes": {"cells": 4096}}

The line begins exactly as shown. `bytes` counts the bytes that follow that number, up to the end of the frame;
`checksum` is their CRC-32. `sizes` names the blobs after the line, in order. A file is one frame or, if it is written
part by part, several; a file without blobs is a JSON file. There is one version of each kind, and no other is read.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windloom.aggregates.columns import AnyLifted, ComponentColumns, ListColumns
from windloom.aggregates.registry import LIST_RULES
from windloom.errors import WindloomError
from windloom.kernels.families import FAMILIES, AddInt, Columns
from windloom.kernels.lists.lists import Lists
from windloom.state.cells import Cells, CellsBuilder

#: The kinds of frames, each with the version that is written, which is also the only one that is read.
VERSIONS = {
    "answers": 1,
    "begun": 2,
    "checkpoint": 1,
    "commit": 3,
    "emitted": 1,
    "head": 2,
    "log": 3,
    "part": 1,
    "placement": 1,
    "plan": 2,
    "segment": 1,
    "snapshot": 3,
    "state": 2,
}

_HEAD = re.compile(rb'\{"windloom": "(\w+)", "version": (\d+), "checksum": "([0-9a-f]{8})", "bytes": (\d+), ')
#: How files began when each kind had a form of its own.
_OLDER = re.compile(rb'WINDLOOM|WLOOM[A-Z]{3}|\{\s+"windloom"')


#: What to do about a file of a checkpoint that is damaged or missing.
RESTORE_HINT = "restore it from a copy, or start over with a new checkpoint"


class DamagedError(WindloomError):
    """The bytes were not written whole, or were changed since."""


@dataclass(frozen=True, slots=True)
class Frame:
    body: dict[str, Any]
    blobs: Mapping[str, memoryview]


def frame_pieces(kind: str, body: Mapping[str, Any], blobs: Mapping[str, Any] | None = None) -> list[Any]:
    """Return a frame as bytes and views to be written one after another; `blobs` are bytes or buffers."""
    views = {name: memoryview(blob).cast("B") for name, blob in (blobs or {}).items()}
    fields = {"body": dict(body)} | ({"sizes": {name: len(view) for name, view in views.items()}} if views else {})
    # Without the opening brace, which is in the head.
    line = json.dumps(fields, ensure_ascii=False)[1:].encode() + b"\n"
    size, checksum = len(line), zlib.crc32(line)
    for view in views.values():
        size, checksum = size + len(view), zlib.crc32(view, checksum)
    head = f'{{"windloom": "{kind}", "version": {VERSIONS[kind]}, "checksum": "{checksum:08x}", "bytes": {size}, '
    return [head.encode() + line, *views.values()]


def frame_bytes(kind: str, body: Mapping[str, Any], blobs: Mapping[str, Any] | None = None) -> bytes:
    return b"".join(frame_pieces(kind, body, blobs))


def read_frames(kind: str, what: str, data: bytes | memoryview, hint: str) -> Iterator[Frame]:
    """Yield the frames of a file, one after another; raise if one is damaged, cut short, or of another kind or version.

    `what` names the file as the subject of a sentence, `hint` says what to do if it is damaged.
    """
    view, offset = memoryview(data), 0
    while offset < len(view):
        head = _HEAD.match(view, offset)
        if head is None and _OLDER.match(view, offset):
            raise WindloomError(
                f"{what} is of an older format",
                "each kind of file had a form of its own,"
                f" and this Windloom reads version {VERSIONS[kind]} of one for all",
                _OF_OLDER,
            )
        if head is None:
            fact = f"what follows byte {offset:,} of {len(view):,} does not begin as Windloom writes it"
            raise DamagedError(f"{what} is damaged", fact, hint)
        own_kind, version, checksum, size = head[1].decode(), int(head[2]), int(head[3], 16), int(head[4])
        if own_kind == kind and version != VERSIONS[kind]:
            readable = VERSIONS[kind]
            raise WindloomError(
                f"{what} is of version {version}",
                f"this Windloom reads version {readable} only",
                _OF_OLDER if version < readable else "use the Windloom that wrote it, or a newer one",
            )
        rest = view[head.end() : head.end() + size]
        if own_kind != kind or len(rest) != size or zlib.crc32(rest) != checksum:
            fact = f"at byte {offset:,} it is cut short or changed: its checksum does not fit"
            raise DamagedError(f"{what} is damaged", fact, hint)
        # The checksum fits, so the bytes are as they were written.
        line_end = re.compile(b"\n").search(rest)
        assert line_end is not None, "a frame begins with a line"
        about = json.loads(b"{" + bytes(rest[: line_end.end()]))
        blobs, begin = {}, line_end.end()
        for name, size_of_blob in about.get("sizes", {}).items():
            blobs[name] = rest[begin : begin + size_of_blob]
            begin += size_of_blob
        yield Frame(about["body"], blobs)
        offset = head.end() + size


def read_file(kind: str, name: str, data: bytes | memoryview, hint: str = RESTORE_HINT) -> Frame:
    """Return the only frame of a checkpoint's file; `hint` says what to do if it is damaged."""
    return read_frame(kind, f"the checkpoint's file '{name}'", data, hint)


def read_frame(kind: str, what: str, data: bytes | memoryview, hint: str) -> Frame:
    """Return the only frame of a file."""
    frames = list(read_frames(kind, what, data, hint))
    if len(frames) != 1:
        raise DamagedError(f"{what} is damaged", f"{len(data)} bytes hold {len(frames)} frames, and not one", hint)
    return frames[0]


_OF_OLDER = "go on with the Windloom that wrote it, or start with a new checkpoint and give what came before as history"


_LIST_KINDS: tuple[type[np.generic], ...] = (np.int64, np.int32, np.int64)
_FAMILIES = {family.columns: family for family in FAMILIES.values() if not family.is_list}


def write_cells(cells: Mapping[int, Cells], compression: str | None = None) -> tuple[list[dict[str, Any]], pa.Buffer]:
    """Return a description of each set, for the body of a frame, and an Arrow stream of one row as a blob.

    With `compression`, such as "lz4", readers decompress without being told.

    The stream has a list column per array, and the description says which list holds which array. For a user-defined
    aggregate, it has the name and the fields of its values.
    """
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
        if isinstance(lifted, ListColumns):
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
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
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
            return ListColumns(LIST_RULES[described["kind"]], Lists(*columns), array(described["dictionary"]))
        return ComponentColumns(
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
    """Return the description of partials of rows, by name of their query, and the blobs that hold them."""
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


def table_blob(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def table_of(blob: memoryview) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()
