"""Last ticks: the event time of the latest tuple of a cell, which determines where a session ends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import Parts, PlannedArgument, Refuse, ValueAggregator
from windloom.aggregates.columns import AnyLifted, ComponentColumns
from windloom.kernels.families import LOWEST, MAX_INT, MaxInt
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import keep_largest
from windloom.model.aggregate import Aggregate
from windloom.model.types import DataType


class LastTicks(ValueAggregator):
    """A component that windows need, not functions."""

    kinds = ("last_tick",)
    combined_by = MAX_INT
    counts_values = False

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        largest = np.full(len(set_tuples.grid), LOWEST)
        keep_largest(*set_tuples.where(read, None), set_tuples.tuples.tick.integers, largest)
        return ComponentColumns((MaxInt(set_tuples.taken(largest)),))

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        raise AssertionError("no function is answered from last ticks")
