"""The value of an expression for a row without a match, in which all columns of some sides are NULL."""

from __future__ import annotations

from collections.abc import Callable, Container
from enum import Enum

from windloom.model.scalar import Apply, Cast, Constant, Read, Scalar


class Value(Enum):
    """Certain knowledge about a value."""

    NULL = "NULL"
    TRUE = "TRUE"
    FALSE = "FALSE"
    PRESENT = "not NULL"
    UNKNOWN = "unknown"


_CONDITIONS = (Value.TRUE, Value.FALSE)

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


def on_null_row(tree: Scalar, columns: Container[str]) -> Value:
    """Return the value of an expression if these columns are NULL and nothing is known of the others."""
    match tree:
        case Read(column=column):
            return Value.NULL if column in columns else Value.UNKNOWN
        case Constant(value=value):
            if isinstance(value, bool):
                return Value.TRUE if value else Value.FALSE
            return Value.NULL if value is None else Value.PRESENT
        case Cast(operand=operand):
            return _strict([on_null_row(operand, columns)])
        case Apply(name=name, operands=operands):
            values = [on_null_row(operand, columns) for operand in operands]
            if name in _STRICT:
                return _strict(values)
            rule = _RULES.get(name)
            return Value.UNKNOWN if rule is None else rule(values)
    return Value.UNKNOWN


def _strict(values: list[Value]) -> Value:
    return Value.NULL if Value.NULL in values else Value.UNKNOWN


def _and(values: list[Value]) -> Value:
    if Value.FALSE in values:
        return Value.FALSE
    if all(value is Value.TRUE for value in values):
        return Value.TRUE
    # With NULL, a conjunction is NULL or FALSE. For a condition both mean the same, and NULL stands for both.
    return Value.NULL if Value.NULL in values else Value.UNKNOWN


def _or(values: list[Value]) -> Value:
    if Value.TRUE in values:
        return Value.TRUE
    if any(value not in (Value.NULL, Value.FALSE) for value in values):
        return Value.UNKNOWN
    return Value.NULL if Value.NULL in values else Value.FALSE


def _not(values: list[Value]) -> Value:
    return {Value.TRUE: Value.FALSE, Value.FALSE: Value.TRUE, Value.NULL: Value.NULL}.get(values[0], Value.UNKNOWN)


def _is_null(values: list[Value]) -> Value:
    if values[0] is Value.UNKNOWN:
        return Value.UNKNOWN
    return Value.TRUE if values[0] is Value.NULL else Value.FALSE


def _null_safe(values: list[Value]) -> Value:
    value, other = values
    if Value.NULL in values and Value.UNKNOWN not in values:
        return Value.TRUE if value is other else Value.FALSE
    if value in _CONDITIONS and other in _CONDITIONS:
        return Value.TRUE if value is other else Value.FALSE
    return Value.UNKNOWN


def _in(values: list[Value]) -> Value:
    return Value.NULL if values[0] is Value.NULL else Value.UNKNOWN


def _first_present(values: list[Value]) -> Value:
    return next((value for value in values if value is not Value.NULL), Value.NULL)


def _greatest(values: list[Value]) -> Value:
    return Value.NULL if all(value is Value.NULL for value in values) else Value.UNKNOWN


def _case(values: list[Value]) -> Value:
    for condition, value in zip(values[:-1:2], values[1::2], strict=True):
        if condition is Value.TRUE:
            return value
        if condition not in (Value.NULL, Value.FALSE):
            return Value.UNKNOWN
    return values[-1]


_RULES: dict[str, Callable[[list[Value]], Value]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "isnull": _is_null,
    "isnotnull": lambda values: _not([_is_null(values)]),
    "<=>": _null_safe,
    "in": _in,
    **dict.fromkeys(("coalesce", "nvl", "ifnull"), _first_present),
    "nullif": lambda values: Value.NULL if values[0] is Value.NULL else Value.UNKNOWN,
    **dict.fromkeys(("greatest", "least"), _greatest),
    "case": _case,
    "if": lambda values: _case(values) if len(values) == 3 else Value.UNKNOWN,
}
