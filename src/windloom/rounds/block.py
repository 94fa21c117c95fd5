"""A block: rows of one shape as an Arrow table, the unit in which answers are made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.errors import WindloomError
from windloom.kernels.cells.lanes import spread_groups
from windloom.kernels.compiling.memory import new_array
from windloom.model import Query


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one shape: `table` has `window_start`, `window_end`, grouping columns, answer columns.

    Rows `bounds[i] : bounds[i + 1]` belong to `queries[i]`.
    """

    shape: int
    queries: tuple[str, ...]
    bounds: NDArray[np.int64]
    table: pa.Table

    def without(self, names: Collection[str]) -> Block:
        """Return these rows without those of some queries."""
        if not any(name in names for name in self.queries):
            return self
        indexes = [i for i, name in enumerate(self.queries) if name not in names]
        pieces = [self.table.slice(self.bounds[i], self.bounds[i + 1] - self.bounds[i]) for i in indexes]
        table = pa.concat_tables([self.table.slice(0, 0), *pieces]).unify_dictionaries().combine_chunks()
        bounds = np.cumsum([0, *(piece.num_rows for piece in pieces)], dtype=np.int64)
        return Block(self.shape, tuple(self.queries[i] for i in indexes), bounds, table)


def group_column(keys: pa.Array, lane_bounds: NDArray[np.int64]) -> pa.DictionaryArray:
    """Return the grouping column as codes into its distinct values, so that no value is copied for every row."""
    encoded = keys.dictionary_encode()
    indices = encoded.indices
    codes = new_array(int(lane_bounds[-1]), np.int32)
    spread_groups(indices.fill_null(0).to_numpy(zero_copy_only=False), lane_bounds, codes)
    mask = None
    if indices.null_count:
        mask = np.empty(len(codes), np.bool_)
        spread_groups(np.asarray(indices.is_null(), np.bool_), lane_bounds, mask)
    # The codes come from the encoding itself; checking their bounds would cost more than writing them.
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), encoded.dictionary, safe=False)


def out_of_range(query: Query, edges: tuple[int, int], group: str, value: str) -> WindloomError:
    """Return the error for an answer that does not fit its type; `edges` are those of its window."""
    start, end = map(query.window.edge_text, edges)
    return WindloomError(
        f"query '{query.name}': a value does not fit its type",
        f"window [{start}, {end}), group {group}: {value} is out of range",
        "cast the argument to a wider type, for example sum(cast(x AS decimal(38,0))) or a double",
    )
