"""Functions of Spark SQL whose result type follows from the kinds of their arguments, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windloom.language.result_types.conversions import NUMBERS, PLAIN, TIMES, are_alike, can_cast, common_type
from windloom.language.result_types.numbers import whole_type
from windloom.model import DataType, TypeKind

#: The type of a call, from the types of its arguments; None if the function does not certainly accept them.
Rule = Callable[[Sequence[DataType]], DataType | None]
_Takes = Callable[[DataType], bool]


def _of(*kinds: TypeKind) -> _Takes:
    wanted = frozenset(kinds)
    return lambda kind: kind.kind in wanted


def _int(kind: DataType) -> bool:
    """Whether a type is converted to INT in all sessions: a BIGINT is not."""
    return kind.kind is TypeKind.INTEGER and kind.bits <= 32


_number, _whole, _text, _plain = _of(*NUMBERS), _of(TypeKind.INTEGER), _of(TypeKind.STRING), _of(*PLAIN)
_plain_or_null = _of(*PLAIN, TypeKind.NULL)
_instant, _time_or_text = _of(TypeKind.DATE, TypeKind.TIMESTAMP), _of(*TIMES, TypeKind.STRING)
_instant_or_text = _of(TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.STRING)


def _returning(name: str, *takes: _Takes, optional: int = 0, repeated: _Takes | None = None) -> Rule:
    """A rule for arguments of which the last `optional` may be left out; `repeated` ones may follow."""
    returned = DataType.parse(name)

    def rule(arguments: Sequence[DataType]) -> DataType | None:
        extra = len(arguments) - len(takes)
        if extra < -optional or (extra > 0 and repeated is None):
            return None
        wanted = [*takes, *([repeated] * extra if repeated is not None else [])]
        return returned if all(is_allowed(kind) for is_allowed, kind in zip(wanted, arguments, strict=False)) else None

    return rule


def _same_number(arguments: Sequence[DataType]) -> DataType | None:
    return arguments[0] if len(arguments) == 1 and arguments[0].is_numeric else None


def _rounded(arguments: Sequence[DataType]) -> DataType | None:
    return whole_type(arguments[0]) if len(arguments) == 1 and arguments[0].is_numeric else None


def _one_of(least: int, most: int | None = None) -> Rule:
    def rule(arguments: Sequence[DataType]) -> DataType | None:
        fits = least <= len(arguments) and (most is None or len(arguments) <= most)
        return common_type(arguments) if fits else None

    return rule


def _greatest(arguments: Sequence[DataType]) -> DataType | None:
    # NULL alone has no type here, and is left to Spark.
    known = len(arguments) > 1 and any(each.kind is not TypeKind.NULL for each in arguments)
    return common_type(arguments) if known else None


def _null_if(arguments: Sequence[DataType]) -> DataType | None:
    fits = len(arguments) == 2 and are_alike(arguments) and arguments[0].kind is not TypeKind.NULL
    return arguments[0] if fits else None


def _second_or_third(arguments: Sequence[DataType]) -> DataType | None:
    return common_type(arguments[1:]) if len(arguments) == 3 and _plain_or_null(arguments[0]) else None


def _condition(arguments: Sequence[DataType]) -> DataType | None:
    fits = len(arguments) == 3 and arguments[0].kind in (TypeKind.BOOLEAN, TypeKind.NULL)
    return common_type(arguments[1:]) if fits else None


def _casting(name: str) -> Rule:
    target = DataType.parse(name)

    def rule(arguments: Sequence[DataType]) -> DataType | None:
        return target if len(arguments) == 1 and can_cast(arguments[0], target) else None

    return rule


_CAST_NAMES = (
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "boolean", "date", "timestamp",
)  # fmt: skip

FUNCTIONS: dict[str, Rule] = {
    # Numbers
    **dict.fromkeys(("abs", "negative", "positive"), _same_number),
    **dict.fromkeys(("floor", "ceil", "ceiling"), _rounded),
    **dict.fromkeys(("sqrt", "cbrt", "exp", "expm1", "ln", "log2", "log10", "log1p"), _returning("double", _number)),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), _returning("double", _number)),
    **dict.fromkeys(("sinh", "cosh", "tanh", "degrees", "radians"), _returning("double", _number)),
    **dict.fromkeys(("sign", "signum", "rint"), _returning("double", _number)),
    **dict.fromkeys(("power", "pow", "atan2", "hypot"), _returning("double", _number, _number)),
    "log": _returning("double", _number, _number, optional=1),
    "isnan": _returning("boolean", _of(TypeKind.FLOAT)),
    # One of several
    "coalesce": _one_of(1),
    **dict.fromkeys(("nvl", "ifnull"), _one_of(2, 2)),
    **dict.fromkeys(("greatest", "least"), _greatest),
    "nullif": _null_if,
    "nvl2": _second_or_third,
    "if": _condition,
    **dict.fromkeys(("isnull", "isnotnull"), _returning("boolean", _plain_or_null)),
    **{name: _casting(name) for name in _CAST_NAMES},
    # Strings
    **dict.fromkeys(("upper", "ucase", "lower", "lcase", "initcap", "reverse"), _returning("string", _text)),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "btrim"), _returning("string", _text)),
    **dict.fromkeys(("length", "char_length", "character_length", "ascii"), _returning("int", _text)),
    **dict.fromkeys(("left", "right", "repeat"), _returning("string", _text, _int)),
    **dict.fromkeys(("substring", "substr"), _returning("string", _text, _int, _int, optional=1)),
    **dict.fromkeys(("lpad", "rpad"), _returning("string", _text, _int, _text, optional=1)),
    **dict.fromkeys(("locate", "position"), _returning("int", _text, _text, _int, optional=1)),
    "instr": _returning("int", _text, _text),
    "concat": _returning("string", _text, repeated=_text),
    "concat_ws": _returning("string", _text, repeated=_text),
    "replace": _returning("string", _text, _text, _text, optional=1),
    "translate": _returning("string", _text, _text, _text),
    "regexp_replace": _returning("string", _text, _text, _text),
    "regexp_extract": _returning("string", _text, _text, _int, optional=1),
    **dict.fromkeys(("startswith", "endswith", "contains"), _returning("boolean", _text, _text)),
    **dict.fromkeys(("like", "ilike", "rlike", "regexp_like"), _returning("boolean", _text, _text)),
    "hash": _returning("int", _plain, repeated=_plain),
    "xxhash64": _returning("bigint", _plain, repeated=_plain),
    # Dates and times
    **dict.fromkeys(
        ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekday", "weekofyear"),
        _returning("int", _time_or_text),
    ),
    **dict.fromkeys(("hour", "minute", "second"), _returning("int", _time_or_text)),
    "date_trunc": _returning("timestamp", _text, _instant_or_text),
    "trunc": _returning("date", _time_or_text, _text),
    "to_date": _returning("date", _time_or_text),
    **dict.fromkeys(("date_add", "date_sub", "add_months"), _returning("date", _instant, _int)),
    "datediff": _returning("int", _instant, _instant),
    "last_day": _returning("date", _instant),
    "date_format": _returning("string", _instant, _text),
    "from_unixtime": _returning("string", _whole),
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), _returning("bigint", _instant)),
    **dict.fromkeys(("unix_seconds", "unix_millis", "unix_micros"), _returning("bigint", _of(TypeKind.TIMESTAMP))),
    "unix_date": _returning("int", _of(TypeKind.DATE)),
}
