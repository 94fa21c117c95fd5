"""Finishing answers: HAVING, and the columns of a shape from those of the step."""

from __future__ import annotations

import pyarrow as pa

from windloom.expressions.arithmetic import DeclinedError
from windloom.expressions.evaluate import DecodedColumns, evaluate
from windloom.model.types import DataType, arrow_type
from windloom.plan.outputs import resolve_shape
from windloom.plan.plan import Shape

_WINDOW = ("window_start", "window_end")


def output_kinds(shape: Shape) -> dict[str, DataType] | None:
    """Return the names and types of a shape's answer columns, first its window edges; None if unknown here."""
    resolved = resolve_shape(shape)
    if isinstance(resolved, str):
        return None
    return {**dict.fromkeys(_WINDOW, shape.time), **{name: node.kind for name, node in resolved.select}}


def answer_rows(shape: Shape, table: pa.Table, keep: tuple[str, ...] = ()) -> pa.Table:
    """Return the rows that HAVING keeps, with the shape's answer columns; `keep` names further columns to carry along.

    Raises DeclinedError if the expressions are not known, or Spark may refuse a row.
    """
    resolved = resolve_shape(shape)
    if isinstance(resolved, str):
        raise DeclinedError(resolved)
    try:
        if resolved.having is not None:
            holds = evaluate(resolved.having, DecodedColumns(table))
            if isinstance(holds, pa.Scalar):
                table = table if holds.as_py() else table.slice(0, 0)
            else:
                table = table.filter(holds)
        rows, carried = DecodedColumns(table), (*keep, *_WINDOW)
        arrays = [rows[name] for name in carried]
        fields = [pa.field(name, array.type) for name, array in zip(carried, arrays, strict=True)]
        for name, node in resolved.select:
            value = evaluate(node, rows)
            arrays.append(pa.repeat(value, table.num_rows) if isinstance(value, pa.Scalar) else value)
            fields.append(pa.field(name, arrow_type(node.kind)))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    except pa.ArrowInvalid as error:  # an overflow, or a decimal that does not fit
        raise DeclinedError(str(error)) from None
