"""The value of an expression for a row without a match, in which all columns of some sides are NULL."""

from __future__ import annotations

from collections.abc import Callable, Container
from enum import Enum

from windloom.model.expression import Apply, Cast, ColumnRef, ConstantValue, Scalar


class NullRowValue(Enum):
    """Certain knowledge about a value."""

    NULL = "NULL"
    TRUE = "TRUE"
    FALSE = "FALSE"
    PRESENT = "not NULL"
    UNKNOWN = "unknown"


_CONDITIONS = (NullRowValue.TRUE, NullRowValue.FALSE)
_NEGATIONS = {
    NullRowValue.TRUE: NullRowValue.FALSE,
    NullRowValue.FALSE: NullRowValue.TRUE,
    NullRowValue.NULL: NullRowValue.NULL,
}

#: Operators and functions that give NULL if any of their arguments is NULL.
_STRICT = frozenset(
    """
    + - * / % div negative positive = <> < <= > >= abs floor ceil ceiling round bround sqrt cbrt exp ln log log2 log10
    power pow mod pmod sign signum upper ucase lower lcase initcap reverse trim ltrim rtrim btrim length char_length
    left right repeat substring substr lpad rpad locate position instr concat replace translate startswith endswith
    contains year quarter month day dayofmonth dayofweek dayofyear weekday weekofyear hour minute second date_trunc
    trunc to_date date_add date_sub add_months datediff last_day date_format from_unixtime unix_timestamp unix_seconds
    unix_millis unix_micros unix_date tinyint smallint int bigint float double decimal string boolean date timestamp
    """.split()  # noqa: SIM905 - a table of words is easier to keep than a list of strings
)


def on_null_row(tree: Scalar, columns: Container[str]) -> NullRowValue:
    """Return the value of an expression if these columns are NULL and nothing is known of the others."""
    match tree:
        case ColumnRef(column=column):
            return NullRowValue.NULL if column in columns else NullRowValue.UNKNOWN
        case ConstantValue(value=value):
            if isinstance(value, bool):
                return NullRowValue.TRUE if value else NullRowValue.FALSE
            return NullRowValue.NULL if value is None else NullRowValue.PRESENT
        case Cast(operand=operand):
            return _strict([on_null_row(operand, columns)])
        case Apply(name=name, operands=operands):
            values = [on_null_row(operand, columns) for operand in operands]
            if name in _STRICT:
                return _strict(values)
            rule = _RULES.get(name)
            return NullRowValue.UNKNOWN if rule is None else rule(values)
    return NullRowValue.UNKNOWN


def _strict(values: list[NullRowValue]) -> NullRowValue:
    return NullRowValue.NULL if NullRowValue.NULL in values else NullRowValue.UNKNOWN


def _and(values: list[NullRowValue]) -> NullRowValue:
    if NullRowValue.FALSE in values:
        return NullRowValue.FALSE
    if all(value is NullRowValue.TRUE for value in values):
        return NullRowValue.TRUE
    # With NULL, a conjunction is NULL or FALSE. For a condition both mean the same, and NULL stands for both.
    return NullRowValue.NULL if NullRowValue.NULL in values else NullRowValue.UNKNOWN


def _or(values: list[NullRowValue]) -> NullRowValue:
    if NullRowValue.TRUE in values:
        return NullRowValue.TRUE
    if any(value not in (NullRowValue.NULL, NullRowValue.FALSE) for value in values):
        return NullRowValue.UNKNOWN
    return NullRowValue.NULL if NullRowValue.NULL in values else NullRowValue.FALSE


def _is_null(values: list[NullRowValue]) -> NullRowValue:
    if values[0] is NullRowValue.UNKNOWN:
        return NullRowValue.UNKNOWN
    return NullRowValue.TRUE if values[0] is NullRowValue.NULL else NullRowValue.FALSE


def _null_safe(values: list[NullRowValue]) -> NullRowValue:
    value, other = values
    if NullRowValue.NULL in values and NullRowValue.UNKNOWN not in values:
        return NullRowValue.TRUE if value is other else NullRowValue.FALSE
    if value in _CONDITIONS and other in _CONDITIONS:
        return NullRowValue.TRUE if value is other else NullRowValue.FALSE
    return NullRowValue.UNKNOWN


def _case(values: list[NullRowValue]) -> NullRowValue:
    for condition, value in zip(values[:-1:2], values[1::2], strict=True):
        if condition is NullRowValue.TRUE:
            return value
        if condition not in (NullRowValue.NULL, NullRowValue.FALSE):
            return NullRowValue.UNKNOWN
    return values[-1]


_RULES: dict[str, Callable[[list[NullRowValue]], NullRowValue]] = {
    "and": _and,
    "or": _or,
    "not": lambda values: _NEGATIONS.get(values[0], NullRowValue.UNKNOWN),
    "isnull": _is_null,
    "isnotnull": lambda values: _NEGATIONS.get(_is_null(values), NullRowValue.UNKNOWN),
    "<=>": _null_safe,
    **dict.fromkeys(("in", "nullif"), lambda values: _strict(values[:1])),
    **dict.fromkeys(
        ("coalesce", "nvl", "ifnull"),
        lambda values: next((value for value in values if value is not NullRowValue.NULL), NullRowValue.NULL),
    ),
    **dict.fromkeys(
        ("greatest", "least"),
        lambda values: NullRowValue.NULL if set(values) <= {NullRowValue.NULL} else NullRowValue.UNKNOWN,
    ),
    "case": _case,
    "if": lambda values: _case(values) if len(values) == 3 else NullRowValue.UNKNOWN,
}
