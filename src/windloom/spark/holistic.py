"""Holistic aggregates as Spark itself computes them exactly: what answers are verified against."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.errors import WindloomError
from windloom.model.aggregate import Aggregate
from windloom.model.approximate import is_within_bounds
from windloom.model.holistic import APPROXIMATE
from windloom.model.query import Query


def exact_sql(aggregate: Aggregate) -> str:
    """An aggregate expression of Spark SQL; of an approximate aggregate what `is_within_bounds` takes for the truth."""
    assert aggregate.argument is not None
    argument = aggregate.argument.sql
    match aggregate.function:
        case "count_distinct" | "approx_count_distinct":
            return f"count(DISTINCT {argument})"
        case "quantile":
            return f"percentile({argument}, {aggregate.parameters[0]})"
        case "approx_quantile":
            # A window may hold no value; place 0 is an error even there.
            place = f"greatest(CAST(floor({aggregate.parameters[0]}D * (count({argument}) - 1)) AS INT) + 1, 1)"
            return f"CAST(try_element_at(array_sort(collect_list({argument})), {place}) AS DOUBLE)"
        case "top":
            return f"slice({_frequencies(argument)}, 1, {aggregate.parameters[0]})"
        case "frequent" | "approx_top":
            return _frequencies(argument)
    raise KeyError(aggregate.function)


def agree(aggregate: Aggregate, expected: pa.ChunkedArray, answers: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which approximate answers keep what is promised of them."""
    pairs = zip(expected.to_pylist(), answers.to_pylist(), strict=True)
    kept = [is_within_bounds(aggregate.function, aggregate.parameters, truth, answer) for truth, answer in pairs]
    return np.array(kept, np.bool_)


def refuse_unverifiable(query: Query) -> None:
    """What is computed from an approximate answer has no bound of its own."""
    places = {f"__a{i}": one for i, one in enumerate(query.aggregates) if one.function in APPROXIMATE}
    computed = [output.expression for output in query.outputs if output.expression is not None]
    computed += [] if query.having is None else [query.having]
    for expression in computed:
        for place in set(expression.columns) & set(places):
            raise WindloomError(
                f"query '{query.name}' cannot be verified",
                f"it computes with '{places[place]}', which is approximate, and nothing bounds the outcome",
                "verify a query that reports the aggregate as it stands",
            )


def _frequencies(argument: str) -> str:
    """(value, count) of all values, the most frequent first, of equally frequent ones the smallest.

    The variables have names that no column has: one of theirs would take the place of a column in `argument`.
    """
    values = f"collect_list({argument})"
    counted = (
        f"transform(array_distinct({values}), __one -> named_struct("
        f"'value', __one, 'count', CAST(size(filter({values}, __each -> __each <=> __one)) AS BIGINT)))"
    )
    order = "CASE WHEN __l.count > __r.count THEN -1 WHEN __l.count < __r.count THEN 1"
    order += " WHEN __l.value < __r.value THEN -1 WHEN __l.value > __r.value THEN 1 ELSE 0 END"
    return f"array_sort({counted}, (__l, __r) -> {order})"
