"""Folded rows of a join as blocks of answers, and the errors of values that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.aggregator import ListAggregator, ListWindows, Refuse
from windloom.aggregates.columns import ComponentColumns, ListColumns, WindowValues
from windloom.aggregates.registry import aggregator_for, lower
from windloom.answers.blocks import Block, RefusedAnswer, block_of, group_column, out_of_range, too_long
from windloom.answers.joins.terms import FoldedRows
from windloom.answers.trees import cell_values
from windloom.kernels.families import AddInt
from windloom.kernels.lists.lists import Members
from windloom.kernels.locate import Lanes, WindowArrays
from windloom.kernels.techniques.registry import find_technique
from windloom.model.aggregate import Aggregate
from windloom.model.time import TICK_MIN
from windloom.model.types import arrow_type
from windloom.plan.plan import Plan, PlannedJoin
from windloom.state.cells import Cells, CellsBuilder, describe_group, merge_all
from windloom.state.windows.lifecycle import Landmark


class Lowering:
    """Makes blocks of one join."""

    def __init__(self, plan: Plan, join: PlannedJoin, landmarks: Mapping[str, Landmark]) -> None:
        self._shape, self._join = plan.shapes[join.shape], join
        side_landmarks = (landmarks[place.name] for place in join.sides if place.name in landmarks)
        self._landmark = min((landmark.start for landmark in side_landmarks if landmark.start > TICK_MIN), default=None)

    def block(self, folded: FoldedRows, end: NDArray[np.int64]) -> Block:
        """Return the rows as a block of answers; `end` is where the window of each ends."""
        self.refuse_first(folded, end)
        instant = arrow_type(self._shape.time)
        refuse, refuse_long = (self._refusing(folded, end, make) for make in (out_of_range, too_long))
        arrays = [pa.array(self._starts(end)).view(instant), pa.array(end).view(instant)]
        arrays += [group_column(groups, folded.bounds) for groups in folded.groups]
        for index, (_, kind) in zip(self._join.columns, self._shape.columns, strict=True):
            arrays.append(
                self._column(self._join.query.aggregates[index], folded, refuse, refuse_long).cast(arrow_type(kind))
            )
        return block_of(self._join, self._shape, arrays)

    def refuse_first(self, folded: FoldedRows, end: NDArray[np.int64]) -> None:
        """Raise the error of the first value that no layout holds, if there is one."""
        for refused in folded.refused:
            self._refusing(folded, end, out_of_range)(refused.row, refused.text)

    def _refusing(self, folded: FoldedRows, end: NDArray[np.int64], make: RefusedAnswer) -> Refuse:
        def refuse(row: int, value: str) -> None:
            group = describe_group(list(folded.groups), int(np.searchsorted(folded.bounds, row, side="right")) - 1)
            edges = int(self._starts(end)[row]), int(end[row])
            raise make(self._join.query, edges, group, value)

        return refuse

    def _starts(self, end: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the starts of windows: for each, the earliest one of all sides."""
        sliding = [side.window.extent_ticks or 0 for side in self._join.join.sides]
        start = end - max(sliding)
        return start if self._landmark is None else np.minimum(start, self._landmark)

    def _column(self, aggregate: Aggregate, folded: FoldedRows, refuse: Refuse, refuse_long: Refuse) -> pa.Array:
        places = [self._join.query.components.index(component) for component in aggregate.components]
        argument = self._join.components[places[0]].type_for(aggregate)
        parts = [folded.combined[index] for index in places]
        if isinstance(parts[0], ListColumns):
            # The answers of a holistic aggregate, from lists that are one row each.
            listed = parts[0]
            aggregator, rows = aggregator_for(aggregate, None), len(listed)
            assert isinstance(aggregator, ListAggregator)
            every = np.arange(rows, dtype=np.int32)
            lanes = Lanes(np.array([0, rows], np.int64), every.astype(np.int64), every, every + np.int32(1), every[:0])
            ones = np.ones(1, np.int64)
            windows = WindowArrays(ones, ones, np.zeros(1, np.int64))
            question = aggregator.question(
                aggregate, ListWindows(len(listed.dictionary), rows, lanes.window_start, windows)
            )
            find_technique("recalculate").evaluate(listed.cells, lanes.bounds, lanes, np.zeros(1, np.int64), question)
            if isinstance(question, Members) and question.beyond >= 0:
                refuse_long(question.beyond, str(aggregate))
            return aggregator.answer(aggregate, question, listed, slice(0, rows))
        return lower(aggregate, argument, [part for part in parts if isinstance(part, WindowValues)], refuse)


def as_cells(folded: FoldedRows, ends: NDArray[np.int64]) -> Cells:
    """Return the rows of a join as cells that can be merged with those of other buckets.

    A cell is one row: its group is that of the answer, and it starts where the window of the row ends.
    """
    return CellsBuilder(list(folded.groups), folded.bounds, ends).build(
        combined
        if isinstance(combined, ListColumns)
        else ComponentColumns(
            combined.limbs,
            None if combined.valid is None else AddInt(combined.valid.astype(np.int64)),
            combined.dictionary,
        )
        for combined in folded.combined
    )


def blocks_of(plan: Plan, folds: Mapping[int, Sequence[Cells]], landmarks: Mapping[str, Landmark]) -> list[Block]:
    """Return the answers of joins, by their place in the plan, from what buckets have folded."""
    blocks = []
    for number, parts in sorted(folds.items()):
        cells = merge_all(parts)
        rows = FoldedRows(
            tuple(cells.keys),
            cells.group_bounds,
            np.empty(0, np.int32),
            tuple(lifted if isinstance(lifted, ListColumns) else cell_values(lifted) for lifted in cells.lifted),
        )
        blocks.append(Lowering(plan, plan.joins[number], landmarks).block(rows, cells.starts))
    return blocks
