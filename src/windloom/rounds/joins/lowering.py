"""Folded rows of a join as blocks of answers, and the errors of values that do not fit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates import card_for, lower
from windloom.aggregates.arrow import arrow_type
from windloom.aggregates.card import Asked, ListCard, Refuse
from windloom.aggregates.lifted import Combined
from windloom.aggregates.listed import Listed
from windloom.kernels.cells.locate import Lanes, WindowArrays
from windloom.kernels.techniques.registry import find_technique
from windloom.model.aggregate import Aggregate
from windloom.plan.physical import Plan, PlannedJoin
from windloom.rounds.block import Block, group_column, out_of_range
from windloom.rounds.groups import describe_group
from windloom.rounds.joins.rows import FoldedRows
from windloom.rounds.windows.life import Landmark


class Lowering:
    """Makes blocks of one join."""

    def __init__(self, plan: Plan, join: PlannedJoin, landmarks: Mapping[str, Landmark]) -> None:
        self._shape, self._join = plan.shapes[join.shape], join
        self._names = ["window_start", "window_end", *(name for name, _ in self._shape.groups + self._shape.columns)]
        side_landmarks = (landmarks[place.name] for place in join.sides if place.name in landmarks)
        self._landmark = min((landmark.start for landmark in side_landmarks if landmark.is_known), default=None)

    def block(self, folded: FoldedRows, end: NDArray[np.int64]) -> Block:
        """Return the rows as a block of answers; `end` is where the window of each ends."""
        self.refuse_first(folded, end)
        instant, refuse = arrow_type(self._shape.time), self._refusing(folded, end)
        arrays = [pa.array(self._starts(end)).view(instant), pa.array(end).view(instant)]
        arrays += [group_column(groups, folded.bounds) for groups in folded.groups]
        for index, (_, kind) in zip(self._join.columns, self._shape.columns, strict=True):
            arrays.append(self._column(self._join.query.aggregates[index], folded, refuse).cast(arrow_type(kind)))
        table = pa.Table.from_arrays(arrays, names=self._names)
        return Block(self._join.shape, (self._join.name,), np.array([0, table.num_rows], np.int64), table)

    def refuse_first(self, folded: FoldedRows, end: NDArray[np.int64]) -> None:
        """Raise the error of the first value that no layout holds, if there is one."""
        for refused in folded.refused:
            self._refusing(folded, end)(refused.row, refused.text)

    def _refusing(self, folded: FoldedRows, end: NDArray[np.int64]) -> Refuse:
        def refuse(row: int, value: str) -> None:
            group = describe_group(list(folded.groups), int(np.searchsorted(folded.bounds, row, side="right")) - 1)
            edges = int(self._starts(end)[row]), int(end[row])
            raise out_of_range(self._join.query, edges, group, value)

        return refuse

    def _starts(self, end: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the starts of windows: for each, the earliest one of all sides."""
        sliding = [side.window.extent_ticks or 0 for side in self._join.join.sides]
        start = end - max(sliding)
        return start if self._landmark is None else np.minimum(start, self._landmark)

    def _column(self, aggregate: Aggregate, folded: FoldedRows, refuse: Refuse) -> pa.Array:
        places = [self._join.query.components.index(component) for component in aggregate.components]
        argument = self._join.components[places[0]].argument_type
        parts = [folded.combined[index] for index in places]
        if isinstance(parts[0], Listed):
            # The answers of a holistic aggregate, from lists that are one row each.
            listed = parts[0]
            card, rows = card_for(aggregate, None), len(listed)
            assert isinstance(card, ListCard)
            every = np.arange(rows, dtype=np.int32)
            lanes = Lanes(np.array([0, rows], np.int64), every.astype(np.int64), every, every + np.int32(1), every[:0])
            ones = np.ones(1, np.int64)
            windows = WindowArrays(ones, ones, np.zeros(1, np.int64))
            question = card.question(aggregate, Asked(len(listed.dictionary), rows, lanes.window_start, windows))
            find_technique("recalculate").evaluate(listed.cells, lanes.bounds, lanes, np.zeros(1, np.int64), question)
            return card.answer(question, listed, slice(0, rows))
        return lower(aggregate, argument, [part for part in parts if isinstance(part, Combined)], refuse)
