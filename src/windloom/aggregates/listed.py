"""Components whose cells hold lists, merged and kept like others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.kernels.lists.cells import Lists, entries_of, merge_lists, reduce_lists

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
class Listed:
    """One list component over many cells; a code is the place of a value in the ordered `dictionary`."""

    rule: ListRule
    cells: Lists
    dictionary: pa.Array

    def __len__(self) -> int:
        return len(self.cells.bounds) - 1

    @property
    def nbytes(self) -> int:
        return int(self.dictionary.nbytes + sum(column.nbytes for column in self.cells))

    def merge(self, order: NDArray[np.int64], runs: NDArray[np.int64]) -> Listed:
        """One cell for each run of cells in `order`."""
        cells = merge_lists(self.cells, len(self.dictionary), order, runs, largest=self.rule.largest)
        return replace(self, cells=cells if self.rule.most is None else reduce_lists(cells, self.rule.most))

    def keep(self, wanted: NDArray[np.bool_]) -> Listed:
        return replace(self, cells=entries_of(self.cells, wanted))

    def keep_none(self) -> Listed:
        """The component without cells; entries are not read."""
        return replace(self, cells=no_lists(self.rule, self.dictionary.type, 0).cells)

    def concat(self, *others: Listed) -> Listed:
        """These cells, followed by the others."""
        parts, dictionary = [self, *others], self.dictionary
        if not all(other.dictionary.equals(dictionary) for other in others):
            values = pc.unique(pa.concat_arrays([part.dictionary for part in parts]))
            # Spark's order: NaN last, strings by their bytes, false before true.
            sortable = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
            dictionary = values.take(pc.array_sort_indices(sortable))
            parts = [part._ranked(dictionary) for part in parts]
        ends = np.cumsum([0, *(part.cells.bounds[-1] for part in parts)])
        bounds = [part.cells.bounds[1:] + begin for part, begin in zip(parts, ends[:-1], strict=True)]
        codes, counts = ([getattr(part.cells, name) for part in parts] for name in ("codes", "counts"))
        lists = Lists(np.concatenate([np.zeros(1, np.int64), *bounds]), np.concatenate(codes), np.concatenate(counts))
        return Listed(self.rule, lists, dictionary)

    def without_unused(self) -> Listed:
        """The cells, with a dictionary of only the values in use once most of the old one is unused."""
        if len(self.dictionary) <= 2 * len(self.cells.codes) + SMALL_DICTIONARY:
            return self
        return self._ranked(self.dictionary.take(pa.array(np.unique(self.cells.codes))))

    def _ranked(self, dictionary: pa.Array) -> Listed:
        """Codes in another ordered dictionary, which has every value in use."""
        new_codes = pc.fill_null(pc.index_in(self.dictionary, dictionary), 0).to_numpy(zero_copy_only=False)
        codes = new_codes.astype(np.int32)[self.cells.codes]
        return Listed(self.rule, Lists(self.cells.bounds, codes, self.cells.counts), dictionary)


def no_lists(rule: ListRule, value_type: pa.DataType, count: int) -> Listed:
    """Cells that add nothing."""
    cells = Lists(np.zeros(count + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
    return Listed(rule, cells, pa.array([], value_type))
