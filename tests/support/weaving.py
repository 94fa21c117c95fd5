"""Small blocks of tuples for tests of weaving: a cut of columns, and cells of one component made from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windloom.aggregates.columns import AnyLifted
from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.signatures import Bits
from windloom.kernels.tuples.tuples import Tuples
from windloom.slicing.edges import EdgeClass, EdgeSet

#: A slice per tick.
TICKS = EdgeSet.of([EdgeClass(1, 0)])


def tuples_of(
    ticks: Sequence[int], *columns: pa.Array | pa.ChunkedArray, words: int = 0, edges: EdgeSet = TICKS
) -> Tuples:
    """The first `words` columns are the signature."""
    table = pa.table({"tick": pa.array(ticks, pa.int64()), **{f"x{i}": column for i, column in enumerate(columns)}})
    return Tuples.of(table, words, edges)


def cut_of(tuples: Tuples, edges: EdgeSet = TICKS, groups: tuple[int, ...] = (), own: Bits = ()) -> SetTuples:
    grid = tuples.grid(groups, edges)
    kept = grid.holding(tuples.counts(grid, own)) if own else grid.every
    return SetTuples(tuples, grid, own, kept)


def woven_cells(planned: PlannedComponent, cells: Sequence[pa.Array]) -> AnyLifted:
    """One component over cells that hold the values of an array each; there is a NULL in each of them as well."""
    values = pa.concat_arrays([pa.concat_arrays([cell, pa.nulls(1, cell.type)]) for cell in cells])
    ticks = np.repeat(np.arange(len(cells)), [len(cell) + 1 for cell in cells])
    return planned.aggregator.weave(planned, cut_of(tuples_of(ticks.tolist(), values)), ComponentInput(0))
