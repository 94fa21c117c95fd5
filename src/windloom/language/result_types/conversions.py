"""The implicit conversions and the casts between types that Spark allows in all sessions."""

from __future__ import annotations

from collections.abc import Iterable

from windloom.language.result_types.numbers import wider_number
from windloom.model import DataType, TypeKind

NUMBERS = frozenset({TypeKind.INTEGER, TypeKind.FLOAT, TypeKind.DECIMAL})
TIMES = frozenset({TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ})
STRING = frozenset({TypeKind.STRING})
#: Types without nested parts.
PLAIN = NUMBERS | TIMES | STRING | {TypeKind.BOOLEAN, TypeKind.BINARY}

_INSTANTS = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ, TypeKind.DATE)  # the wider before the narrower
_BOOLEAN, _BINARY = frozenset({TypeKind.BOOLEAN}), frozenset({TypeKind.BINARY})

#: The kinds that a value of each kind can be cast to.
_CASTS: dict[TypeKind, frozenset[TypeKind]] = {
    **dict.fromkeys(NUMBERS, NUMBERS | STRING | _BOOLEAN | {TypeKind.TIMESTAMP}),
    TypeKind.BOOLEAN: NUMBERS | STRING | _BOOLEAN,
    TypeKind.STRING: PLAIN,
    TypeKind.BINARY: STRING | _BINARY,
    TypeKind.DATE: TIMES | STRING,
    TypeKind.TIMESTAMP: TIMES | STRING | NUMBERS,
    TypeKind.TIMESTAMP_NTZ: TIMES | STRING,
    TypeKind.NULL: PLAIN,
}


def can_cast(source: DataType, target: DataType) -> bool:
    return target.kind in _CASTS.get(source.kind, ())


def are_comparable(left: DataType, right: DataType) -> bool:
    """Whether Spark compares the two, whatever it converts them to."""
    type_kind, other = left.kind, right.kind
    if type_kind not in PLAIN | {TypeKind.NULL} or other not in PLAIN | {TypeKind.NULL}:
        return False
    if TypeKind.NULL in (type_kind, other) or type_kind is other:
        return True
    for kinds in (NUMBERS, TIMES):
        if {type_kind, other} <= kinds:
            return True
    # A value and a string are compared as strings or by the value's type; both work for everything except binaries.
    return TypeKind.STRING in (type_kind, other) and TypeKind.BINARY not in (type_kind, other)


def are_alike(kinds: Iterable[DataType]) -> bool:
    """Whether all are of one sort (numbers, times or the same type), so that many of them can be compared at once."""
    found = {kind.kind for kind in kinds} - {TypeKind.NULL}
    return found <= NUMBERS or found <= TIMES or (len(found) == 1 and found <= PLAIN)


def common_type(kinds: Iterable[DataType]) -> DataType | None:
    """The type of a value that is one of several, as in CASE; like Spark, pair by pair from the left."""
    found, *rest = kinds
    for kind in rest:
        both = _common(found, kind)
        if both is None:
            return None
        found = both
    return found


def _common(left: DataType, right: DataType) -> DataType | None:
    if left == right:
        return left if left.kind in PLAIN | {TypeKind.NULL} else None
    if TypeKind.NULL in (left.kind, right.kind):
        other = right if left.kind is TypeKind.NULL else left
        return other if other.kind in PLAIN else None
    if left.is_numeric and right.is_numeric:
        return wider_number(left, right)
    if {left.kind, right.kind} <= TIMES:
        return min(left, right, key=lambda each: _INSTANTS.index(each.kind))
    return None
