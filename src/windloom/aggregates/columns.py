"""The cells of a component over many slices and groups, as columns that kernels combine.

`ComponentColumns` holds a few numbers per cell, `ListColumns` a list per cell, `WindowValues` a few numbers per window.
Values that do not fit into a number are kept as ranks in a sorted dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.kernels.families import LOWEST, AddInt, Columns, MaxInt
from windloom.kernels.hashing import KEY_OF_MINUS_ZERO, float_keys
from windloom.kernels.lists.lists import Lists, entries_of, merge_lists, reduce_lists
from windloom.kernels.merge import Places, merge_runs, place_cells
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.model.types import Column, as_array, as_floats, as_integers

#: A dictionary with fewer entries is not worth renewing.
SMALL_DICTIONARY = 64


@dataclass(frozen=True, slots=True)
class ListRule:
    """How lists of a kind are merged: the counts of equal values are added, or the `largest` is kept.

    A list that grows to twice `most` entries is reduced to that many.
    """

    kind: str
    largest: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class ListColumns:
    """One list component over many cells; a code is the place of a value in the ordered `dictionary`."""

    rule: ListRule
    cells: Lists
    dictionary: pa.Array

    def __len__(self) -> int:
        return len(self.cells.bounds) - 1

    @property
    def nbytes(self) -> int:
        return int(self.dictionary.nbytes + sum(column.nbytes for column in self.cells))

    def merge(self, order: NDArray[np.int64], runs: NDArray[np.int64]) -> ListColumns:
        """Return one cell for each run of cells in `order`."""
        cells = merge_lists(self.cells, len(self.dictionary), order, runs, largest=self.rule.largest)
        return replace(self, cells=cells if self.rule.most is None else reduce_lists(cells, self.rule.most))

    def keep(self, wanted: NDArray[np.bool_]) -> ListColumns:
        return replace(self, cells=entries_of(self.cells, wanted))

    def concat(self, *others: ListColumns) -> ListColumns:
        """Return these cells, followed by the others."""
        parts, dictionary = [self, *others], self.dictionary
        if not all(other.dictionary.equals(dictionary) for other in others):
            every = pa.concat_arrays([part.dictionary for part in parts])
            if pa.types.is_struct(every.type):
                ranks, dictionary = ranks_of(every)
                begins = np.cumsum([0, *(len(part.dictionary) for part in parts)])
                new_codes = (ranks[begin:end] for begin, end in pairwise(begins))
                parts = [part._recoded(codes, dictionary) for part, codes in zip(parts, new_codes, strict=True)]
            else:
                values = pc.unique(every)
                # Spark's order: NaN last, strings by their bytes, false before true.
                sortable = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
                dictionary = values.take(pc.array_sort_indices(sortable))
                parts = [part._ranked(dictionary) for part in parts]
        ends = np.cumsum([0, *(part.cells.bounds[-1] for part in parts)])
        bounds = [part.cells.bounds[1:] + begin for part, begin in zip(parts, ends[:-1], strict=True)]
        codes, counts = ([getattr(part.cells, name) for part in parts] for name in ("codes", "counts"))
        lists = Lists(np.concatenate([np.zeros(1, np.int64), *bounds]), np.concatenate(codes), np.concatenate(counts))
        return ListColumns(self.rule, lists, dictionary)

    def without_unused(self) -> ListColumns:
        """Return the cells, with a dictionary of only the values in use once most of the old one is unused."""
        if len(self.dictionary) <= 2 * len(self.cells.codes) + SMALL_DICTIONARY:
            return self
        used = np.unique(self.cells.codes)
        new_codes = np.zeros(len(self.dictionary), np.int64)
        new_codes[used] = np.arange(len(used))
        return self._recoded(new_codes, self.dictionary.take(pa.array(used)))

    def _ranked(self, dictionary: pa.Array) -> ListColumns:
        """Return codes in another ordered dictionary, which has every value in use."""
        new_codes = pc.fill_null(pc.index_in(self.dictionary, dictionary), 0).to_numpy(zero_copy_only=False)
        return self._recoded(new_codes, dictionary)

    def _recoded(self, new_codes: NDArray[Any], dictionary: pa.Array) -> ListColumns:
        """Return the cells with the new code of each code."""
        codes = new_codes.astype(np.int32)[self.cells.codes]
        return ListColumns(self.rule, Lists(self.cells.bounds, codes, self.cells.counts), dictionary)


def no_lists(rule: ListRule, value_type: pa.DataType, count: int) -> ListColumns:
    """Return cells that add nothing."""
    cells = Lists(np.zeros(count + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
    return ListColumns(rule, cells, pa.array([], value_type))


def keys_of(column: Column) -> tuple[NDArray[np.int64], pa.Array | None]:
    """Return 64-bit keys in Spark's order of the values, with NaN above everything; ranks if values do not fit."""
    kind = column.type
    if pa.types.is_floating(kind):
        return float_keys(as_floats(column)), None
    if pa.types.is_date32(kind):
        return as_integers(column.cast(pa.int32())), None
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return as_integers(column.cast(pa.int64())), None
    return ranks_of(as_array(column))


