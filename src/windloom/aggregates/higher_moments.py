"""Higher moments: count, mean and the sums of squared, cubed and fourth powers of deviations (Pébay)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import NativeAggregator, Parts, PlannedArgument, Refuse, double_type, size_sql
from windloom.aggregates.columns import AnyLifted, ComponentColumns
from windloom.kernels.families import Family, declare
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import fold_values
from windloom.model.aggregate import Aggregate, Function, Property
from windloom.model.types import Column, DataType, as_floats, with_nulls


class FourMoments(NamedTuple):
    """The sums are of the powers of deviations from the mean."""

    count: Any
    mean: Any
    square: Any
    cube: Any
    fourth: Any


def _merge(left: Any, right: Any) -> Any:
    # All terms hold the difference of the means, so that the deviations of a constant are exactly 0.
    if right.count == 0.0:
        return left
    if left.count == 0.0:
        return right
    count = left.count + right.count
    of_left, of_right = left.count / count, right.count / count
    apart = right.mean - left.mean
    weight = left.count * of_right * apart * apart
    skew = of_left - of_right
    return FourMoments(
        count,
        left.mean + apart * of_right,
        left.square + right.square + weight,
        left.cube + right.cube + apart * (weight * skew + 3.0 * (of_left * right.square - of_right * left.square)),
        left.fourth
        + right.fourth
        + apart
        * (
            apart
            * (
                weight * (of_left * of_left - of_left * of_right + of_right * of_right)
                + 6.0 * (of_left * of_left * right.square + of_right * of_right * left.square)
            )
            + 4.0 * (of_left * right.cube - of_right * left.cube)
        ),
    )


FOUR_MOMENTS = declare(
    Family(
        "four_moments",
        FourMoments,
        (np.float64,) * 5,
        Property.ASSOCIATIVE | Property.COMMUTATIVE,
        "block_decomposition",
        costs_like="moments",
    ),
    _merge,
    (0.0,) * 5,
    ships=True,
)


class HigherMoments(NativeAggregator):
    kinds = ("four_moments",)
    combined_by = FOUR_MOMENTS
    counts_values = False
    functions = tuple(Function(name, ("four_moments",), double_type) for name in ("skewness", "kurtosis"))

    def fields(self, planned: PlannedArgument) -> tuple[str, ...]:
        return ("count", "mean", "variance", "skewness", "kurtosis", "least")

    def native_sql(self, planned: PlannedArgument, inputs: Sequence[str]) -> tuple[str, ...]:
        number = f"CAST({inputs[0]} AS DOUBLE)"
        names = ("avg", "var_pop", "skewness", "kurtosis", "min")
        return (f"count({inputs[0]})", *(f"{name}({number})" for name in names))

    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        count, mean, variance, skewness, kurtosis, least = map(as_floats, native)
        # The sums of powers are what Spark's answers are made of; those of a constant are NULL, and read as 0.
        square = variance * count
        with np.errstate(all="ignore"):
            cube = skewness * square * np.sqrt(variance)
            fourth = np.where(square == 0.0, 0.0, (kurtosis + 3.0) * square * variance)
        # Spark's mean of a constant may differ from it by rounding.
        mean = np.where(square == 0.0, least, mean)
        return ComponentColumns((FOUR_MOMENTS.of(count, mean, square, cube, fourth),))

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        values = set_tuples.argument(read).floats
        ones, zeros = np.ones(len(values)), np.zeros(len(values))
        out = FOUR_MOMENTS.neutral(len(set_tuples.grid))
        each = FOUR_MOMENTS.of(ones, values, zeros, zeros, zeros)
        fold_values(*set_tuples.where(read, read.argument), each, out)
        return ComponentColumns((FOUR_MOMENTS.of(*(set_tuples.taken(column) for column in out)),))

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        count, mean, square, cube, fourth = combined[0].limbs[0]
        with np.errstate(all="ignore"):
            square = np.where(np.isfinite(mean), square, np.nan)
            if aggregate.function == "skewness":
                values = np.sqrt(count / square) * cube / square
            else:
                values = count * (fourth / square) / square - 3.0
        return with_nulls(values, (count > 0) & (square != 0.0))

    def scale_sql(self, aggregate: Aggregate) -> str:
        # The sums of powers are off by a share of the powers of magnitudes, and so are their quotients.
        size, power = size_sql(aggregate), 3 if aggregate.function == "skewness" else 4
        number = f"CAST({aggregate.argument} AS DOUBLE)"
        if aggregate.where is not None:
            number = f"CASE WHEN CAST({aggregate.where.sql} AS BOOLEAN) THEN {number} END"
        spread = f"nullif(stddev_pop({number}), 0D)"
        answer = f"(abs({aggregate.function}({number})) + 3)"
        powers = f"avg(power({size}, {power})) / power({spread}, {power})"
        return f"{powers} + 2 * {answer} * avg({size} * {size}) / power({spread}, 2)"
