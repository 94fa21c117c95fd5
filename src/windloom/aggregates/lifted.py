"""The cells of a component over many slices and groups, as columns that kernels combine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.arrow import Column
from windloom.aggregates.listed import SMALL_DICTIONARY, Listed
from windloom.aggregates.ranks import ranks_of
from windloom.kernels.cells.merge import merge_runs
from windloom.kernels.cells.place import Places, place_cells
from windloom.kernels.families.algebra import LOWEST, AddInt, Columns, MaxInt
from windloom.weave.cut import Cut, Read


@dataclass(frozen=True, slots=True)
class Lifted:
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

    def map_limbs(self, change: Any) -> Lifted:
        return replace(
            self,
            limbs=tuple(change(limb) for limb in self.limbs),
            valid=None if self.valid is None else change(self.valid),
        )


@dataclass(frozen=True, slots=True)
class Combined:
    """One component over the rows of a shape: like `Lifted`, but with a row per window."""

    limbs: tuple[Columns, ...]
    valid: NDArray[np.bool_] | None
    dictionary: pa.Array | None


#: A component of either sort over many cells.
AnyLifted = Lifted | Listed


def concat(*parts: AnyLifted) -> AnyLifted:
    """The cells of all parts, one part after the other."""
    if isinstance(parts[0], Listed):
        first, *others = (part for part in parts if isinstance(part, Listed))
        return first.concat(*others)
    alike, valid, dictionary = _alike(parts)
    columns = (
        type(each[0])(*(np.concatenate(pieces) for pieces in zip(*each, strict=True)))
        for each in zip(*(part.limbs for part in alike), strict=True)
    )
    return Lifted(tuple(columns), None if valid is None else AddInt(np.concatenate(valid)), dictionary)


def place(parts: Sequence[Lifted], places: Sequence[Places], cells: int) -> Lifted:
    """The cells of all parts, `cells` in number, each at its place."""
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
    return Lifted(tuple(placed), placed_valid, dictionary)


def _alike(
    parts: Sequence[AnyLifted],
) -> tuple[list[Lifted], list[NDArray[np.int64]] | None, pa.Array | None]:
    """The parts, ranked in one dictionary; the values in their cells (None if no value was NULL); the dictionary."""
    lifted = [part for part in parts if isinstance(part, Lifted)]
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


def masked(lifted: AnyLifted, nothing: AnyLifted, mask: NDArray[np.bool_]) -> Lifted:
    """The cells where the mask holds, and the neutral cells of `nothing` elsewhere."""
    assert isinstance(lifted, Lifted), "lists are filtered natively"
    assert isinstance(nothing, Lifted)
    limbs = tuple(
        type(limb)(*(np.where(mask, column, empty) for column, empty in zip(limb, none, strict=True)))
        for limb, none in zip(lifted.limbs, nothing.limbs, strict=True)
    )
    valid = None if nothing.valid is None else AddInt(np.where(mask, valid_or_ones(lifted), nothing.valid.value))
    return replace(lifted, limbs=limbs, valid=valid)


def keep(lifted: AnyLifted, wanted: NDArray[np.bool_]) -> AnyLifted:
    """The wanted cells; values that none of them holds are dropped once they are the majority."""
    if isinstance(lifted, Listed):
        return lifted.keep(wanted).without_unused()
    return without_unused(lifted.map_limbs(lambda limb: type(limb)(*(column[wanted] for column in limb))))


def keep_none(lifted: AnyLifted) -> AnyLifted:
    """No cells, but the same component."""
    if isinstance(lifted, Listed):
        return lifted.keep_none().without_unused()
    none = lifted.map_limbs(lambda limb: type(limb)(*(np.empty(0, column.dtype) for column in limb)))
    return without_unused(none)


def without_unused(lifted: Lifted) -> Lifted:
    """The cells, with a dictionary of only the values in use once most of the old one is unused."""
    if lifted.dictionary is None or len(lifted.dictionary) <= 2 * len(lifted.limbs[0][0]) + SMALL_DICTIONARY:
        return lifted
    keys = lifted.limbs[0].value
    ranks = keys[keys != LOWEST]
    used = np.unique(np.where(ranks < 0, ~ranks, ranks))
    rank_of = np.zeros(len(lifted.dictionary), np.int64)
    rank_of[used] = np.arange(len(used))
    return _ranked(lifted, rank_of, lifted.dictionary.take(pa.array(used)))


def merge(lifted: AnyLifted, order: NDArray[np.int64], runs: NDArray[np.int64]) -> AnyLifted:
    """One cell for each run of cells in `order`."""
    if isinstance(lifted, Listed):
        return lifted.merge(order, runs)

    def merged(limb: Columns) -> Columns:
        out = type(limb)(*(np.empty(len(runs) - 1, column.dtype) for column in limb))
        merge_runs(limb, order, runs, out)
        return out

    return lifted.map_limbs(merged)


def valid_of(column: Column) -> AddInt | None:
    """For each cell, 1 if it holds a value and 0 if not; None if all do."""
    if not column.null_count:
        return None
    return AddInt(np.asarray(column.is_valid(), dtype=np.int64))


def valid_in(cut: Cut, read: Read) -> AddInt | None:
    """The number of values of the argument in each woven cell; None if all cells have one."""
    if cut.counts_all(read, read.argument):
        return None
    counts = cut.kept_counts(read, read.argument)
    return None if (counts > 0).all() else AddInt(counts)


def valid_or_ones(lifted: Lifted) -> NDArray[np.int64]:
    """The number of values in each cell."""
    valid: NDArray[np.int64] = (
        np.ones(len(lifted.limbs[0][0]), np.int64) if lifted.valid is None else lifted.valid.value
    )
    return valid


def _ranked(lifted: Lifted, rank_of: NDArray[np.int64], dictionary: pa.Array) -> Lifted:
    """Ranks in another sorted dictionary; `place` is the new rank of each entry of the old one."""
    keys = lifted.limbs[0].value.copy()
    has_rank = keys != LOWEST
    # MIN keeps reversed ranks (~rank), so all its keys are negative.
    backwards = has_rank & (keys < 0)
    forwards = has_rank & (keys >= 0)
    keys[backwards] = ~rank_of[~keys[backwards]]
    keys[forwards] = rank_of[keys[forwards]]
    return replace(lifted, limbs=(MaxInt(keys),), dictionary=dictionary)
