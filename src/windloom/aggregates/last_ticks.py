"""Last ticks: the event time of the latest tuple of a cell, which determines where a session ends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windloom.aggregates.card import Parts, Planned, Refuse, ValueCard
from windloom.aggregates.lifted import AnyLifted, Lifted
from windloom.kernels.families.algebra import LOWEST, MAX_INT, MaxInt
from windloom.model.aggregate import Aggregate
from windloom.model.types import DataType
from windloom.weave.cut import Cut, Read
from windloom.weave.updates import keep_largest


class LastTicks(ValueCard):
    """A component that windows need, not functions."""

    kinds = ("last_tick",)
    combined_by = MAX_INT
    counts_values = False

    def weave(self, planned: Planned, cut: Cut, read: Read) -> AnyLifted:
        largest = np.full(len(cut.grid), LOWEST)
        keep_largest(*cut.where(read, None), cut.tuples.tick.integers, largest)
        return Lifted((MaxInt(cut.taken(largest)),))

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        raise AssertionError("no function is answered from last ticks")
