"""Holistic aggregates as data: what COUNT(DISTINCT x), QUANTILE, TOP and their kin take and return.

No component of fixed size answers them. A slice keeps how often each value occurs in it (source E §2.3.4), or, where an
approximation was asked for, a summary of bounded size.
"""

from __future__ import annotations

from windloom.errors import WindloomError
from windloom.model.approximate import MOST_ENTRIES
from windloom.model.types import BIGINT, DOUBLE, DataType

#: Aggregate to the component it is answered from, by name.
COMPONENT_OF = {
    "count_distinct": "frequencies",
    "quantile": "frequencies",
    "top": "frequencies",
    "frequent": "frequencies",
    "approx_count_distinct": "registers",
    "approx_quantile": "buckets",
    "approx_top": "top_frequencies",
}

#: Those whose answers are not, or not only, decided by the definition; see `model.approximate`, and Algorithm 6.
APPROXIMATE = ("frequent", "approx_count_distinct", "approx_quantile", "approx_top")

#: CQL function name (and the aliases Spark knows) to the aggregate's name; COUNT(DISTINCT x) has a spelling of its own.
HOLISTIC_FUNCTIONS = {
    "median": "quantile",
    "quantile": "quantile",
    "percentile": "quantile",
    "top": "top",
    "frequent": "frequent",
    "approx_count_distinct": "approx_count_distinct",
    "approx_quantile": "approx_quantile",
    "approx_top": "approx_top",
}

_OF_NUMBERS = ("quantile", "approx_quantile")
_COUNTING_FIRST = ("top", "frequent", "approx_top")
#: Names, and not aggregates, that take no constant.
WITHOUT_CONSTANT = ("median", "approx_count_distinct")


def holistic_text(function: str, argument: object, parameters: tuple[float, ...]) -> str:
    """As CQL spells it.

    >>> holistic_text("top", "page", (3,)), holistic_text("count_distinct", "user", ())
    ('top(3, page)', 'count(DISTINCT user)')
    """
    if function == "count_distinct":
        return f"count(DISTINCT {argument})"
    if not parameters:
        return f"{function}({argument})"
    given = ", ".join(str(parameter) for parameter in parameters)
    return f"{function}({given}, {argument})" if takes_number_first(function) else f"{function}({argument}, {given})"


def takes_number_first(function: str) -> bool:
    """TOP(k, x), but QUANTILE(x, p)."""
    return function in _COUNTING_FIRST


def holistic_type(function: str, text: str, argument: object, argument_type: DataType) -> DataType:
    """The type of the answer; refuses what has no order, and numbers asked of what is none. `text` is the aggregate."""
    if function in _OF_NUMBERS and not argument_type.is_numeric:
        raise WindloomError(
            f"cannot take '{text}'",
            f"'{argument}' is of type {argument_type}, which is not a number",
            f"use a numeric column, or cast it: cast({argument} AS double)",
        )
    if not argument_type.is_ordered:
        raise WindloomError(
            f"cannot take '{text}'",
            f"'{argument}' is of type {argument_type}, whose values cannot be told apart and ordered",
            "use a number, string, date, timestamp or boolean",
        )
    if function in _OF_NUMBERS:
        return DOUBLE
    if function in ("count_distinct", "approx_count_distinct"):
        return BIGINT
    items = f"array<struct<value:{argument_type.name},count:bigint>>"
    return DataType.parse(f"struct<items:{items},threshold:bigint>" if function == "frequent" else items)


def check_parameters(function: str, parameters: tuple[float, ...]) -> str | None:
    """What is wrong with them, if anything."""
    (number,) = parameters
    if function == "approx_top" and number > MOST_ENTRIES:
        return f"k is {number}; a slice keeps {MOST_ENTRIES:,} values"
    if takes_number_first(function):
        return None if isinstance(number, int) and number >= 1 else f"k is {number}; it must be a whole number above 0"
    return None if 0 <= number <= 1 else f"p is {number}; it must lie between 0 and 1"
