"""Joins that shards have folded in parts: their rows as cells, which are merged before they are lowered.

A cell is one row: its group is that of the answer, and it starts where the window of the row ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from windloom.aggregates.lifted import Combined, Lifted
from windloom.aggregates.listed import Listed
from windloom.kernels.families.algebra import AddInt
from windloom.plan.physical import Plan
from windloom.rounds.block import Block
from windloom.rounds.cells import Cells, CellsBuilder, merge_all
from windloom.rounds.joins.lowering import Lowering
from windloom.rounds.joins.rows import FoldedRows
from windloom.rounds.windows.life import Landmark


def as_cells(folded: FoldedRows, ends: NDArray[np.int64]) -> Cells:
    """The rows of a join as cells that can be merged with those of other shards; `ends` is where windows end."""
    return CellsBuilder(list(folded.groups), folded.bounds, ends).build(
        combined
        if isinstance(combined, Listed)
        else Lifted(
            combined.limbs,
            None if combined.valid is None else AddInt(combined.valid.astype(np.int64)),
            combined.dictionary,
        )
        for combined in folded.combined
    )


def blocks_of(plan: Plan, folds: Mapping[int, Sequence[Cells]], landmarks: Mapping[str, Landmark]) -> list[Block]:
    """Return the answers of joins, by their place in the plan, from what shards have folded."""
    blocks = []
    for number, parts in sorted(folds.items()):
        cells = merge_all(parts)
        rows = FoldedRows(
            tuple(cells.keys),
            cells.group_bounds,
            np.empty(0, np.int32),
            tuple(
                (
                    lifted
                    if isinstance(lifted, Listed)
                    else Combined(
                        lifted.limbs, None if lifted.valid is None else lifted.valid.value > 0, lifted.dictionary
                    )
                )
                for lifted in cells.lifted
            ),
        )
        blocks.append(Lowering(plan, plan.joins[number], landmarks).block(rows, cells.starts))
    return blocks
