"""The Spark SQL functions that a query must not call, and why; every other scalar function is allowed."""

from __future__ import annotations

from windloom.aggregates import FUNCTIONS
from windloom.model.windows import WINDOW_FUNCTIONS

#: Aggregates and window functions Spark knows and Windloom does not (yet).
OTHER_AGGREGATES = frozenset(
    """
    any_value approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg
    bitmap_and_agg bitmap_construct_agg bitmap_or_agg collect_list collect_set collect_union corr
    count_if count_min_sketch covar_pop covar_samp grouping grouping_id histogram_numeric hll_sketch_agg
    hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint
    kll_sketch_agg_double kll_sketch_agg_float kurtosis listagg measure mode percentile_approx percentile_cont
    percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    schema_of_variant_agg skewness string_agg theta_intersection_agg theta_sketch_agg theta_union_agg try_avg
    try_sum tuple_intersection_agg_double tuple_intersection_agg_integer
    tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer vector_avg
    vector_sum counter_diff cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
    """.split()  # noqa: SIM905 - a table of words is easier to keep than a list of strings
)

#: Functions that make several rows from one.
GENERATORS = frozenset(
    """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode
    variant_explode_outer
    """.split()  # noqa: SIM905
)

#: Functions whose result depends on the clock, on chance, on the session or on where a row is stored.
#: With them, a replayed round could give other rows, and two queries could not share results.
CHANGING = frozenset(
    """
    aes_encrypt curdate current_catalog current_database current_date current_path current_role current_schema
    current_time current_timestamp current_timezone current_user getdate input_file_block_length
    input_file_block_start input_file_name localtime localtimestamp monotonically_increasing_id now rand randn random
    randstr session_user shuffle spark_partition_id sysdate today uniform user uuid version
    """.split()  # noqa: SIM905
)

#: Functions that read the clock only if they are called without arguments.
CHANGING_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp", "to_unix_timestamp"})

#: Functions that run code, or that look names up at run time.
CODE = frozenset({"reflect", "java_method", "try_reflect", "identifier"})

#: Functions about Spark's own windows.
WINDOWS = frozenset({*WINDOW_FUNCTIONS, "window_time"})

#: Functions whose first argument may be a bare unit of time.
UNIT_FIRST = frozenset({"timestampadd", "timestampdiff", "date_add", "dateadd", "date_diff", "datediff"})

#: For hints.
SUPPORTED = "supported: " + ", ".join(FUNCTIONS)


def why_refused(name: str, arguments: int) -> tuple[str, str] | None:
    """Return message and hint for a function (by lower-case name) that no query may call, or None."""
    if name in OTHER_AGGREGATES:
        return f"{name}() is not supported yet", SUPPORTED
    if name in GENERATORS:
        return f"{name}() makes several rows from one, which is not supported", "do it in the DataFrame of the stream"
    if name in CHANGING or (name in CHANGING_WITHOUT_ARGUMENTS and arguments == 0):
        return (
            f"{name}() gives another answer each time, so results would depend on when and where they are computed",
            "use the columns of the stream; compute such values in its DataFrame",
        )
    if name in CODE:
        return f"{name}() is not allowed: a query is never run as code", "use the columns and functions of Spark SQL"
    if name in WINDOWS:
        return f"{name}() can only stand in GROUP BY", "the columns window_start and window_end are always reported"
    return None
