"""Tuples in order of a join key: folds read them instead of cells if there would be about one cell per tuple."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import RLock

import numpy as np
import pyarrow as pa

from windloom.kernels.compiling import compiled
from windloom.kernels.folds.bands import SLICE_BITS
from windloom.kernels.tuples.signatures import Bits
from windloom.kernels.tuples.tuples import Tuples
from windloom.model.arrays import Codes, Ints
from windloom.slicing.edges import EdgeSet

#: A place is the number of a slice, in `SLICE_BITS`, and above these bits the number of the tuple's other groupings.
MOST_SLICES, MOST_OUTS = 1 << SLICE_BITS, 1 << 15
#: The most values that a record has room for.
MOST_VALUES = 3
#: Values are kept in 32 bits.
MOST_SIZE = (1 << 31) - 1
#: Groups and cells are counted among this many tuples, or a few more.
COUNTED = 1 << 18
#: If a key has more slices per record than this, its records are not sorted by counting.
_SLICES_PER_RECORD = 8
#: Combinations of several columns are searched for among at most this many.
_MOST_COMBINED = 1 << 20


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """Tuples with one key, divided by some of the columns that they are grouped by.

    `of_out` numbers the values of these columns, of which there are `count`. `groups` has the groups of each key that
    have tuples, and `cells` is the number of pairs of a group and a slice that have any. Both are statistics, which are
    estimated if there are many tuples.
    """

    of_out: Codes
    columns: tuple[pa.Array, ...]
    count: int
    groups: Ints
    cells: int


@dataclass(frozen=True, slots=True)
class SortedTuples:
    """Tuples `bounds[k] : bounds[k + 1]` have the key `keys[k]`, and are in order of their slices.

    A record is the place of a tuple and its values. Slices begin at `starts`; `outs` are the other columns by which
    tuples are grouped, by the number that the place of a tuple has. `sizes` are the largest magnitudes of the values.
    """

    keys: pa.Array
    bounds: Ints
    records: Codes
    starts: Ints
    outs: tuple[pa.Array, ...]
    sizes: tuple[int, ...]
    _lock: RLock = field(default_factory=RLock, compare=False, repr=False)
    _grouped: dict[tuple[int, ...], KeyGroups] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def nbytes(self) -> int:
        return int(self.records.nbytes + self.bounds.nbytes + self.keys.nbytes)

    @property
    def out_count(self) -> int:
        return len(self.outs[0]) if self.outs else 1

    def grouped(self, columns: tuple[int, ...]) -> KeyGroups:
        """Return the tuples of each key by some of `outs`; computed once per choice of columns."""
        with self._lock:
            if columns not in self._grouped:
                of_out, distinct = _numbered([self.outs[column] for column in columns], self.out_count)
                count = len(distinct[0]) if distinct else 1
                groups, cells = self._counted(of_out, count)
                self._grouped[columns] = KeyGroups(of_out, tuple(distinct), count, groups, cells)
            return self._grouped[columns]

    def _counted(self, of_out: Codes, count: int) -> tuple[Ints, int]:
        """Return the groups of every key, and how many cells there would be; for many tuples, from sampled keys."""
        tuples = np.diff(self.bounds)
        groups = np.minimum(tuples, 1)
        one_in = max(1, len(self) // COUNTED)
        # The sample does not depend on patterns in the numbers of the keys.
        mixed = np.arange(len(tuples), dtype=np.uint32) * np.uint32(2_654_435_769)
        keys = np.flatnonzero(mixed <= np.uint32((2**32 - 1) // one_in))
        sampled, seen = np.empty(len(keys), np.int64), int(tuples[keys].sum())
        cells = int(_count_groups(self.bounds, self.records, keys, of_out, count, sampled))
        if one_in == 1:
            return sampled, cells
        share = len(self) / max(1, seen)
        if count > 1:
            groups = np.minimum(tuples, np.maximum(groups, np.rint(tuples * (sampled.sum() / max(1, seen)))))
            groups[keys] = sampled
        return groups.astype(np.int64), min(len(self), max(int(groups.sum()), round(cells * share)))


def key_tuples(
    tuples: Tuples, key: int, bits: Bits, outs: Sequence[int], values: Sequence[int], edges: EdgeSet
) -> SortedTuples | None:
    """Return the tuples that have all bits, in order of a column; columns are given by position.

    None if records have no room for a value, for the number of a slice or for that of `outs`.
    """
    slicing, columns = tuples.slices.slicing(edges), [tuples.column(position) for position in values]
    if len(slicing.starts) > MOST_SLICES or len(columns) > MOST_VALUES:
        return None
    if any(not pa.types.is_integer(column.type) or column.valid is not None for column in columns):
        return None
    sizes = tuple(max(-column.span[0], column.span[1]) for column in columns)
    if any(size > MOST_SIZE for size in sizes):
        return None
    numbered = _outs(tuples, outs)
    if numbered is None:
        return None
    codes, of_outs = numbered
    coded, mask = tuples.column(key).coded, np.empty(0, np.bool_)
    if bits:
        mask = np.zeros(len(tuples), np.bool_)
        mask[tuples.chosen(bits).rows] = True
    bounds = np.zeros(len(coded.dictionary) + 1, np.int64)
    _count_keys(coded.codes, mask, bounds)
    records = _records(int(bounds[-1]), 1 + len(columns))
    slices, of_fine = tuples.slices, slicing.of_fine
    integers = [*(column.integers for column in columns), *[np.empty(0, np.int64)] * (MOST_VALUES - len(columns))]
    _place(slices.rows, coded.codes, mask, slices.of_tuple, of_fine, codes, *integers, bounds, records)
    return SortedTuples(coded.dictionary, bounds, records, slicing.starts, of_outs, sizes)


def _outs(tuples: Tuples, positions: Sequence[int]) -> tuple[Codes, tuple[pa.Array, ...]] | None:
    """Return a number for the other groupings per tuple, and their columns by number; None if there are too many."""
    if not positions:
        return np.empty(0, np.int32), ()
    if len(positions) == 1:
        coded = tuples.column(positions[0]).coded
        return (coded.codes, (coded.dictionary,)) if len(coded.dictionary) <= MOST_OUTS else None
    grouping = tuples.grouping(tuple(positions))
    if grouping.count > _MOST_COMBINED:
        return None
    example = np.full(grouping.count, -1, np.int64)
    example[grouping.codes] = np.arange(len(tuples))
    used = np.flatnonzero(example >= 0)
    if len(used) > MOST_OUTS:
        return None
    number = np.zeros(grouping.count, np.int32)
    number[used] = np.arange(len(used))
    rows = example[used]
    columns = (coded.dictionary.take(pa.array(coded.codes[rows])) for coded in grouping.columns)
    return number[grouping.codes], tuple(columns)


def _numbered(columns: Sequence[pa.Array], count: int) -> tuple[Codes, list[pa.Array]]:
    """Return a number for every row of columns, and the distinct rows by number."""
    if not columns:
        return np.zeros(count, np.int32), []
    number = np.zeros(count, np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        number = number * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
    _, rows, numbers = np.unique(number, return_index=True, return_inverse=True)
    return numbers.astype(np.int32), [column.take(pa.array(rows)) for column in columns]


def _records(rows: int, columns: int) -> Codes:
    """Return empty records in Arrow's memory, which outlives runs: new pages would take as long as filling them."""
    room = pa.allocate_buffer(max(4, 4 * rows * columns))
    records: Codes = np.frombuffer(room, np.int32)[: rows * columns].reshape(rows, columns)
    return records


