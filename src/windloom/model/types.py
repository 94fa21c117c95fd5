"""Column types, named as in Spark, with only the facts that are needed here, and their columns in Arrow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.errors import WindloomError


class TypeKind(StrEnum):
    """The kind of a type, which determines what can be done with its values."""

    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    NULL = "void"
    OTHER = "other"


_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "bool": "boolean",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
    "null": "void",
}
_KINDS = {kind.value: kind for kind in TypeKind if kind not in (TypeKind.INTEGER, TypeKind.DECIMAL, TypeKind.OTHER)}
_KINDS["double"] = TypeKind.FLOAT
#: Words in nested types; the names of fields, which keep their spelling, come before a colon.
_WORD = re.compile(r"\b[A-Za-z_]+\b(?!\s*:)")
_NESTED = {"array", "map", "struct", "decimal", *_INTEGER_BITS, *_ALIASES, *_KINDS}


@dataclass(frozen=True, slots=True)
class DataType:
    """A Spark type by its simple name (`bigint`, `decimal(10,2)`, …)."""

    name: str
    kind: TypeKind
    bits: int = 0
    precision: int = 0
    scale: int = 0

    @classmethod
    def parse(cls, text: str) -> DataType:
        """Read the name of a type as Spark SQL spells it.

        >>> DataType.parse("LONG").name, DataType.parse("decimal(10, 2)").scale, DataType.parse("ARRAY<INT>").name
        ('bigint', 2, 'array<int>')
        """
        lowered = text.strip().lower()
        base = re.split(r"[(<\s]", lowered, maxsplit=1)[0]
        base = _ALIASES.get(base, base)
        if base in _INTEGER_BITS:
            return cls(base, TypeKind.INTEGER, bits=_INTEGER_BITS[base])
        if base == "decimal":
            match = re.fullmatch(r"\w+\s*(?:\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\))?", lowered)
            if match is None:
                raise WindloomError(f"cannot read the type '{text}'", hint="for example decimal(10,2)")
            precision, scale = int(match.group(1) or 10), int(match.group(2) or 0)
            return cls(f"decimal({precision},{scale})", TypeKind.DECIMAL, precision=precision, scale=scale)
        # Strings with another collation are compared in ways that only Spark knows.
        if base in _KINDS and ("collate" not in lowered or lowered.endswith("collate utf8_binary")):
            return cls(base, _KINDS[base])
        lowered_words = _WORD.sub(lambda word: word[0].lower() if word[0].lower() in _NESTED else word[0], text.strip())
        return cls(lowered_words, TypeKind.OTHER)

    @property
    def is_numeric(self) -> bool:
        return self.kind in (TypeKind.INTEGER, TypeKind.FLOAT, TypeKind.DECIMAL)

    @property
    def is_ordered(self) -> bool:
        """Whether MIN and MAX can be computed."""
        return self.kind not in (TypeKind.OTHER, TypeKind.NULL)

    @property
    def is_groupable(self) -> bool:
        """Whether it can be a grouping column; nested types cannot."""
        return self.kind not in (TypeKind.OTHER,)

    def __str__(self) -> str:
        return self.name


BIGINT, DOUBLE, TIMESTAMP = (DataType.parse(name) for name in ("bigint", "double", "timestamp"))


#: A column as Spark's table holds it, in chunks, or a plain array.
Column: TypeAlias = "pa.ChunkedArray | pa.Array"
Number = TypeVar("Number", bound=np.generic)

_ARROW = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the type of a column of grouping values or of answers; arrays and structs are the nested types it knows.

    >>> arrow_type(DataType.parse("array<struct<value:decimal(10,2),count:bigint>>")).value_type.field("count").type
    DataType(int64)
    """
    if kind.kind is TypeKind.DECIMAL:
        return pa.decimal128(kind.precision, kind.scale)
    if kind.name.startswith("array<"):
        return pa.list_(arrow_type(DataType.parse(kind.name[len("array<") : -1])))
    if kind.name.startswith("struct<"):
        fields = (field.partition(":") for field in _fields(kind.name[len("struct<") : -1]))
        return pa.struct([(name, arrow_type(DataType.parse(inner))) for name, _, inner in fields])
    return _ARROW[kind.name]


def _fields(text: str) -> list[str]:
    """Return the text split at commas outside brackets."""
    fields, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            fields.append("")
        else:
            fields[-1] += character
    return fields


def as_array(column: Column) -> pa.Array:
    """Return the column of a table as one contiguous array."""
    if isinstance(column, pa.ChunkedArray):
        return (
            column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])
        )
    return column


def as_integers(column: Column) -> NDArray[np.int64]:
    return _as_numpy(column, np.int64)


def as_floats(column: Column) -> NDArray[np.float64]:
    return _as_numpy(column, np.float64)


def _as_numpy(column: Column, kind: type[Number]) -> NDArray[Number]:
    """Return a copy of the values, with 0 for NULL; Arrow's memory is read-only, for which Numba would recompile."""
    filled = pc.fill_null(column, 0) if column.null_count else column
    values = filled.to_numpy() if isinstance(filled, pa.ChunkedArray) else filled.to_numpy(zero_copy_only=False)
    return np.require(values, dtype=kind, requirements=["C", "W"])


def with_nulls(values: NDArray[np.generic], valid: NDArray[np.bool_] | None) -> pa.Array:
    """Return values as a column that is NULL where they are not valid."""
    return pa.array(values, mask=None if valid is None else ~valid)
