"""Arrow's types for Spark's, and Arrow's columns as arrays that kernels read."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.model.types import DataType, TypeKind

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
    """The type of a column of grouping values or of answers; arrays and structs are the nested types it knows.

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
    """The text split at commas outside brackets."""
    fields, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            fields.append("")
        else:
            fields[-1] += character
    return fields


def as_array(column: Column) -> pa.Array:
    """The column of a table as one contiguous array."""
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
    """A copy of the values, with 0 for NULL: Arrow's memory is read-only, and Numba would compile again for it."""
    filled = pc.fill_null(column, 0) if column.null_count else column
    values = filled.to_numpy() if isinstance(filled, pa.ChunkedArray) else filled.to_numpy(zero_copy_only=False)
    return np.require(values, dtype=kind, requirements=["C", "W"])


def with_nulls(values: NDArray[np.generic], valid: NDArray[np.bool_] | None) -> pa.Array:
    """Values as a column that is NULL where they are not valid."""
    return pa.array(values, mask=None if valid is None else ~valid)
