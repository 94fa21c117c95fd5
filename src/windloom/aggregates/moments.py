"""Moments: count, mean and sum of squared deviations, merged by the method of Chan, Golub and LeVeque."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import NativeAggregator, Parts, PlannedArgument, Refuse, double_type, size_sql
from windloom.aggregates.columns import AnyLifted, ComponentColumns
from windloom.kernels.families import MOMENTS, Moments
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import add_squares, sum_values
from windloom.model.aggregate import Aggregate, Function
from windloom.model.types import Column, DataType, as_floats, with_nulls


class SecondMoments(NativeAggregator):
    kinds = ("moments",)
    combined_by = MOMENTS
    counts_values = False
    functions = (
        Function("var_pop", kinds, double_type),
        Function("var_samp", kinds, double_type, {"variance": ()}),
        Function("stddev_pop", kinds, double_type),
        Function("stddev_samp", kinds, double_type, {"stddev": (), "std": ()}),
    )

    def fields(self, planned: PlannedArgument) -> tuple[str, ...]:
        return ("count", "mean", "variance")

    def native_sql(self, planned: PlannedArgument, inputs: Sequence[str]) -> tuple[str, ...]:
        number = f"CAST({inputs[0]} AS DOUBLE)"
        return (f"count({inputs[0]})", f"avg({number})", f"var_pop({number})")

    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        count = as_floats(native[0])
        # The squared deviations are Spark's variance of a slice times its count; NULL if nothing was counted.
        return ComponentColumns((Moments(count, as_floats(native[1]), as_floats(native[2]) * count),))

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        where, values = set_tuples.where(read, read.argument), set_tuples.argument(read).floats
        count = set_tuples.counts(read, read.argument)
        mean, square = set_tuples.zeros(np.float64), set_tuples.zeros(np.float64)
        sum_values(*where, values, mean)
        with np.errstate(invalid="ignore"):
            mean /= np.maximum(count, 1)
        add_squares(*where, values, mean, square)
        count = set_tuples.taken(count).astype(np.float64)
        return ComponentColumns((Moments(count, set_tuples.taken(mean), set_tuples.taken(square)),))

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        count, square = combined[0].limbs[0].count, combined[0].limbs[0].square
        less = 1.0 if aggregate.function.endswith("samp") else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            # Rounding may leave a tiny negative sum of squares if all values are equal.
            variance = np.where(square < 0.0, 0.0, square) / (count - less)
            values = np.sqrt(variance) if aggregate.function.startswith("stddev") else variance
        return with_nulls(values, count > less)

    def scale_sql(self, aggregate: Aggregate) -> str:
        size = size_sql(aggregate)
        scale = f"avg({size} * {size})"
        if aggregate.function.endswith("samp"):
            scale = f"sum({size} * {size}) / greatest(count({size}) - 1, 1)"
        return f"sqrt({scale})" if aggregate.function.startswith("stddev") else scale