def ranks_of(values: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the rank of each value among the distinct values, and the distinct values in order."""
    if pa.types.is_struct(values.type):
        return _ranks_of_pairs(values)
    encoded = values.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    codes = as_integers(encoded.indices)
    keys = rank[codes] if len(rank) else np.zeros(len(codes), np.int64)
    return keys, encoded.dictionary.take(order)


def _ranks_of_pairs(pairs: pa.StructArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Return ranks in Spark's order of structs: if first fields are equal, the next ones decide; NULL is lowest."""
    first, _ = keys_of(pairs.field(0))
    order = np.argsort(first)
    sorted_first = first[order]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = sorted_first[1:] != sorted_first[:-1]
    if not is_new.all():  # `by` distinguishes most pairs: only the others are sorted by value
        is_tied = ~is_new
        is_tied[:-1] |= ~is_new[1:]
        tied = order[is_tied]
        second, known = _keys_of_rest(pairs.take(pa.array(tied)))
        places = _order_of_pairs(first[tied], second, known)
        order[is_tied], second, known = tied[places], second[places], known[places]
        differs = np.ones(len(tied), np.bool_)
        differs[1:] = (second[1:] != second[:-1]) | (known[1:] != known[:-1])
        is_new[is_tied] |= differs
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_new) - 1
    return ranks, pairs.take(pa.array(order[is_new]))


