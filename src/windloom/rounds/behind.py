"""Tuples behind a frontier, and the bounds that decide which of them are late."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windloom.model.arrays import Ints, Mask
from windloom.model.time import TICK_MIN
from windloom.weave.signatures import SIGNATURE_BITS


@dataclass(frozen=True, slots=True)
class Behind:
    """Tuples behind a frontier, counted by finest slice (where it begins) and signature.

    All tuples of an entry are in the same windows of the same queries, so late tuples are counted exactly.
    """

    starts: Ints
    words: tuple[Ints, ...]
    tuples: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def holds(self, bit: int | None) -> Mask:
        """Return the entries whose tuples satisfy the predicate of a bit; all entries if `bit` is None."""
        if bit is None:
            return np.ones(len(self), np.bool_)
        return np.asarray((self.words[bit // SIGNATURE_BITS] >> (bit % SIGNATURE_BITS)) & 1, np.bool_)

    def to_table(self) -> pa.Table:
        columns = [self.starts, self.tuples, *self.words]
        return pa.Table.from_arrays(
            [pa.array(column) for column in columns], names=[str(i) for i in range(len(columns))]
        )

    @classmethod
    def from_table(cls, table: pa.Table) -> Behind:
        starts, tuples, *words = (np.array(column.to_numpy(), np.int64) for column in table.columns)
        return cls(starts, tuple(words), tuples)


@dataclass(frozen=True, slots=True)
class Before:
    """The bounds that decide which tuples of a stream are late: up to where some query was closed before the round.

    `frontier` is that of the stream itself. `since` are further ticks at which slices are divided, because some windows
    distinguish late tuples there.
    """

    closed: int = TICK_MIN
    frontier: int = TICK_MIN
    since: tuple[int, ...] = ()


#: Nothing is closed yet, and so no tuple is late.
ON_TIME = Before()


def count_behind(starts: Ints, words: Sequence[Ints], tuples: Ints) -> Behind:
    """Merge entries with equal slice and signature."""
    columns = [np.asarray(column, np.int64) for column in (starts, *words)]
    order = np.lexsort(columns)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    first = np.flatnonzero(is_new)
    total = np.add.reduceat(tuples[order], first)
    distinct = [column[order][first] for column in columns]
    return Behind(distinct[0], tuple(distinct[1:]), total)


def join_behind(parts: Iterable[Behind]) -> Behind:
    """Return the tuples that several parts have counted."""
    every = list(parts)
    words = [np.concatenate(each) for each in zip(*(behind.words for behind in every), strict=True)]
    starts, tuples = (
        np.concatenate(each) for each in zip(*((behind.starts, behind.tuples) for behind in every), strict=True)
    )
    return count_behind(starts, words, tuples)
