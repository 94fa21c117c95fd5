"""Frequencies: how often each value occurs, for aggregates that no summary of fixed size answers (source E §2.3.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import EXACT, ListAggregator, ListWindows, argument_sql, double_type, size_sql
from windloom.aggregates.columns import ListColumns, ListRule
from windloom.errors import WindloomError
from windloom.kernels.compiling import new_array
from windloom.kernels.families import FREQUENCIES
from windloom.kernels.lists.lists import (
    Distinct,
    Frequent,
    Lists,
    Members,
    Question,
    RankedLists,
    RegisterQuestion,
    Top,
)
from windloom.model.aggregate import Aggregate, Constant, Function
from windloom.model.arrays import Codes, Ints, Mask
from windloom.model.types import BIGINT, DataType, TypeKind


def check_order(aggregate: Aggregate, argument: DataType) -> None:
    """Refuse values that cannot be listed."""
    if not argument.is_ordered:
        raise WindloomError(
            f"cannot take '{aggregate}'",
            f"'{aggregate.argument}' is of type {argument}, whose values cannot be compared and ordered",
            "use a number, string, date, timestamp or boolean",
        )


def count_type(aggregate: Aggregate, argument: DataType) -> DataType:
    check_order(aggregate, argument)
    return BIGINT


def listed_type(aggregate: Aggregate, argument: DataType) -> DataType:
    check_order(aggregate, argument)
    return argument


def array_type(aggregate: Aggregate, argument: DataType) -> DataType:
    check_order(aggregate, argument)
    return DataType.parse(f"array<{argument.name}>")


def ranked_type(aggregate: Aggregate, argument: DataType) -> DataType:
    """Return the type of the argument, of which Spark takes approximate percentiles: numbers and times."""
    if argument.kind not in (TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ):
        aggregate.check_number(argument)
    return argument


def items_type(aggregate: Aggregate, argument: DataType) -> DataType:
    check_order(aggregate, argument)
    return DataType.parse(f"array<struct<value:{argument.name},count:bigint>>")


def frequent_type(aggregate: Aggregate, argument: DataType) -> DataType:
    return DataType.parse(f"struct<items:{items_type(aggregate, argument).name},threshold:bigint>")


def check_count(number: float) -> str | None:
    is_count = isinstance(number, int) and number >= 1
    return None if is_count else f"k is {number}; it must be a whole number above 0"


SHARE = Constant("p", False, "price, 0.95", lambda p: None if 0 <= p <= 1 else f"p is {p}; it must lie between 0 and 1")
COUNT = Constant("k", True, "10, page", check_count)


class Frequencies(ListAggregator):
    """Also what other lists have in common with frequencies: questions, answers and their verification."""

    kinds = ("frequencies",)
    combined_by = FREQUENCIES
    rule = ListRule("frequencies")
    functions: tuple[Function, ...] = (
        Function("count_distinct", kinds, count_type, is_distinct=True),
        Function("quantile", kinds, double_type, {"median": (0.5,), "percentile": ()}, SHARE),
        Function("top", kinds, items_type, constant=COUNT),
        Function("frequent", kinds, frequent_type, constant=COUNT, is_approximate=True),
        Function("approx_percentile", kinds, ranked_type, {"percentile_approx": ()}, SHARE),
        Function("mode", kinds, listed_type),
        Function("collect_set", kinds, array_type),
    )

    def question(self, aggregate: Aggregate, context: ListWindows) -> Question:
        match aggregate.function:
            case "count_distinct":
                return Distinct(context.codes, new_array(context.rows, np.int64))
            case "quantile" | "approx_quantile" | "approx_percentile":
                places = new_array(context.rows, np.int32), new_array(context.rows, np.int32)
                share, total = float(aggregate.parameters[0]), new_array(context.rows, np.int64)
                return RankedLists(context.codes, share, total, *places, aggregate.function == "approx_percentile")
            case "mode":
                return Top(context.codes, 1)
            case "collect_set":
                return Members(context.codes, repeats=False)
            case "top" | "approx_top":
                return Top(context.codes, int(aggregate.parameters[0]))
        k, threshold = int(aggregate.parameters[0]), new_array(context.rows, np.int64)
        return Frequent(context.codes, k, context.starts, context.windows, threshold)

    def answer(self, aggregate: Aggregate, question: Any, listed: ListColumns, rows: slice) -> pa.Array:
        if aggregate.function == "mode":
            bounds = question.items.bounds[rows.start : rows.stop + 1]
            return _values(listed, question.items.codes, bounds[:-1], bounds[1:] > bounds[:-1])
        match question:
            case Members(items=Lists() as lists):
                bounds = lists.bounds[rows.start : rows.stop + 1]
                return arrays_of(listed.dictionary, lists.codes[bounds[0] : bounds[-1]], bounds - bounds[0])
            case RankedLists(is_one=True):
                return _values(listed, question.lower, np.arange(rows.start, rows.stop), question.total[rows] > 0)
            case Distinct() | RegisterQuestion():
                return pa.array(question.found[rows])
            case RankedLists():
                return _quantiles(question, listed, rows)
            case Top():
                return items_of(question, listed, rows)
        threshold = pa.array(question.threshold[rows])
        return pa.StructArray.from_arrays([items_of(question, listed, rows), threshold], names=["items", "threshold"])

    def truth_sql(self, aggregate: Aggregate, tick: str) -> str:
        argument = argument_sql(aggregate)
        match aggregate.function:
            case "count_distinct" | "approx_count_distinct":
                return f"count(DISTINCT {argument})"
            case "quantile":
                return f"percentile({argument}, {aggregate.parameters[0]})"
            case "top":
                return f"slice({frequencies_sql(argument)}, 1, {aggregate.parameters[0]})"
            case "approx_percentile":
                # Spark's own function finds no place for NaN.
                place = f"greatest(CAST(ceil({aggregate.parameters[0]}D * count({argument})) AS INT), 1)"
                return f"try_element_at(array_sort(collect_list({argument})), {place})"
            case "collect_set":
                return f"array_sort(array_distinct(collect_list({argument})))"
            case "mode":
                return f"mode({argument}, true)"
        return frequencies_sql(argument)

    def scale_sql(self, aggregate: Aggregate) -> str:
        # Versions of Spark differ in how they interpolate between two values.
        return f"max({size_sql(aggregate)})" if aggregate.function == "quantile" else EXACT

    def is_within(self, aggregate: Aggregate, truth: Any, answer: Any) -> bool:
        """Return whether an answer of FREQUENT has no false positives."""
        counts = {str(item["value"]): item["count"] for item in truth}
        return all(answer["threshold"] < item["count"] <= counts.get(str(item["value"]), 0) for item in answer["items"])


def items_of(question: Top | Frequent, listed: ListColumns, rows: slice) -> pa.Array:
    """Return lists of (value, count), one for each row."""
    lists = question.items
    assert isinstance(lists, Lists)
    bounds = lists.bounds[rows.start : rows.stop + 1]
    entries = slice(int(bounds[0]), int(bounds[-1]))
    values = listed.dictionary.take(pa.array(lists.codes[entries]))
    pairs = pa.StructArray.from_arrays([values, pa.array(lists.counts[entries])], names=["value", "count"])
    return pa.ListArray.from_arrays(pa.array((bounds - bounds[0]).astype(np.int32)), pairs)


def arrays_of(dictionary: pa.Array, codes: Codes, bounds: Ints) -> pa.Array:
    """Return an array of values for each row, from their codes."""
    if int(bounds[-1]) >= 2**31:
        raise WindloomError(
            "the lists of one block of answers have too many values",
            f"they are {int(bounds[-1]):,} together",
            "shorten the windows, or group by more columns",
        )
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), dictionary.take(pa.array(codes)))


def _values(listed: ListColumns, codes: Codes, places: Ints, known: Mask) -> pa.Array:
    """Return the values of the codes at some places, and NULL where none is known."""
    return listed.dictionary.take(pa.array(codes[places[known]]).take(pa.array(np.cumsum(known) - 1, mask=~known)))


def _quantiles(ranked: RankedLists, listed: ListColumns, rows: slice) -> pa.Array:
    """Interpolate between two values by the place between their ranks, in Spark's order of operations."""
    total = ranked.total[rows]
    if not len(listed.dictionary):
        return pa.nulls(len(total), pa.float64())
    # Like Spark, cast integers beyond 2^53 to the nearest double.
    values = listed.dictionary.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    position = (total - 1) * ranked.share
    below = np.floor(position)
    lower, higher = values[ranked.lower[rows]], values[ranked.higher[rows]]
    with np.errstate(invalid="ignore"):
        between = lower + (position - below) * (higher - lower)
    return pa.array(np.where(ranked.lower[rows] == ranked.higher[rows], lower, between), mask=total == 0)


def frequencies_sql(argument: str) -> str:
    """Return (value, count) of all values, the most frequent first; among equally frequent ones, the smallest first.

    The variables have names that no column has, since they would hide a column of the same name in `argument`.
    """
    values = f"collect_list({argument})"
    counts = (
        f"transform(array_distinct({values}), __one -> named_struct("
        f"'value', __one, 'count', CAST(size(filter({values}, __each -> __each <=> __one)) AS BIGINT)))"
    )
    order = "CASE WHEN __l.count > __r.count THEN -1 WHEN __l.count < __r.count THEN 1"
    order += " WHEN __l.value < __r.value THEN -1 WHEN __l.value > __r.value THEN 1 ELSE 0 END"
    return f"array_sort({counts}, (__l, __r) -> {order})"
