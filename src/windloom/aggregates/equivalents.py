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

#: What functions of other tools are called here, where the most similar name would be a function that means another.
_MEANT: dict[str, str] = {
    "any_value": "arbitrary",
    "approx_count_distinct": "approx_distinct hll ndv uniq",
    "approx_percentile": "quantile_disc quantileexact",
    "approx_top": "approx_top_count approx_topk",
    "array_agg": "grouparray group_array list",
    "avg": "average favg",
    "bit_and": "bitand_agg",
    "bit_or": "bitor_agg",
    "bit_xor": "bitxor_agg",
    "bool_and": "booland_agg logical_and",
    "bool_or": "boolor_agg logical_or",
    "collect_set": "array_unique_agg groupuniqarray",
    "corr": "correlation",
    "count": "count_big count_star",
    "count(DISTINCT x)": "count_distinct countdistinct distinct_count nunique uniqexact",
    "count_if": "countif",
    "covar_pop": "covarpop",
    "covar_samp": "cov covar covariance covarsamp",
    "date_format": "strftime",
    "first": "earliest",
    "if": "iif ifelse",
    "last": "latest anylast any_last",
    "listagg": "group_concat list_agg wm_concat",
    "max_by": "arg_max argmax idxmax",
    "min_by": "arg_min argmin idxmin",
    "quantile": "quantile_cont quantiles",
    "regexp_like": "regexp_matches",
    "regr_intercept": "intercept",
    "regr_r2": "r2",
    "regr_slope": "slope",
    "split": "string_split",
    "stddev_pop": "std_pop stddev_p stddevpop stdevp",
    "stddev_samp": "std_samp stddevsamp stdev",
    "sum": "fsum kahan_sum",
    "to_timestamp": "strptime",
    "top": "topk top_k",
    "try_divide": "safe_divide",
    "unix_timestamp": "epoch",
    "var_pop": "var_population variance_pop varp varpop",
    "var_samp": "var var_sample variance_samp vars varsamp",
    **{f"{name}(x) FILTER (WHERE condition)": f"{name}if" for name in ("avg", "max", "min", "sum")},
    "exp(avg(ln(x)))": "geomean geometric_mean",
    "sum(x * w) / sum(w)": "avgweighted wavg weighted_avg",
}
#: Functions of other tools that have no like here, although a name is similar.
_UNLIKE = """
    all approx_top_sum array_concat_agg bit_not bitstring_agg bool_xor corr_pop entropy first_n harmonic_mean increase
    irate json_agg json_arrayagg jsonb_agg kurt kurtosis_samp lag lead mad map_agg none nth_value ntile object_agg prod
    product range_agg rank rate row_number sem skew skewness_samp total xmlagg
"""

#: The names of functions of other tools, with what they are here; empty if nothing means the same.
FOREIGN: dict[str, str] = dict.fromkeys(_UNLIKE.split(), "") | {
    name: meant for meant, names in _MEANT.items() for name in names.split()
}


def near_functions(name: str, others: Iterable[str]) -> list[str]:
    """Return the aggregates, and other functions, that an unknown name may mean, the closest first."""
    if (known := FOREIGN.get(name.lower())) is not None:
        return [known] if known else []
    return closest(name, [*FUNCTIONS, *EQUIVALENTS, *others])