def joined_records(
    parts: Sequence[SortedTuples], keys: Sequence[Ints], outs: Sequence[Ints], slices: Sequence[Ints], count: int
) -> tuple[Ints, Codes]:
    """Return the bounds and the records of several portions together, over `count` keys.

    `keys`, `outs` and `slices` hold, for each portion, the new numbers of its own ones.
    """
    bounds = np.zeros(count + 1, np.int64)
    for part, numbers_of_keys in zip(parts, keys, strict=True):
        np.add.at(bounds, numbers_of_keys + 1, np.diff(part.bounds))
    np.cumsum(bounds, out=bounds)
    records = _records(int(bounds[-1]), parts[0].records.shape[1])
    following, latest = bounds[:-1].copy(), np.full(count, -1, np.int64)
    in_order = True
    for part, *numbers in zip(parts, keys, outs, slices, strict=True):
        in_order &= bool(_append(part.bounds, part.records, *numbers, following, latest, records))
    if not in_order:  # a portion has tuples that are earlier than those of the portion before it, which files may have
        _sort_by_slice(bounds, records, 1 + max(int(numbers_of_keys.max(initial=0)) for numbers_of_keys in slices))
    return bounds, records


@compiled
def _sort_by_slice(bounds, records, slices):  # type: ignore[no-untyped-def]
    """Sort the records of every key, stably: by counting, unless there are many slices for few records."""
    most = 0
    for key in range(len(bounds) - 1):
        most = max(most, bounds[key + 1] - bounds[key])
    key_records, places = np.empty((most, records.shape[1]), np.int32), np.empty(slices + 1, np.int64)
    for key in range(len(bounds) - 1):
        begin, count = bounds[key], bounds[key + 1] - bounds[key]
        in_order = True
        for i in range(begin + 1, begin + count):
            in_order &= records[i - 1, 0] & (MOST_SLICES - 1) <= records[i, 0] & (MOST_SLICES - 1)
        if in_order:
            continue
        key_records[:count] = records[begin : begin + count]
        if slices > _SLICES_PER_RECORD * count:
            order = np.argsort(key_records[:count, 0] & (MOST_SLICES - 1), kind="mergesort")
            for i in range(count):
                records[begin + i] = key_records[order[i]]
            continue
        places[:] = 0
        for i in range(count):
            places[(key_records[i, 0] & (MOST_SLICES - 1)) + 1] += 1
        for part in range(slices):
            places[part + 1] += places[part]
        for i in range(count):
            part = key_records[i, 0] & (MOST_SLICES - 1)
            for column in range(records.shape[1]):
                records[begin + places[part], column] = key_records[i, column]
            places[part] += 1


