"""Verifies the answers of a DataFrame that was given as a query: Spark runs the DataFrame, and rows are compared."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from windloom.spark.errors import as_windloom_errors
from windloom.spark.verify.verify import LOOSE_TOLERANCE, TOLERANCE, Verification, equal_values


def verify_frame(name: str, frame: DataFrame, answers: pa.Table) -> Verification:
    """Compare answers with the rows of the DataFrame, in any order; the columns are compared by their places.

    Sums of floats may differ by 1e-9 of their size, because Spark adds them up in another order.
    """
    with as_windloom_errors(f"query '{name}'"):
        expected = frame.toArrow()
    names = frame.columns
    left, right = (_comparable(table) for table in (expected, answers))
    # Rows are put in order by what must be equal, then by what may differ a little.
    exact = [i for i, kind in enumerate(left.schema.types) if not pa.types.is_floating(kind)]
    keys = exact + [i for i in range(left.num_columns) if i not in exact]
    left, right = (_sorted(table, keys) for table in (left, right))
    if left.num_rows != right.num_rows or not all(equal_values(left[i], right[i], None).all() for i in exact):
        return _unmatched(name, left, right, exact, [left.schema.names[i] for i in exact])
    wrong = np.zeros(left.num_rows, np.bool_)
    largest, first = 0.0, ""
    for column in (i for i in keys if i not in exact):
        same, error = _close(left[column], right[column])
        largest = max(largest, error)
        if not same.all() and not first:
            row = int(np.flatnonzero(~same)[0])
            ours, theirs = (table[column][row].as_py() for table in (right, left))
            first = f"{left.schema.names[column]} = {ours!r}, Spark has {theirs!r}"
        wrong |= ~same
    assert len(names) == expected.num_columns
    return Verification(name, left.num_rows, 0, 0, int(wrong.sum()), first, largest)


def _comparable(table: pa.Table) -> pa.Table:
    """Return a table that can be sorted: structs are replaced by their fields, lists and maps by texts."""
    names: list[str] = []
    columns: list[pa.ChunkedArray] = []

    def add(name: str, column: pa.ChunkedArray) -> None:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_struct(column.type):
            for index, field in enumerate(column.type):
                add(f"{name}.{field.name}", pc.struct_field(column, [index]))
            column = column.is_null()
        elif pa.types.is_nested(column.type):
            column = pa.chunked_array([pa.array([repr(value) for value in column.to_pylist()], pa.string())])
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", "UTC" if column.type.tz else None))
        names.append(name)
        columns.append(column)

    for name, column in zip(table.schema.names, table.columns, strict=True):
        add(name, column)
    return pa.Table.from_arrays(columns, names=names)


def _sorted(table: pa.Table, keys: list[int]) -> pa.Table:
    renamed = table.rename_columns([f"c{i}" for i in range(table.num_columns)])  # a DataFrame may use a name twice
    rows = pc.sort_indices(renamed, sort_keys=[(f"c{i}", "ascending") for i in keys])
    return table.take(rows)


def _close(left: pa.ChunkedArray, right: pa.ChunkedArray) -> tuple[NDArray[np.bool_], float]:
    """Return which floats are close enough, and the largest difference relative to the larger of the two."""
    a, b = (np.nan_to_num(np.asarray(pc.fill_null(each, 0.0).to_numpy(), np.float64)) for each in (left, right))
    size = np.maximum(np.abs(a), np.abs(b))
    bound = LOOSE_TOLERANCE * size + TOLERANCE * float(size.max(initial=0.0))
    error = np.abs(a - b) / np.where(size > 0, size, 1.0)
    return equal_values(left, right, bound), float(error.max(initial=0.0))


def _unmatched(name: str, left: pa.Table, right: pa.Table, exact: list[int], names: list[str]) -> Verification:
    ours, theirs = (
        Counter(zip(*(map(repr, table[i].to_pylist()) for i in exact), strict=True))
        if exact
        else Counter({(): table.num_rows})
        for table in (right, left)
    )
    missing, extra = theirs - ours, ours - theirs
    what = ""
    if missing or extra:
        values = min(missing or extra)
        shown = ", ".join(f"{column} = {value}" for column, value in zip(names, values, strict=True))
        what = f"missing is {shown}" if missing else f"Spark does not have {shown}"
    return Verification(name, left.num_rows, missing.total(), extra.total(), 0, what, 0.0)
