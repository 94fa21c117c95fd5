"""Blocks of answers as bytes and back, one after another, so that a file of any length is written and read piecewise.

| bytes | what                                                       |
|-------|------------------------------------------------------------|
| 8     | `WLOOMANS`                                                 |
| 4     | version, little-endian                                     |
| rest  | blocks: length and CRC-32 (4 bytes each), an Arrow IPC     |
|       | stream, whose schema says shape, queries and bounds        |
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from windloom.durable.records import damaged
from windloom.durable.versions import other_version
from windloom.rounds.answers import BLOCK_ROWS, Block

VERSION = 1

_MAGIC = b"WLOOMANS"
_HEAD = struct.Struct("<8sI")
_BLOCK = struct.Struct("<II")
_HINT = "restore it from a copy, or start over with a new checkpoint"


def write_blocks(blocks: Iterable[Block]) -> Iterator[bytes | pa.Buffer]:
    """The pieces of a file; none at all if there is no block."""
    is_first = True
    for block in blocks:
        if is_first:
            yield _HEAD.pack(_MAGIC, VERSION)
            is_first = False
        about = {"shape": block.shape, "queries": block.queries, "bounds": block.bounds.tolist()}
        table = block.table.replace_schema_metadata({"windloom": json.dumps(about, ensure_ascii=False)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(table)
        data = sink.getvalue()
        yield _BLOCK.pack(len(data), zlib.crc32(data))
        yield data


def read_blocks(name: str, data: bytes) -> Iterator[Block]:
    """The blocks of a file; one that is damaged, cut short or of another version is refused by its name."""
    if len(data) < _HEAD.size or data[:8] != _MAGIC:
        raise damaged(name, f"{len(data)} bytes that do not begin as answers of Windloom", _HINT)
    _, version = _HEAD.unpack_from(data)
    if version != VERSION:
        raise other_version(f"the checkpoint's file '{name}'", version, VERSION)
    view, place = memoryview(data), _HEAD.size
    while place < len(data):
        size, checksum = _BLOCK.unpack_from(data, place) if len(data) - place >= _BLOCK.size else (len(data), 0)
        body = view[place + _BLOCK.size : place + _BLOCK.size + size]
        if len(body) != size or zlib.crc32(body) != checksum:
            raise damaged(name, f"the block at byte {place:,} is cut short or changed", _HINT)
        table = pa.ipc.open_stream(pa.py_buffer(body)).read_all()
        about = json.loads(table.schema.metadata[b"windloom"])
        bounds = np.array(about["bounds"], np.int64)
        yield Block(about["shape"], tuple(about["queries"]), bounds, table.replace_schema_metadata(None))
        place += _BLOCK.size + size


def joined(blocks: Iterable[Block], rows: int = BLOCK_ROWS) -> Iterator[Block]:
    """The same rows in fewer blocks: every shard has blocks of its own, and each block costs some calls."""
    waiting: dict[int, list[Block]] = {}
    for block in blocks:
        same = waiting.setdefault(block.shape, [])
        same.append(block)
        if sum(one.table.num_rows for one in same) >= rows:
            yield _one_block(waiting.pop(block.shape))
    for same in waiting.values():
        yield _one_block(same)


def _one_block(blocks: list[Block]) -> Block:
    counts = np.concatenate([np.diff(one.bounds) for one in blocks])
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    queries = tuple(name for one in blocks for name in one.queries)
    return Block(blocks[0].shape, queries, bounds, pa.concat_tables([one.table for one in blocks]))