@compiled
def _append(bounds, records, keys, outs, slices, following, latest, out):  # type: ignore[no-untyped-def]
    """Write the records of a portion after those of their keys; return whether slices still ascend."""
    in_order = True
    for own in range(len(keys)):
        key = keys[own]
        at = following[key]
        for i in range(bounds[own], bounds[own + 1]):
            place = records[i, 0]
            part = slices[place & (MOST_SLICES - 1)]
            in_order &= part >= latest[key]
            latest[key] = part
            out[at, 0] = part | outs[np.uint32(place) >> SLICE_BITS] << SLICE_BITS
            for column in range(1, records.shape[1]):
                out[at, column] = records[i, column]
            at += 1
        following[key] = at
    return in_order


@compiled
def _count_keys(codes, mask, bounds):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        if len(mask) == 0 or mask[i]:
            bounds[np.uint32(codes[i]) + 1] += 1
    for key in range(len(bounds) - 1):
        bounds[key + 1] += bounds[key]


@compiled
def _place(rows, codes, mask, fine, of_fine, outs, first, second, third, bounds, records):  # type: ignore[no-untyped-def]
    """Write the record of every tuple after those of its key; `rows` are the tuples in order of slices, if needed."""
    following = np.empty(len(bounds) - 1, np.uint32)
    for key in range(len(following)):
        following[key] = bounds[key]
    for k in range(len(codes)):
        i = np.int64(rows[k]) if len(rows) else k
        if len(mask) and not mask[i]:
            continue
        code = np.uint32(codes[i])
        at = following[code]
        following[code] = at + np.uint32(1)
        place = of_fine[np.uint32(fine[i])]
        if len(outs):
            place |= outs[i] << SLICE_BITS
        records[at, 0] = place
        if len(first):
            records[at, 1] = first[i]
        if len(second):
            records[at, 2] = second[i]
        if len(third):
            records[at, 3] = third[i]


@compiled
def _count_groups(bounds, records, keys, of_out, count, groups):  # type: ignore[no-untyped-def]
    """Count the groups of some keys; return the number of their cells."""
    latest = np.full(count, -1, np.int64)  # the key and the slice of the latest tuple of each group
    cells = 0
    for k in range(len(keys)):
        key = keys[k]
        own = 0
        for i in range(bounds[key], bounds[key + 1]):
            place = records[i, 0]
            out = np.uint32(of_out[np.uint32(place) >> SLICE_BITS])
            now = np.int64(key) << SLICE_BITS | (place & (MOST_SLICES - 1))
            before = latest[out]
            cells += before != now
            own += before >> SLICE_BITS != key
            latest[out] = now
        groups[k] = own
    return cells
