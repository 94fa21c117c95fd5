"""Types of expressions that Spark computes with, for those few whose rule is simple and the same in every session."""

from __future__ import annotations

from sqlglot import exp

from windloom.errors import WindloomError
from windloom.language.constants import number_type
from windloom.language.scopes import Names
from windloom.model import DataType, TypeKind

_INT, _BIGINT, _DOUBLE, _STRING = (DataType.parse(name) for name in ("int", "bigint", "double", "string"))

_FUNCTIONS = {
    **dict.fromkeys(("upper", "ucase", "lower", "lcase", "initcap", "trim", "ltrim", "rtrim"), _STRING),
    **dict.fromkeys(("length", "char_length", "character_length"), _INT),
    **dict.fromkeys(("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekday"), _INT),
    **dict.fromkeys(("hour", "minute", "second", "weekofyear"), _INT),
}
_EXTRACTED = {"year", "quarter", "month", "week", "day", "hour", "minute", "dayofweek", "dow", "doy"}
_ARITHMETIC = exp.Add | exp.Sub | exp.Mul | exp.Mod
_TIMES = (TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ)


def type_of(node: exp.Expr, names: Names) -> DataType | None:
    """The type of an expression; None if it is not known for sure."""
    while isinstance(node, exp.Paren | exp.Neg) and not isinstance(node.this, exp.Literal):
        node = node.this
    if isinstance(node, exp.Column):
        found = names.find_node(node)
        return names.stream.columns[found[0]] if found is not None and not found[1] else None
    if isinstance(node, exp.Cast | exp.TryCast):
        return _cast(node)
    if isinstance(node, _ARITHMETIC | exp.Div | exp.IntDiv):
        return _arithmetic(node, names)
    if isinstance(node, exp.Trim):
        return _STRING if _of_strings(node, names) else None
    if isinstance(node, exp.Extract):
        source = type_of(node.expression, names)
        known = source is not None and source.kind in _TIMES and node.name.lower() in _EXTRACTED
        return _INT if known else None
    if isinstance(node, exp.Anonymous):
        found_type = _FUNCTIONS.get(node.name.lower())
        return None if found_type is _STRING and not _of_strings(node, names) else found_type
    return number_type(node)


def _cast(node: exp.Expr) -> DataType | None:
    try:
        return DataType.parse(node.args["to"].sql("spark"))
    except WindloomError:
        return None


def _of_strings(node: exp.Expr, names: Names) -> bool:
    """Are all columns in it plain strings: others may have a collation, and the result has it, too."""
    types = [type_of(column, names) for column in node.find_all(exp.Column)]
    return node.find(exp.Collate) is None and all(each is not None and each.kind is TypeKind.STRING for each in types)


def _arithmetic(node: exp.Expr, names: Names) -> DataType | None:
    left, right = type_of(node.this, names), type_of(node.expression, names)
    if left is None or right is None or not (left.is_numeric and right.is_numeric):
        return None
    if left == _DOUBLE or right == _DOUBLE:
        return None if isinstance(node, exp.IntDiv) else _DOUBLE
    if left.kind is not TypeKind.INTEGER or right.kind is not TypeKind.INTEGER:
        return None
    if isinstance(node, exp.Div | exp.IntDiv):
        return _DOUBLE if isinstance(node, exp.Div) else _BIGINT
    return max(left, right, key=lambda each: each.bits)