def _keys_of_rest(structs: pa.StructArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return keys in the order of all fields but the first, and whether they are known: a single field may be NULL."""
    parts: list[NDArray[Any]] = []
    signs: list[NDArray[np.int64]] = []
    for field in range(1, structs.type.num_fields):
        (keys, _), known = keys_of(structs.field(field)), np.asarray(structs.field(field).is_valid(), dtype=np.bool_)
        keys[~known] = 0
        if structs.type.num_fields == 2:
            return keys, known
        if pa.types.is_floating(structs.field(field).type):  # only if all else is equal, the sign of zero decides
            signs.append(keys)
            keys = np.where(keys == KEY_OF_MINUS_ZERO, 0, keys)
        parts += [known, keys]
    parts += signs
    order = np.lexsort(parts[::-1])
    is_new = np.zeros(len(order), np.bool_)
    for part in parts:
        is_new[1:] |= part[order[1:]] != part[order[:-1]]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_new)
    return ranks, np.ones(len(order), np.bool_)


def _order_of_pairs(first: NDArray[np.int64], second: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the order by `first`, whose values ascend already, and then by `second`, of which unknown is lowest."""
    run = np.zeros(len(first), np.int64)
    np.cumsum(first[1:] != first[:-1], out=run[1:])
    low = int(second.min())
    span = int(second.max()) - low + 2
    if span * (int(run[-1]) + 1) >= 2**63:
        return np.lexsort((second, known, run))
    return np.argsort(run * span + (second - low + 1) * known)  # one key, which takes a tenth of the time


@dataclass(frozen=True, slots=True)
class ComponentColumns:
    """One component over many cells.

    `limbs` are combined independently: an exact wide sum has several columns of 32-bit limbs. `valid` counts values
    that were not NULL; None means that there was no NULL. `dictionary` turns the keys of MIN and MAX
    back into values if the keys are ranks: of strings and decimals, or of pairs (compared value, picked value).
    """

    limbs: tuple[Columns, ...]
    valid: AddInt | None = None
    dictionary: pa.Array | None = None

    @property
    def nbytes(self) -> int:
        columns = [column for limb in self.limbs for column in limb]
        columns += [] if self.valid is None else [self.valid.value]
        columns += [] if self.dictionary is None else [self.dictionary]
        return int(sum(column.nbytes for column in columns))

    def map_limbs(self, change: Any) -> ComponentColumns:
        valid = None if self.valid is None else change(self.valid)
        return replace(self, limbs=tuple(change(limb) for limb in self.limbs), valid=valid)


@dataclass(frozen=True, slots=True)
class WindowValues:
    """One component over the rows of a shape: like `ComponentColumns`, but with a row per window."""

    limbs: tuple[Columns, ...]
    valid: NDArray[np.bool_] | None
    dictionary: pa.Array | None


#: A component of either sort over many cells.
AnyLifted = ComponentColumns | ListColumns


def concat(*parts: AnyLifted) -> AnyLifted:
    """Return the cells of all parts, one part after the other."""
    if isinstance(parts[0], ListColumns):
        first, *others = (part for part in parts if isinstance(part, ListColumns))
        return first.concat(*others)
    alike, valid, dictionary = _alike(parts)
    columns = (
        type(each[0])(*(np.concatenate(pieces) for pieces in zip(*each, strict=True)))
        for each in zip(*(part.limbs for part in alike), strict=True)
    )
    return ComponentColumns(tuple(columns), None if valid is None else AddInt(np.concatenate(valid)), dictionary)


def place(parts: Sequence[ComponentColumns], places: Sequence[Places], cells: int) -> ComponentColumns:
    """Return the cells of all parts, `cells` in number, each at its place."""
    alike, valid, dictionary = _alike(parts)
    columns = [list(each) for each in zip(*(part.limbs for part in alike), strict=True)]
    if valid is not None:
        columns.append([AddInt(counts) for counts in valid])
    placed = []
    for pieces in columns:
        out = type(pieces[0])(*(np.empty(cells, column.dtype) for column in pieces[0]))
        for piece, part_places in zip(pieces, places, strict=True):
            place_cells(piece, part_places.bounds, part_places.first, part_places.joins, out)
        placed.append(out)
    placed_valid = None if valid is None else placed.pop()
    return ComponentColumns(tuple(placed), placed_valid, dictionary)


def _alike(
    parts: Sequence[AnyLifted],
) -> tuple[list[ComponentColumns], list[NDArray[np.int64]] | None, pa.Array | None]:
    """Return the parts in one dictionary, the values in their cells (None if no value was NULL), and the dictionary."""
    lifted = [part for part in parts if isinstance(part, ComponentColumns)]
    assert len(lifted) == len(parts)
    # A part of only neutral cells has no values, and so no dictionary yet.
    dictionaries = [part.dictionary for part in lifted if part.dictionary is not None]
    if dictionaries and not all(each.equals(dictionaries[0]) for each in dictionaries[1:]):
        rank_of, union = ranks_of(pa.concat_arrays(dictionaries))
        begin = 0
        for position, part in enumerate(lifted):
            if part.dictionary is not None:
                end = begin + len(part.dictionary)
                lifted[position], begin = _ranked(part, rank_of[begin:end], union), end
        dictionaries = [union]
    valid = None
    if any(part.valid is not None for part in lifted):
        valid = [valid_or_ones(part) for part in lifted]
    return lifted, valid, dictionaries[0] if dictionaries else None


def masked(lifted: AnyLifted, nothing: AnyLifted, mask: NDArray[np.bool_]) -> ComponentColumns:
    """Return the cells where the mask holds, and the neutral cells of `nothing` elsewhere."""
    assert isinstance(lifted, ComponentColumns), "lists are filtered natively"
    assert isinstance(nothing, ComponentColumns)
    limbs = tuple(
        type(limb)(*(np.where(mask, column, empty) for column, empty in zip(limb, none, strict=True)))
        for limb, none in zip(lifted.limbs, nothing.limbs, strict=True)
    )
    valid = None if nothing.valid is None else AddInt(np.where(mask, valid_or_ones(lifted), nothing.valid.value))
    return replace(lifted, limbs=limbs, valid=valid)


def keep(lifted: AnyLifted, wanted: NDArray[np.bool_]) -> AnyLifted:
    """Return the wanted cells; values that none of them holds are dropped once they are the majority."""
    if isinstance(lifted, ListColumns):
        return lifted.keep(wanted).without_unused()
    return without_unused(lifted.map_limbs(lambda limb: type(limb)(*(column[wanted] for column in limb))))


def keep_none(lifted: AnyLifted) -> AnyLifted:
    """Return no cells, but the same component."""
    if isinstance(lifted, ListColumns):
        none = no_lists(lifted.rule, lifted.dictionary.type, 0)
        return replace(lifted, cells=none.cells).without_unused()
    return without_unused(lifted.map_limbs(lambda limb: type(limb)(*(np.empty(0, column.dtype) for column in limb))))


def without_unused(lifted: ComponentColumns) -> ComponentColumns:
    """Return the cells, with a dictionary of only the values in use once most of the old one is unused."""
    if lifted.dictionary is None or len(lifted.dictionary) <= 2 * len(lifted.limbs[0][0]) + SMALL_DICTIONARY:
        return lifted
    keys = lifted.limbs[0].value
    ranks = keys[keys != LOWEST]
    used = np.unique(np.where(ranks < 0, ~ranks, ranks))
    rank_of = np.zeros(len(lifted.dictionary), np.int64)
    rank_of[used] = np.arange(len(used))
    return _ranked(lifted, rank_of, lifted.dictionary.take(pa.array(used)))


def merge(lifted: AnyLifted, order: NDArray[np.int64], runs: NDArray[np.int64]) -> AnyLifted:
    """Return one cell for each run of cells in `order`."""
    if isinstance(lifted, ListColumns):
        return lifted.merge(order, runs)

    def merged(limb: Columns) -> Columns:
        out = type(limb)(*(np.empty(len(runs) - 1, column.dtype) for column in limb))
        merge_runs(limb, order, runs, out)
        return out

    return lifted.map_limbs(merged)


def valid_of(column: Column) -> AddInt | None:
    """Return 1 for each cell that holds a value and 0 for others; None if all do."""
    if not column.null_count:
        return None
    return AddInt(np.asarray(column.is_valid(), dtype=np.int64))


def valid_in(set_tuples: SetTuples, read: ComponentInput) -> AddInt | None:
    """Return the number of values of the argument in each woven cell; None if all cells have one."""
    if set_tuples.counts_all(read, read.argument):
        return None
    counts = set_tuples.kept_counts(read, read.argument)
    return None if (counts > 0).all() else AddInt(counts)


def valid_or_ones(lifted: ComponentColumns) -> NDArray[np.int64]:
    """Return the number of values in each cell."""
    return np.ones(len(lifted.limbs[0][0]), np.int64) if lifted.valid is None else np.asarray(lifted.valid.value)


def _ranked(lifted: ComponentColumns, rank_of: NDArray[np.int64], dictionary: pa.Array) -> ComponentColumns:
    """Return ranks in another sorted dictionary; `rank_of` is the new rank of each entry of the old one."""
    keys = lifted.limbs[0].value.copy()
    has_rank = keys != LOWEST
    # MIN keeps reversed ranks (~rank), so all its keys are negative.
    backwards = has_rank & (keys < 0)
    forwards = has_rank & (keys >= 0)
    keys[backwards] = ~rank_of[~keys[backwards]]
    keys[forwards] = rank_of[keys[forwards]]
    return replace(lifted, limbs=(MaxInt(keys),), dictionary=dictionary)
