"""Holistic answers: a query's column computed from cells that hold lists."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.kernels.lists import Distinct, Frequent, Lists, Question, Ranked, Registered, Top
from windloom.kernels.locate import Lanes, WindowArrays
from windloom.kernels.memory import new_array
from windloom.kernels.registry import find_technique
from windloom.model.aggregate import Aggregate, ComponentKind
from windloom.model.approximate import FIRST_BUCKET, GROWTH, INFINITE_BUCKET, NAN_BUCKET
from windloom.rounds.listed import Listed


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
        """The same windows over the finer cells between marks: lists are not accumulated up to each mark."""
        lo, hi = runs[self.lanes.lo].astype(np.int32), self.lanes.tail + np.int32(1)
        lanes = replace(self.lanes, lo=lo, hi=hi, runs=np.empty(0, np.int64))  # runs are of the coarse cells
        return ListRows(mark_bounds, mark_starts, self.windows, lanes)

    def column(self, aggregate: Aggregate, listed: Listed, technique: str, queries: NDArray[np.int64]) -> pa.Array:
        """The answers of an aggregate for consecutive queries."""
        groups = len(self.bounds) - 1
        rows = slice(int(self.lanes.bounds[queries[0] * groups]), int(self.lanes.bounds[(queries[-1] + 1) * groups]))
        question = self._question(aggregate, len(listed.dictionary))
        find_technique(technique).evaluate(listed.cells, self.bounds, self.lanes, queries, question)
        return _answer(question, listed, rows)

    def _question(self, aggregate: Aggregate, codes: int) -> Question:
        rows = len(self.lanes)
        match aggregate.function:
            case "count_distinct":
                return Distinct(codes, new_array(rows, np.int64))
            case "approx_count_distinct":
                return Registered(codes, new_array(rows, np.int64))
            case "quantile" | "approx_quantile":
                places = new_array(rows, np.int32), new_array(rows, np.int32)
                return Ranked(codes, float(aggregate.parameters[0]), new_array(rows, np.int64), *places)
            case "top" | "approx_top":
                return Top(codes, int(aggregate.parameters[0]))
            case "frequent":
                k, threshold = int(aggregate.parameters[0]), new_array(rows, np.int64)
                return Frequent(codes, k, self.starts, self.windows, threshold)
        raise KeyError(aggregate.function)


def _answer(question: Question, listed: Listed, rows: slice) -> pa.Array:
    match question:
        case Distinct() | Registered():
            return pa.array(question.found[rows])
        case Ranked():
            return _quantiles(question, listed, rows)
        case Top():
            assert question.items is not None
            return _items(question.items, listed.dictionary, rows)
        case Frequent():
            assert question.items is not None
            items = _items(question.items, listed.dictionary, rows)
            return pa.StructArray.from_arrays([items, pa.array(question.threshold[rows])], names=["items", "threshold"])


def _quantiles(found: Ranked, listed: Listed, rows: slice) -> pa.Array:
    """Between two values by where the place lies between their ranks, in Spark's order of operations."""
    total = found.total[rows]
    if not len(listed.dictionary):
        return pa.nulls(len(total), pa.float64())
    if listed.kind is ComponentKind.BUCKETS:
        values = bucket_values(listed.dictionary.to_numpy(zero_copy_only=False))
        return pa.array(values[found.lower[rows]], mask=total == 0)
    # As Spark casts: integers beyond 2^53 to the nearest double.
    values = listed.dictionary.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    place = (total - 1) * found.share
    below = np.floor(place)
    lower, higher = values[found.lower[rows]], values[found.higher[rows]]
    with np.errstate(invalid="ignore"):
        between = lower + (place - below) * (higher - lower)
    return pa.array(np.where(found.lower[rows] == found.higher[rows], lower, between), mask=total == 0)


def bucket_values(buckets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The value that stands for all of a bucket: as far from its lower end as from its upper, relatively.

    >>> bucket_values(np.array([-1_000_001, 0, 1_000_000, 2_000_000, 3_000_000])).round(4).tolist()
    [-1.01, 0.0, 0.99, inf, nan]
    """
    size = np.abs(buckets)
    exponent = np.where((size > 0) & (size < INFINITE_BUCKET), size - FIRST_BUCKET, 0)
    with np.errstate(over="ignore"):
        values = np.minimum(2 * GROWTH ** exponent.astype(np.float64) / (GROWTH + 1), np.finfo(np.float64).max)
    values = np.where(size >= INFINITE_BUCKET, np.inf, np.where(size == 0, 0.0, values))
    return np.where(buckets >= NAN_BUCKET, np.nan, np.sign(buckets) * values)


def _items(items: Lists, dictionary: pa.Array, rows: slice) -> pa.Array:
    """Lists of (value, count), one a row."""
    bounds = items.bounds[rows.start : rows.stop + 1]
    entries = slice(int(bounds[0]), int(bounds[-1]))
    values = dictionary.take(pa.array(items.codes[entries]))
    pairs = pa.StructArray.from_arrays([values, pa.array(items.counts[entries])], names=["value", "count"])
    return pa.ListArray.from_arrays(pa.array((bounds - bounds[0]).astype(np.int32)), pairs)
