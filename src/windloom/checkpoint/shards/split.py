"""Divides cells into shards by the hash of their group, and joins them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from windloom.checkpoint.state_codec import decode, encode, restored_state
from windloom.kernels.hashing import spark_hash
from windloom.plan.plan import Plan
from windloom.plan.sharding import Sharding
from windloom.state.cells import Cells, keep_groups, merge_all
from windloom.state.state import State


def split_cells(cells: Mapping[int, Cells], shards: int, sharding: Sharding) -> Iterator[tuple[int, bytes]]:
    """The number and the encoded cells of all sets, for every shard that has cells."""
    found: dict[int, dict[int, Cells]] = {}
    for number, held in cells.items():
        shard_of = shards_of(held, sharding.of(number), shards)
        for shard in np.unique(shard_of):
            found.setdefault(int(shard), {})[number] = keep_groups(held, shard_of == shard)
    for shard, own in sorted(found.items()):
        yield shard, encode(State(own))


def shards_of(cells: Cells, columns: tuple[int, ...] | None, shards: int) -> NDArray[np.int64]:
    """The shard of every group, which depends only on its values in these columns; None means all columns.

    It equals Spark's `pmod(hash(…), shards)`. If there is no column, everything is in the first shard.
    """
    keys = cells.keys if columns is None else [cells.keys[column] for column in columns]
    if not keys:
        return np.zeros(cells.groups, np.int64)
    return np.mod(spark_hash(keys, cells.groups), shards).astype(np.int64)


def join_cells(parts: Iterable[bytes], plan: Plan) -> dict[int, Cells]:
    """The cells of all parts, by number of the set."""
    found: dict[int, list[Cells]] = {}
    for part in parts:
        for number, held in restored_state(decode(part), plan).cells.items():
            found.setdefault(number, []).append(held)
    return {number: merge_all(each) for number, each in found.items()}
