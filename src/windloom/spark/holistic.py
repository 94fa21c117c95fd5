"""Holistic aggregates as Spark itself computes them exactly: what answers are verified against."""

from __future__ import annotations

from windloom.model.aggregate import Aggregate


def exact_sql(aggregate: Aggregate) -> str:
    """An aggregate expression of Spark SQL."""
    assert aggregate.argument is not None
    argument = aggregate.argument.sql
    match aggregate.function:
        case "count_distinct":
            return f"count(DISTINCT {argument})"
        case "quantile":
            return f"percentile({argument}, {aggregate.parameters[0]})"
        case "top":
            return f"slice({_frequencies(argument)}, 1, {aggregate.parameters[0]})"
    raise KeyError(aggregate.function)


def _frequencies(argument: str) -> str:
    """(value, count) of all values, the most frequent first, of equally frequent ones the smallest."""
    values = f"collect_list({argument})"
    counted = (
        f"transform(array_distinct({values}), v -> named_struct("
        f"'value', v, 'count', CAST(size(filter({values}, u -> u <=> v)) AS BIGINT)))"
    )
    return (
        f"array_sort({counted}, (a, b) -> CASE WHEN a.count > b.count THEN -1 WHEN a.count < b.count THEN 1"
        " WHEN a.value < b.value THEN -1 WHEN a.value > b.value THEN 1 ELSE 0 END)"
    )
