"""Sums of floats, as double-double pairs.

Within a slice, 24-bit heads and remainders are summed separately, so that equal magnitudes add up without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import NativeAggregator, Parts, PlannedArgument, Refuse, size_sql
from windloom.aggregates.columns import AnyLifted, ComponentColumns, valid_in, valid_of
from windloom.aggregates.whole_sums import SUMS
from windloom.kernels.families import ADD_FLOAT, AddFloat
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import sum_floats
from windloom.model.aggregate import Aggregate
from windloom.model.types import Column, DataType, TypeKind, as_floats, with_nulls

#: Below this magnitude a double has a finite 24-bit head.
_HEAD_LIMIT = "1e38D"


class FloatSums(NativeAggregator):
    """SUM and AVG are declared by `whole_sums`, for all numbers."""

    kinds = ("sum",)
    combined_by = ADD_FLOAT

    def keeps(self, planned: PlannedArgument) -> bool:
        return planned.argument_type is not None and planned.argument_type.kind is TypeKind.FLOAT

    def fields(self, planned: PlannedArgument) -> tuple[str, ...]:
        return ("high", "low")

    def native_sql(self, planned: PlannedArgument, inputs: Sequence[str]) -> tuple[str, ...]:
        argument = inputs[0]
        double, head = f"CAST({argument} AS DOUBLE)", f"CAST(CAST({argument} AS FLOAT) AS DOUBLE)"
        is_small = f"abs({argument}) < {_HEAD_LIMIT}"
        return (f"sum(if({is_small}, {head}, {double}))", f"sum(if({is_small}, {double} - {head}, 0D))")

    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        return ComponentColumns((AddFloat(as_floats(native[0]), as_floats(native[1])),), valid_of(native[0]))

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        high, low = set_tuples.zeros(np.float64), set_tuples.zeros(np.float64)
        sum_floats(*set_tuples.where(read, read.argument), set_tuples.argument(read).floats, high, low)
        valid = valid_in(set_tuples, read)
        return ComponentColumns((AddFloat(set_tuples.taken(high), set_tuples.taken(low)),), valid)

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        # A double-double as the nearest double; a single cell is a head and a remainder that were never added up.
        pair, valid = combined[0].limbs[0], combined[0].valid
        total = pair.high + pair.low
        if aggregate.function in SUMS:
            return with_nulls(total, valid)
        with np.errstate(divide="ignore", invalid="ignore"):
            return with_nulls(total / combined[1].limbs[0].value, valid)

    def scale_sql(self, aggregate: Aggregate) -> str:
        return f"{aggregate.function}({size_sql(aggregate)})"
