"""Arrow's types for Spark's."""

from __future__ import annotations

import pyarrow as pa

from windloom.model.types import DataType, TypeKind

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
    """The type of a column of grouping values or of answers; of nested types, arrays and structs are known.

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
    """Split at commas outside brackets."""
    fields, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            fields.append("")
        else:
            fields[-1] += character
    return fields
