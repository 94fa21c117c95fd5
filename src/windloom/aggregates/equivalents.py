"""Aggregates without an aggregator of their own: those that mean an expression of others, and those that are refused.

Together with the functions of the registry, these are all aggregates of Spark 4; a test compares them with its list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windloom.aggregates.registry import FUNCTIONS
from windloom.errors import closest


@dataclass(frozen=True, slots=True)
class Equivalent:
    """What a function means: a text in which its arguments, by name, stand for what is written."""

    arguments: tuple[str, ...]
    text: str


_PAIRS = "FILTER (WHERE y IS NOT NULL AND x IS NOT NULL)"

_LISTED = "CASE WHEN count(x) > 0 THEN array_join(collect_list(x), separator) END"

#: Functions that are written with others. Each of the aggregates in a text takes the FILTER of the call.
EQUIVALENTS: dict[str, Equivalent] = {
    "any_value": Equivalent(("x",), "first(x)"),
    "listagg": Equivalent(("x", "separator"), _LISTED),
    "string_agg": Equivalent(("x", "separator"), _LISTED),
    "count_if": Equivalent(("condition",), "count(*) FILTER (WHERE condition)"),
    "regr_count": Equivalent(("y", "x"), f"count(*) {_PAIRS}"),
    "regr_avgx": Equivalent(("y", "x"), f"avg(x) {_PAIRS}"),
    "regr_avgy": Equivalent(("y", "x"), f"avg(y) {_PAIRS}"),
}

#: What `f(p) WITHIN GROUP (ORDER BY x)` means.
WITHIN_GROUP: dict[str, Equivalent] = {
    "mode": Equivalent((), "mode(x)"),
    "percentile_cont": Equivalent(("p",), "quantile(x, p)"),
    "percentile_disc": Equivalent(("p",), "CAST(approx_percentile(x, p) AS DOUBLE)"),
}

_NO_SKETCH = "a sketch cannot be an answer"

#: What to do instead of aggregates of Spark that are refused: never something that only looks alike.
_INSTEAD: dict[str, str] = {
    "top(k, x) counts exactly; its fields are value and count": """
        approx_top_k approx_top_k_accumulate approx_top_k_combine
    """,
    f"{_NO_SKETCH}; the number that it estimates is approx_count_distinct(x), or exactly count(DISTINCT x)": """
        hll_sketch_agg hll_union_agg theta_sketch_agg theta_union_agg
    """,
    f"{_NO_SKETCH}; count what satisfies two conditions with FILTER": "theta_intersection_agg",
    f"{_NO_SKETCH}; the values that it estimates are quantile(x, p) or approx_quantile(x, p)": """
        kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
        kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    """,
    f"{_NO_SKETCH}; sum the values of each key in a query that is grouped by it": """
        tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer
        tuple_intersection_agg_double tuple_intersection_agg_integer
    """,
    f"{_NO_SKETCH}; the number of distinct positions is count(DISTINCT x)": """
        bitmap_construct_agg bitmap_or_agg bitmap_and_agg
    """,
    f"{_NO_SKETCH}; one value is counted by count_if(x = value)": "count_min_sketch",
    "its bins depend on the order of the tuples; group by bins of your own, as floor(x / 10)": "histogram_numeric",
    "it tells the groupings of ROLLUP and CUBE apart; write one query for each grouping": "grouping grouping_id",
    "it belongs to metric views; write the aggregate itself": "measure",
    "explode the arrays in the DataFrame of the stream, and aggregate their elements": """
        collect_union vector_avg vector_sum
    """,
    "cast the fields that you need to types of their own": "schema_of_variant_agg",
}

#: The aggregates of Spark that are refused, with what to do instead.
REFUSED: dict[str, str] = {name: hint for hint, names in _INSTEAD.items() for name in names.split()}

#: Names of other tools for functions of Spark, where the most similar name would be a function that means another.
FOREIGN: dict[str, str] = {
    "approx_distinct": "approx_count_distinct",
    "arg_max": "max_by",
    "arg_min": "min_by",
    "argmax": "max_by",
    "argmin": "min_by",
    "average": "avg",
    "countif": "count_if",
    "logical_and": "bool_and",
    "logical_or": "bool_or",
    "quantile_cont": "quantile",
    "quantile_disc": "approx_percentile",
    "stdev": "stddev_samp",
    "stdevp": "stddev_pop",
    "var": "var_samp",
    "varp": "var_pop",
    "variance_pop": "var_pop",
    "variance_samp": "var_samp",
}


def near_functions(name: str, others: Iterable[str]) -> list[str]:
    """Return the aggregates, and other functions, that an unknown name may mean, the closest first."""
    if name.lower() in FOREIGN:
        return [FOREIGN[name.lower()]]
    return closest(name, [*FUNCTIONS, *EQUIVALENTS, *others])
