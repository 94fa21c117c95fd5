"""Blocks of answers as bytes and back: a frame per block, so that a file of any length is written part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windloom.answers.answers import BLOCK_ROWS
from windloom.answers.blocks import Block
from windloom.checkpoint.frames import frame_pieces, read_frames, table_blob, table_of

_HINT = "restore it from a copy, or start over with a new checkpoint"


def write_blocks(blocks: Iterable[Block]) -> Iterator[Any]:
    """The parts of a file, bytes or buffers; none at all if there is no block."""
    for block in blocks:
        about = {"shape": block.shape, "queries": block.queries, "bounds": block.bounds.tolist()}
        yield from frame_pieces("answers", about, {"rows": table_blob(block.table)})


def read_blocks(name: str, data: bytes) -> Iterator[Block]:
    """The blocks of a file; raises, with its name, if it is damaged, cut short or of another version."""
    for frame in read_frames("answers", f"the checkpoint's file '{name}'", data, _HINT):
        about = frame.body
        bounds = np.array(about["bounds"], np.int64)
        yield Block(about["shape"], tuple(about["queries"]), bounds, table_of(frame.blobs["rows"]))


def joined(blocks: Iterable[Block], rows: int = BLOCK_ROWS) -> Iterator[Block]:
    """Return the rows in fewer blocks: every shard makes its own blocks, and each block costs some calls."""
    waiting: dict[int, list[Block]] = {}
    for block in blocks:
        same = waiting.setdefault(block.shape, [])
        same.append(block)
        if sum(block.table.num_rows for block in same) >= rows:
            yield _one_block(waiting.pop(block.shape))
    for same in waiting.values():
        yield _one_block(same)


def _one_block(blocks: list[Block]) -> Block:
    counts = np.concatenate([np.diff(block.bounds) for block in blocks])
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    queries = tuple(name for block in blocks for name in block.queries)
    return Block(blocks[0].shape, queries, bounds, pa.concat_tables([block.table for block in blocks]))
