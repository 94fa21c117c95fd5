"""Holistic answers: computes the column of a query from cells that hold lists."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates import card_for
from windloom.aggregates.card import Asked, ListCard
from windloom.aggregates.listed import Listed
from windloom.kernels.cells.locate import Lanes, WindowArrays
from windloom.kernels.techniques.registry import find_technique
from windloom.model.aggregate import Aggregate


@dataclass(frozen=True, slots=True)
class ListRows:
    """The lanes of a block, and the cells whose lists they read: bounds of groups, starts."""

    bounds: NDArray[np.int64]
    starts: NDArray[np.int64]
    windows: WindowArrays
    lanes: Lanes

    def on_marks(
        self, runs: NDArray[np.int64], mark_bounds: NDArray[np.int64], mark_starts: NDArray[np.int64]
    ) -> ListRows:
        """Return these windows over the finer cells between marks, because lists have no running values at marks."""
        lo, hi = runs[self.lanes.lo].astype(np.int32), self.lanes.tail + np.int32(1)
        lanes = replace(self.lanes, lo=lo, hi=hi, runs=np.empty(0, np.int64))  # runs are of the coarse cells
        return ListRows(mark_bounds, mark_starts, self.windows, lanes)

    def column(self, aggregate: Aggregate, listed: Listed, technique: str, queries: NDArray[np.int64]) -> pa.Array:
        """Return the answers of an aggregate for consecutive queries."""
        card = card_for(aggregate, None)
        assert isinstance(card, ListCard)
        groups = len(self.bounds) - 1
        rows = slice(int(self.lanes.bounds[queries[0] * groups]), int(self.lanes.bounds[(queries[-1] + 1) * groups]))
        asked = Asked(len(listed.dictionary), len(self.lanes), self.starts, self.windows)
        question = card.question(aggregate, asked)
        find_technique(technique).evaluate(listed.cells, self.bounds, self.lanes, queries, question)
        return card.answer(question, listed, rows)
