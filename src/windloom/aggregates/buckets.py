"""Buckets: the number of values in each bucket of a relative width, for approximate quantiles (DDSketch)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.aggregator import argument_sql, double_type
from windloom.aggregates.columns import ListColumns, ListRule
from windloom.aggregates.frequencies import SHARE, Frequencies
from windloom.model.aggregate import (
    FIRST_BUCKET,
    GROWTH,
    INFINITE_BUCKET,
    NAN_BUCKET,
    RELATIVE_ERROR,
    Aggregate,
    Function,
)
from windloom.model.types import DataType


class Buckets(Frequencies):
    kinds = ("buckets",)
    rule = ListRule("buckets")
    value_type = pa.int64()
    functions = (Function("approx_quantile", kinds, double_type, constant=SHARE, is_approximate=True),)

    def woven_sql(self, argument: str, kind: DataType | None) -> str:
        # Buckets are numbered in the order of the values (see `bucket_values`).
        number = f"CAST({argument} AS DOUBLE)"
        size = f"{FIRST_BUCKET}L + CAST(ceil(ln(abs({number})) * {1 / math.log(GROWTH)!r}D) AS BIGINT)"
        size = f"if(abs({number}) = double('infinity'), {INFINITE_BUCKET}L, {size})"
        return (
            f"CASE WHEN isnan({number}) THEN {NAN_BUCKET}L WHEN {number} = 0D THEN 0L"
            f" ELSE CAST(sign({number}) AS BIGINT) * ({size}) END"
        )

    def answer(self, aggregate: Aggregate, question: Any, listed: ListColumns, rows: slice) -> pa.Array:
        total = question.total[rows]
        if not len(listed.dictionary):
            return pa.nulls(len(total), pa.float64())
        values = bucket_values(listed.dictionary.to_numpy(zero_copy_only=False))
        return pa.array(values[question.lower[rows]], mask=total == 0)

    def truth_sql(self, aggregate: Aggregate, tick: str) -> str:
        """Return the value at the rank ⌊p · (n - 1)⌋, counted from 0."""
        argument = argument_sql(aggregate)
        # A window may hold no value, and place 0 is an error even then.
        position = f"greatest(CAST(floor({aggregate.parameters[0]}D * (count({argument}) - 1)) AS INT) + 1, 1)"
        return f"CAST(try_element_at(array_sort(collect_list({argument})), {position}) AS DOUBLE)"

    def is_within(self, aggregate: Aggregate, truth: Any, answer: Any) -> bool:
        if truth is None or answer is None or not math.isfinite(truth):
            return str(truth) == str(answer)
        return bool(abs(answer - truth) <= RELATIVE_ERROR * abs(truth) * (1 + 1e-9))


def bucket_values(buckets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the value that represents a bucket: its relative distances from the lower and the upper end are equal.

    >>> bucket_values(np.array([-1_000_001, 0, 1_000_000, 2_000_000, 3_000_000])).round(4).tolist()
    [-1.01, 0.0, 0.99, inf, nan]
    """
    size = np.abs(buckets)
    exponent = np.where((size > 0) & (size < INFINITE_BUCKET), size - FIRST_BUCKET, 0)
    with np.errstate(over="ignore"):
        values = np.minimum(2 * GROWTH ** exponent.astype(np.float64) / (GROWTH + 1), np.finfo(np.float64).max)
    values = np.where(size >= INFINITE_BUCKET, np.inf, np.where(size == 0, 0.0, values))
    return np.where(buckets >= NAN_BUCKET, np.nan, np.sign(buckets) * values)
