"""The answer columns of a shape from the columns of the step."""

from __future__ import annotations

import pyarrow as pa

from windloom.expressions.arithmetic import DeclinedError
from windloom.expressions.evaluate import DecodedColumns, evaluate
from windloom.model.types import DataType, arrow_type
from windloom.plan.outputs import ResolvedShape, resolve_shape
from windloom.plan.plan import Shape

_WINDOW = ("window_start", "window_end")


def output_kinds(shape: Shape) -> dict[str, DataType] | None:
    """The names and types of a shape's answer columns, first `window_start` and `window_end`; None if unknown here."""
    found = resolve_shape(shape)
    if isinstance(found, str):
        return None
    return {**dict.fromkeys(_WINDOW, shape.time), **{name: node.kind for name, node in found.select}}


def answer_rows(shape: Shape, table: pa.Table, keep: tuple[str, ...] = ()) -> pa.Table:
    """The rows that HAVING keeps, with the shape's answer columns; `keep` names further columns to carry along.

    Raises DeclinedError if the expressions are not known, or Spark may refuse a row.
    """
    found = resolve_shape(shape)
    if isinstance(found, str):
        raise DeclinedError(found)
    try:
        return _evaluated(found, table, (*keep, *_WINDOW))
    except pa.ArrowInvalid as error:  # an overflow, or a decimal that does not fit
        raise DeclinedError(str(error)) from None


def _evaluated(shape: ResolvedShape, table: pa.Table, carried: tuple[str, ...]) -> pa.Table:
    if shape.having is not None:
        holds = evaluate(shape.having, DecodedColumns(table))
        if isinstance(holds, pa.Scalar):
            table = table if holds.as_py() else table.slice(0, 0)
        else:
            table = table.filter(holds)
    rows = DecodedColumns(table)
    arrays = [rows[name] for name in carried]
    for _, node in shape.select:
        value = evaluate(node, rows)
        arrays.append(pa.repeat(value, table.num_rows) if isinstance(value, pa.Scalar) else value)
    fields = [pa.field(name, array.type) for name, array in zip(carried, arrays, strict=False)]
    fields += [pa.field(name, arrow_type(node.kind)) for name, node in shape.select]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
