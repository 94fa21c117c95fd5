"""Holistic answers: a query's column computed from cells that hold lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.kernels.lists import Distinct, Lists, Question, Ranked, Top
from windloom.kernels.locate import Lanes
from windloom.kernels.memory import new_array
from windloom.kernels.registry import find_technique
from windloom.model.aggregate import Aggregate
from windloom.rounds.listed import Listed


@dataclass(frozen=True, slots=True)
class ListRows:
    """The lanes of a block, and the bounds of their groups, in terms of the cells whose lists are read."""

    bounds: NDArray[np.int64]
    lanes: Lanes

    def on_marks(self, runs: NDArray[np.int64], mark_bounds: NDArray[np.int64]) -> ListRows:
        """The same windows over the finer cells between marks: lists are not accumulated up to each mark."""
        lanes = self.lanes
        lo, hi = runs[lanes.lo].astype(np.int32), lanes.tail + np.int32(1)
        return ListRows(mark_bounds, Lanes(lanes.bounds, lanes.window_start, lo, hi, lanes.tail))

    def column(self, aggregate: Aggregate, listed: Listed, technique: str, queries: NDArray[np.int64]) -> pa.Array:
        """The answers of an aggregate for consecutive queries."""
        groups = len(self.bounds) - 1
        rows = slice(int(self.lanes.bounds[queries[0] * groups]), int(self.lanes.bounds[(queries[-1] + 1) * groups]))
        question = _question(aggregate, len(listed.dictionary), len(self.lanes))
        find_technique(technique).evaluate(listed.cells, self.bounds, self.lanes, queries, question)
        return _answer(question, listed.dictionary, rows)


def _question(aggregate: Aggregate, codes: int, rows: int) -> Question:
    match aggregate.function:
        case "count_distinct":
            return Distinct(codes, new_array(rows, np.int64))
        case "quantile":
            places = new_array(rows, np.int32), new_array(rows, np.int32)
            return Ranked(codes, float(aggregate.parameters[0]), new_array(rows, np.int64), *places)
        case "top":
            return Top(codes, int(aggregate.parameters[0]))
    raise KeyError(aggregate.function)


def _answer(question: Question, dictionary: pa.Array, rows: slice) -> pa.Array:
    match question:
        case Distinct():
            return pa.array(question.found[rows])
        case Ranked():
            return _quantiles(question, dictionary, rows)
        case Top():
            assert question.items is not None
            return _items(question.items, dictionary, rows)


def _quantiles(found: Ranked, dictionary: pa.Array, rows: slice) -> pa.Array:
    """Between two values by where the place lies between their ranks, in Spark's order of operations."""
    total = found.total[rows]
    if not len(dictionary):
        return pa.nulls(len(total), pa.float64())
    values = dictionary.cast(pa.float64()).to_numpy(zero_copy_only=False)
    place = (total - 1) * found.share
    below = np.floor(place)
    lower, higher = values[found.lower[rows]], values[found.higher[rows]]
    with np.errstate(invalid="ignore"):
        between = lower + (place - below) * (higher - lower)
    return pa.array(np.where(found.lower[rows] == found.higher[rows], lower, between), mask=total == 0)


def _items(items: Lists, dictionary: pa.Array, rows: slice) -> pa.Array:
    """Lists of (value, count), one a row."""
    bounds = items.bounds[rows.start : rows.stop + 1]
    entries = slice(int(bounds[0]), int(bounds[-1]))
    values = dictionary.take(pa.array(items.codes[entries]))
    pairs = pa.StructArray.from_arrays([values, pa.array(items.counts[entries])], names=["value", "count"])
    return pa.ListArray.from_arrays(pa.array((bounds - bounds[0]).astype(np.int32)), pairs)
