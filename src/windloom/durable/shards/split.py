"""Divides cells into shards by the hash of their group, and joins them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from windloom.durable.encoding import decode, encode, restored_state
from windloom.kernels.lists.murmur import spark_hash
from windloom.plan.physical import Plan
from windloom.rounds.cells import Cells, keep_groups, merge_all
from windloom.rounds.state import State


def split_cells(cells: Mapping[int, Cells], shards: int) -> Iterator[tuple[int, bytes]]:
    """The number and the encoded cells of all sets, for every shard that has cells.

    The shard of a group depends on its values alone, and equals Spark's `pmod(hash(…), shards)`.
    """
    found: dict[int, dict[int, Cells]] = {}
    for number, one in cells.items():
        if not one.keys:
            found.setdefault(0, {})[number] = one
            continue
        shard_of = np.mod(spark_hash(one.keys, one.groups), shards)
        for shard in np.unique(shard_of):
            found.setdefault(int(shard), {})[number] = keep_groups(one, shard_of == shard)
    for shard, own in sorted(found.items()):
        yield shard, encode(State(own))


def join_cells(parts: Iterable[bytes], plan: Plan) -> dict[int, Cells]:
    """The cells of all parts, by number of the set."""
    found: dict[int, list[Cells]] = {}
    for part in parts:
        for number, one in restored_state(decode(part), plan).cells.items():
            found.setdefault(number, []).append(one)
    return {number: merge_all(each) for number, each in found.items()}
