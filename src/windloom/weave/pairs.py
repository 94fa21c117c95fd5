"""The pairs of two columns in order, by which picks compare tuples; made once for all sets if that is cheap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windloom.kernels.compiling.compiled import compiled
from windloom.model.arrays import Codes, Ints
from windloom.weave.columns import Column
from windloom.weave.moved import count_sort


@dataclass(frozen=True, slots=True)
class RankedPairs:
    """The rank of every tuple's pair among the distinct pairs, and for each rank a tuple that has its pair.

    Tuples without the first value of the pair have an undefined rank.
    """

    ranks: Ints
    rows: Ints


def ascending_pairs(by: Column) -> RankedPairs | None:
    """Pairs whose first values ascend from tuple to tuple, so that the second never decide; None if they do not."""
    if by.valid is not None or not len(by) or not _ascends(by.equal_keys):
        return None
    rows = np.arange(len(by), dtype=np.int64)
    return RankedPairs(rows, rows)


def rank_pairs(by: Column, value: Column, rows: Codes, every: bool) -> RankedPairs:
    """The pairs of the chosen tuples, by two counting sorts; if the first are equal, NULL is below all values."""
    values = value.ranked.ranks + np.int32(1)
    if value.valid is not None:
        values[~value.valid] = 0
    chosen = len(by) if every else len(rows)
    ranks, firsts = np.empty(len(by), np.int64), np.empty(chosen, np.int64)
    by_value, in_order = np.empty(chosen, np.int32), np.empty(chosen, np.int32)
    count_sort(rows, every, values, len(value.ranked.dictionary) + 1, by_value)
    count_sort(by_value, False, by.ranked.ranks, len(by.ranked.dictionary), in_order)
    count = _number_pairs(in_order, by.ranked.ranks, values, ranks, firsts)
    return RankedPairs(ranks, firsts[:count])


def can_rank(value: Column) -> bool:
    """Whether ranks are as fine as the values: those of floats do not distinguish 0.0 from -0.0."""
    return not pa.types.is_floating(value.type) and not pa.types.is_null(value.type)


@compiled
def _ascends(keys):  # type: ignore[no-untyped-def]
    back = 0
    for i in range(1, len(keys)):
        back += keys[i] <= keys[i - 1]
    return back == 0


@compiled
def _number_pairs(rows, firsts, seconds, ranks, row_of):  # type: ignore[no-untyped-def]
    count = 0
    for k in range(len(rows)):
        i = np.uint32(rows[k])
        before = np.uint32(rows[k - 1] if k else rows[k])
        if k == 0 or firsts[i] != firsts[before] or seconds[i] != seconds[before]:
            row_of[count] = i
            count += 1
        ranks[i] = count - 1
    return count
