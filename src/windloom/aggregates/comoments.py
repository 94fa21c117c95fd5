"""Comoments: how two columns vary together, over the tuples in which both have a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import NativeAggregator, Parts, PlannedArgument, Refuse, double_type
from windloom.aggregates.columns import AnyLifted, ComponentColumns
from windloom.kernels.families import Family, declare
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import fold_values
from windloom.model.aggregate import Aggregate, Component, Function, Property
from windloom.model.types import Column, DataType, as_floats, with_nulls


class CoMoments(NamedTuple):
    """Means, and sums of products of the deviations from them: of the first argument, of the second, of both."""

    count: Any
    mean_first: Any
    mean_second: Any
    square_first: Any
    square_second: Any
    product: Any


def _merge(left: Any, right: Any) -> Any:
    # As for moments, only differences of means are multiplied. Equal values differ by nothing, so that the squares of a
    # constant are exactly 0, and its correlation is NULL instead of what rounding leaves.
    if right.count == 0.0:
        return left
    if left.count == 0.0:
        return right
    count = left.count + right.count
    share = right.count / count
    weight = left.count * share
    first = right.mean_first - left.mean_first
    second = right.mean_second - left.mean_second
    return CoMoments(
        count,
        left.mean_first + first * share,
        left.mean_second + second * share,
        left.square_first + right.square_first + first * first * weight,
        left.square_second + right.square_second + second * second * weight,
        left.product + right.product + first * second * weight,
    )


COMOMENTS = declare(
    Family(
        "comoments",
        CoMoments,
        (np.float64,) * 6,
        Property.ASSOCIATIVE | Property.COMMUTATIVE,
        "block_decomposition",
        costs_like="moments",
    ),
    _merge,
    (0.0,) * 6,
    ships=True,
)


class PairedMoments(NativeAggregator):
    """The correlations, covariances and regressions of one pair of columns share one component."""

    kinds = ("comoments",)
    combined_by = COMOMENTS
    counts_values = False
    functions = tuple(
        Function(name, ("comoments",), double_type, arguments=2, pairs_numbers=True)
        for name in (
            "corr",
            "covar_pop",
            "covar_samp",
            "regr_slope",
            "regr_intercept",
            "regr_r2",
            "regr_sxx",
            "regr_sxy",
            "regr_syy",
        )
    )

    def inputs(self, component: Component, tick: str) -> tuple[str, ...]:
        assert component.by is not None
        return (*super().inputs(component, tick), component.by.sql)

    def fields(self, planned: PlannedArgument) -> tuple[str, ...]:
        return (*CoMoments._fields, "least_first", "least_second")

    def native_sql(self, planned: PlannedArgument, inputs: Sequence[str]) -> tuple[str, ...]:
        first, second = (f"CAST({argument} AS DOUBLE)" for argument in inputs)
        names = ("count", "avgy", "avgx", "syy", "sxx", "sxy")
        least = (f"min(if({second} IS NOT NULL, {first}, NULL))", f"min(if({first} IS NOT NULL, {second}, NULL))")
        return (*(f"regr_{name}({first}, {second})" for name in names), *least)

    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        count, *means, first, second, product, least_first, least_second = map(as_floats, native)
        # Spark's mean of a constant may differ from it by rounding.
        mean_first = np.where(first == 0.0, least_first, means[0])
        mean_second = np.where(second == 0.0, least_second, means[1])
        return ComponentColumns((COMOMENTS.of(count, mean_first, mean_second, first, second, product),))

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        assert read.by is not None
        first, second = set_tuples.argument(read), set_tuples.tuples.column(read.by)
        count, zeros = np.ones(len(first)), np.zeros(len(first))
        for column in (first, second):
            if column.valid is not None:
                count[~column.valid] = 0.0
        out = COMOMENTS.neutral(len(set_tuples.grid))
        each = COMOMENTS.of(count, first.floats, second.floats, zeros, zeros, zeros)
        fold_values(*set_tuples.where(read, None), each, out)
        return ComponentColumns((COMOMENTS.of(*(set_tuples.taken(values) for values in out)),))

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        count, mean_first, mean_second, first, second, product = combined[0].limbs[0]
        known = count > 0
        with np.errstate(all="ignore"):
            # What deviates from an infinite mean is unknown, also if it is one value, or the mean of a few.
            first = np.where(np.isfinite(mean_first), first, np.nan)
            second = np.where(np.isfinite(mean_second), second, np.nan)
            product = np.where(np.isfinite(mean_first + mean_second), product, np.nan)
            slope = product / second
            match aggregate.function:
                case "corr":
                    values = product / np.sqrt(first) / np.sqrt(second)
                    known = (count > 1) & (first * np.sign(second) != 0.0)
                case "covar_pop":
                    values = product / count
                case "covar_samp":
                    values, known = product / (count - 1.0), count > 1
                case "regr_slope":
                    values, known = slope, known & (second != 0.0)
                case "regr_intercept":
                    values, known = mean_first - slope * mean_second, known & (second != 0.0)
                case "regr_r2":
                    values = np.where(first == 0.0, 1.0, slope * product / first)
                    known &= second != 0.0
                case name:
                    values = {"regr_sxx": second, "regr_sxy": product, "regr_syy": first}[name]
        return with_nulls(values, known)

    def scale_sql(self, aggregate: Aggregate) -> str:
        # A sum of products is off by a share of the products of magnitudes; quotients by what both of their sides are.
        first, second = _paired(aggregate)
        squares = [f"sum({column} * {column})" for column in (first, second)]
        own = [f"nullif(var_pop({column}) * count({column}), 0D)" for column in (first, second)]
        both = f"sqrt({squares[0]}) * sqrt({squares[1]})"
        of_slope = (
            f"({both} + abs(covar_pop({first}, {second})) * {squares[1]} / nullif(var_pop({second}), 0D)) / {own[1]}"
        )
        of_corr = f"({both} / sqrt({own[0]}) / sqrt({own[1]}) + {squares[0]} / {own[0]} + {squares[1]} / {own[1]})"
        match aggregate.function:
            case "corr":
                return of_corr
            case "regr_r2":
                return f"2 * {of_corr}"
            case "covar_pop":
                return f"{both} / nullif(count({first}), 0)"
            case "covar_samp":
                return f"{both} / nullif(count({first}) - 1, 0)"
            case "regr_slope":
                return of_slope
            case "regr_intercept":
                return f"avg(abs({first})) + 2 * {of_slope} * avg(abs({second}))"
        return {"regr_sxx": squares[1], "regr_sxy": both, "regr_syy": squares[0]}[aggregate.function]


def _paired(aggregate: Aggregate) -> tuple[str, str]:
    """Return both arguments as doubles, or NULL where either is NULL or the filter is not satisfied."""
    assert aggregate.argument is not None
    assert aggregate.by is not None
    conditions = [f"({aggregate.argument.sql}) IS NOT NULL", f"({aggregate.by.sql}) IS NOT NULL"]
    if aggregate.where is not None:
        conditions.insert(0, f"CAST({aggregate.where.sql} AS BOOLEAN)")
    where = " AND ".join(conditions)
    first, second = (
        f"(CASE WHEN {where} THEN CAST({argument.sql} AS DOUBLE) END)"
        for argument in (aggregate.argument, aggregate.by)
    )
    return first, second
