"""The registry of operators and scalar functions: the types with which Spark computes, and who evaluates them.

A rule takes the operands with their types and gives the typed result. The result can be evaluated without Spark if it
is the same to the last bit; `expressions.evaluate` then has an entry for its operator. For everything else there is
only a type (`why_spark` says so), and a rule raises NotKnownError where even that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from windloom.expressions import types
from windloom.expressions.node import Node, constant, converted, unchanged
from windloom.expressions.types import BOOLEAN, NUMBERS, PLAIN, TIMES, NotKnownError, ResultType, common_type
from windloom.model.types import BIGINT, DOUBLE, DataType, TypeKind

Rule = Callable[[str, Sequence[Node]], Node]
_Takes = Callable[[DataType], bool]

_BITWISE = ("&", "|", "^", "~")
#: Spark compares up to this many listed values one by one, and looks up longer lists in a hash table.
_LISTED = 10
#: Higher powers of 10 are not exact as floating-point numbers, and the result would be rounded twice.
_MOST_ROUNDED = 22
#: Spark rounds a decimal with more digits than this when it changes the sign.
_MOST_NEGATED = 34
#: Types whose values are compared alike here and in Spark.
_COMPARED = NUMBERS | TIMES | {TypeKind.BOOLEAN, TypeKind.STRING}


def label(name: str) -> str:
    """Return an operator or function as errors and explanations call it."""
    return f"{name}()" if name.isidentifier() else name.upper()


def truth(op: str, node: Node) -> Node:
    """Return a condition, which may be NULL; raises NotKnownError for any other value."""
    if node.kind.kind is TypeKind.NULL:
        return converted(node, BOOLEAN)
    if node.kind != BOOLEAN:
        raise NotKnownError(f"{op} of {node.kind}")
    return node


def literal_digits(node: Node) -> DataType:
    """Return the type of an operand of decimal arithmetic: an integer literal has the digits that are written.

    Spark does not do this for TINYINT literals.
    """
    if node.is_constant and node.kind.kind is TypeKind.INTEGER and node.kind.bits > 8:
        return types.decimal(len(str(abs(node.value))), 0)
    return node.kind


def _take(name: str, operands: Sequence[Node], *counts: int) -> None:
    if len(operands) not in counts:
        raise NotKnownError(f"{name} of {len(operands)} values")


def _take_numbers(name: str, operands: Sequence[Node], *counts: int) -> None:
    _take(name, operands, *counts)
    if others := [node for node in operands if not node.kind.is_numeric]:
        raise NotKnownError(f"{name} of {others[0].kind}")


def _node_of(op: str, result: ResultType, operands: Sequence[Node], kind: DataType | None = None) -> Node:
    """Return a node of this type, whose operands are converted to it, or to `kind`."""
    parts = () if result.why_spark else tuple(converted(node, kind or result.kind) for node in operands)
    return Node(op, result.kind, parts, None, result.is_certain, result.why_spark)


# Operators ------------------------------------------------------------------------------------------------------------


def _arithmetic(op: str, operands: Sequence[Node]) -> Node:
    kinds = [node.kind for node in operands]
    if op in _BITWISE:  # as wide as the widest operand
        if any(kind.kind is not TypeKind.INTEGER for kind in kinds):
            raise NotKnownError(op)
        return Node(op, max(kinds, key=lambda kind: kind.bits), why_spark=op)
    _take_numbers(op, operands, 2)
    if any(kind.kind is TypeKind.DECIMAL for kind in kinds):
        kinds = [literal_digits(node) for node in operands]
    result = types.arithmetic_type(op, *kinds)
    if result.kind.kind is TypeKind.DECIMAL and result.why_spark is None:
        parts = (converted(node, types.as_decimal(kind)) for node, kind in zip(operands, kinds, strict=True))
        return Node(op, result.kind, tuple(parts), is_certain=result.is_certain)
    return _node_of(op, result, operands)


def _comparison(op: str, operands: Sequence[Node]) -> Node:
    _take(op, operands, 2)
    return _compared(op, operands, types.are_comparable(operands[0].kind, operands[1].kind))


def _compared(op: str, operands: Sequence[Node], is_known: bool) -> Node:
    """Compare all operands as values of one type; `is_known` if Spark certainly accepts that."""
    try:
        result = common_type([node.kind for node in operands])
        if result.why_spark or result.kind.kind not in _COMPARED:
            raise NotKnownError(result.why_spark or f"a comparison of {result.kind}")
    except NotKnownError as unknown:
        if not is_known:
            raise
        return Node(op, BOOLEAN, why_spark=str(unknown))
    return _node_of(op, ResultType(BOOLEAN), operands, result.kind)


def _in_list(op: str, operands: Sequence[Node]) -> Node:
    node = _compared("in", operands, types.are_alike(each.kind for each in operands))
    why, listed = node.why_spark, node.operands[1:]
    is_plain = all(each.is_constant and each.value for each in listed)
    if why is None and node.operands[0].kind.kind is TypeKind.FLOAT and not is_plain:
        # Spark's hash table distinguishes 0.0 from -0.0, its comparison does not, and the length of the list determines
        # which of the two it uses.
        why = "IN of floating-point numbers that may be zero or NaN"
    if why is None and len(listed) > _LISTED and not all(each.is_constant for each in listed):
        why = f"IN a list of more than {_LISTED} expressions"
    return node if why is None else Node("in", BOOLEAN, why_spark=why)


def _logic(op: str, operands: Sequence[Node]) -> Node:
    return Node(op, BOOLEAN, tuple(truth(op, node) for node in operands))


def _is_null(op: str, operands: Sequence[Node]) -> Node:
    _take(op, operands, 1)
    node = Node("isnull", BOOLEAN, tuple(operands))
    return node if op == "isnull" else Node("not", BOOLEAN, (node,))


def _case(op: str, operands: Sequence[Node]) -> Node:
    """Type a choice among values; operands are conditions and values in turn, and the value if no condition holds."""
    conditions, values = operands[:-1:2], [*operands[1::2], operands[-1]]
    result = common_type([node.kind for node in values])
    parts: list[Node] = []
    for condition, value in zip(conditions, values, strict=False):
        if condition.kind != BOOLEAN:  # in Spark, not even NULL is allowed
            raise NotKnownError(f"CASE WHEN {condition.kind}")
        parts += [condition, converted(value, result.kind)]
    parts.append(converted(values[-1], result.kind))
    why = result.why_spark
    return Node("case", result.kind, () if why else tuple(parts), None, result.is_certain, why)


# Functions that are evaluated here ------------------------------------------------------------------------------------


def _of_one_number(name: str, operands: Sequence[Node]) -> Node:
    """Type its sign and absolute value, its root, whether it is NaN, and the whole numbers below and above it."""
    _take_numbers(f"{name}()", operands, 1)
    (value,) = operands
    kind = value.kind
    if name == "sqrt":
        return _node_of(name, ResultType(DOUBLE), operands)
    if name == "isnan":
        if kind.kind is not TypeKind.FLOAT:
            raise NotKnownError(f"isnan() of {kind}")
        return Node(name, BOOLEAN, (value,))
    if name == "positive":
        return unchanged(value)
    if name in ("abs", "negative"):
        is_long = kind.precision > _MOST_NEGATED
        return Node(name, kind, why_spark=f"{name}() of {kind}") if is_long else Node(name, kind, (value,))
    if kind.kind is TypeKind.INTEGER:
        return converted(unchanged(value), BIGINT)
    if kind.kind is TypeKind.FLOAT:
        result, value = ResultType(BIGINT), converted(value, DOUBLE)
    elif kind.scale == 0:
        return unchanged(value)
    else:
        result = types.rounded_type(kind, 0)
    return Node("ceil" if name == "ceiling" else name, result.kind, (value,), None, result.is_certain)


def _null_if(name: str, operands: Sequence[Node]) -> Node:
    _take("nullif()", operands, 2)
    equal, value = _comparison("=", operands), operands[0]
    kinds = [node.kind for node in operands]
    is_certain = types.are_alike(kinds) and value.kind.kind is not TypeKind.NULL
    parts = () if equal.why_spark else (equal, constant(None, value.kind), value)
    return Node("case", value.kind, parts, None, is_certain, equal.why_spark)


def _if(name: str, operands: Sequence[Node]) -> Node:
    _take(f"{name}()", operands, 3)
    condition, *values = operands
    return _case("case", [_is_null("isnotnull", [condition]) if name == "nvl2" else truth("if()", condition), *values])


def _one_of(name: str, operands: Sequence[Node]) -> Node:
    """Type the first value that is not NULL, the greatest or the least: it has the common type of all."""
    if name in ("nvl", "ifnull"):
        _take(f"{name}()", operands, 2)
    if not operands and name == "coalesce":
        raise NotKnownError("coalesce() of nothing")
    is_extreme = name in ("greatest", "least")
    if is_extreme and len(operands) < 2:
        raise NotKnownError(f"{name}() of {len(operands)} values")
    result = common_type([node.kind for node in operands])
    if is_extreme and result.kind.kind not in _COMPARED:
        is_certain = result.is_certain and result.kind.kind is not TypeKind.NULL
        result = ResultType(result.kind, is_certain, result.why_spark or f"a comparison of {result.kind}")
    return _node_of(name if is_extreme else "coalesce", result, operands)


def _round(name: str, operands: Sequence[Node]) -> Node:
    _take("round()", operands, 1, 2)
    _take_numbers("round()", operands[:1], 1)
    value, *places = operands
    if places and not (places[0].is_constant and places[0].kind.kind is TypeKind.INTEGER):
        raise NotKnownError("round() to a number of digits that is no literal")
    digits = places[0].value if places else 0
    result = types.rounded_type(value.kind, digits)
    if not 0 <= digits <= _MOST_ROUNDED:
        return Node("round", result.kind, (), None, result.is_certain, f"round() to {digits} digits")
    if value.kind.name == "float":
        return Node("round", result.kind, why_spark=f"round() of {value.kind}")
    if value.kind.kind is TypeKind.INTEGER:
        return unchanged(value)
    return Node("round", result.kind, (value,), digits, result.is_certain)


def _try_divide(name: str, operands: Sequence[Node]) -> Node:
    _take_numbers("try_divide", operands, 2)
    result = types.arithmetic_type("/", operands[0].kind, operands[1].kind)
    if result.kind != DOUBLE:
        raise NotKnownError("try_divide of decimals")
    return _node_of("try_divide", result, operands)


# Functions of which only the type is known ----------------------------------------------------------------------------


def _of(*kinds: TypeKind) -> _Takes:
    wanted = frozenset(kinds)
    return lambda kind: kind.kind in wanted


def _int(kind: DataType) -> bool:
    """Whether a type is converted to INT in all sessions: a BIGINT is not."""
    return kind.kind is TypeKind.INTEGER and kind.bits <= 32


_number, _whole_kind, _text, _plain = _of(*NUMBERS), _of(TypeKind.INTEGER), _of(TypeKind.STRING), _of(*PLAIN)
_instant, _time_or_text = _of(TypeKind.DATE, TypeKind.TIMESTAMP), _of(*TIMES, TypeKind.STRING)
_instant_or_text = _of(TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.STRING)


def _returning(kind: str, *takes: _Takes, optional: int = 0, repeated: _Takes | None = None) -> Rule:
    """Return a rule for calls that give this type, with an argument for each of `takes`.

    The last `optional` arguments may be left out, and `repeated` ones may follow.
    """
    returned = DataType.parse(kind)

    def rule(name: str, operands: Sequence[Node]) -> Node:
        extra = len(operands) - len(takes)
        wanted = [*takes, *([repeated] * extra if repeated is not None else [])]
        fits = extra >= -optional and len(operands) <= len(wanted)
        if not fits or not all(allows(node.kind) for allows, node in zip(wanted, operands, strict=False)):
            raise NotKnownError(label(name))
        return Node(name, returned, why_spark=label(name))

    return rule


def _typed_like(other: Rule, op: str) -> Rule:
    """Return a rule that takes only the type from another one."""

    def rule(name: str, operands: Sequence[Node]) -> Node:
        try:
            result = other(op, operands)
        except NotKnownError:
            raise NotKnownError(label(name)) from None
        return Node(name, result.kind, (), None, result.is_certain, label(name))

    return rule


_CAST_NAMES = (
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "boolean", "date", "timestamp",
)  # fmt: skip

OPERATORS: dict[str, Rule] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "div", *_BITWISE), _arithmetic),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), _comparison),
    **dict.fromkeys(("and", "or", "not"), _logic),
    "in": _in_list,
    "case": _case,
    "||": _returning("string", _text, _text),
}

FUNCTIONS: dict[str, Rule] = {
    # Numbers
    **dict.fromkeys(("abs", "negative", "positive", "floor", "ceil", "ceiling", "sqrt", "isnan"), _of_one_number),
    "round": _round,
    "bround": _typed_like(_round, "round"),
    "mod": lambda name, operands: _arithmetic("%", operands),
    "pmod": _typed_like(_arithmetic, "%"),
    "try_divide": _try_divide,
    **dict.fromkeys(("cbrt", "exp", "expm1", "ln", "log2", "log10", "log1p"), _returning("double", _number)),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), _returning("double", _number)),
    **dict.fromkeys(("sinh", "cosh", "tanh", "degrees", "radians"), _returning("double", _number)),
    **dict.fromkeys(("sign", "signum", "rint"), _returning("double", _number)),
    **dict.fromkeys(("power", "pow", "atan2", "hypot"), _returning("double", _number, _number)),
    "log": _returning("double", _number, _number, optional=1),
    # One of several
    **dict.fromkeys(("coalesce", "nvl", "ifnull", "greatest", "least"), _one_of),
    **dict.fromkeys(("if", "nvl2"), _if),
    "nullif": _null_if,
    **dict.fromkeys(("isnull", "isnotnull"), _is_null),
    **{name: _returning(name, partial(types.can_cast, target=DataType.parse(name))) for name in _CAST_NAMES},
    # Strings
    **dict.fromkeys(("upper", "ucase", "lower", "lcase", "initcap", "reverse"), _returning("string", _text)),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "btrim"), _returning("string", _text)),
    **dict.fromkeys(("length", "char_length", "character_length", "ascii"), _returning("int", _text)),
    **dict.fromkeys(("left", "right", "repeat"), _returning("string", _text, _int)),
    **dict.fromkeys(("substring", "substr"), _returning("string", _text, _int, _int, optional=1)),
    **dict.fromkeys(("lpad", "rpad"), _returning("string", _text, _int, _text, optional=1)),
    **dict.fromkeys(("locate", "position"), _returning("int", _text, _text, _int, optional=1)),
    "instr": _returning("int", _text, _text),
    **dict.fromkeys(("concat", "concat_ws"), _returning("string", _text, repeated=_text)),
    "replace": _returning("string", _text, _text, _text, optional=1),
    "translate": _returning("string", _text, _text, _text),
    "regexp_replace": _returning("string", _text, _text, _text),
    "regexp_extract": _returning("string", _text, _text, _int, optional=1),
    **dict.fromkeys(("startswith", "endswith", "contains"), _returning("boolean", _text, _text)),
    **dict.fromkeys(("like", "ilike", "rlike", "regexp_like"), _returning("boolean", _text, _text)),
    "hash": _returning("int", _plain, repeated=_plain),
    "xxhash64": _returning("bigint", _plain, repeated=_plain),
    # Dates and times
    **dict.fromkeys(("year", "quarter", "month", "day", "dayofmonth"), _returning("int", _time_or_text)),
    **dict.fromkeys(("dayofweek", "dayofyear", "weekday", "weekofyear"), _returning("int", _time_or_text)),
    **dict.fromkeys(("hour", "minute", "second"), _returning("int", _time_or_text)),
    "date_trunc": _returning("timestamp", _text, _instant_or_text),
    "trunc": _returning("date", _time_or_text, _text),
    "to_date": _returning("date", _time_or_text),
    **dict.fromkeys(("date_add", "date_sub", "add_months"), _returning("date", _instant, _int)),
    "datediff": _returning("int", _instant, _instant),
    "last_day": _returning("date", _instant),
    "date_format": _returning("string", _instant, _text),
    "from_unixtime": _returning("string", _whole_kind),
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), _returning("bigint", _instant)),
    **dict.fromkeys(("unix_seconds", "unix_millis", "unix_micros"), _returning("bigint", _of(TypeKind.TIMESTAMP))),
    "unix_date": _returning("int", _of(TypeKind.DATE)),
}
