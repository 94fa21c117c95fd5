"""Rows as readers see them: the columns that the text selects, in its order, and rows in the order of ORDER BY.

This is the only place that hides columns. Rows on their way to sinks keep their window and their groups, which tell
them apart; what a user reads back has passed `presented`, or `spark.frames.presented_frame` for rows that Spark holds.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.errors import WindloomError
from windloom.model.clauses import ADDED_COLUMNS, WINDOW_EDGES, Presentation, SortKey
from windloom.model.query import Query
from windloom.model.types import as_array


def presented(rows: pa.Table, query: Query) -> pa.Table:
    """Return the rows of a query with the columns and in the order that its text asks for."""
    presentation = query.presentation
    if presentation.order and rows.num_rows > 1:
        rows = rows.take(pa.array(_order(rows, presentation)))
    if presentation.columns is None:
        return rows
    names, columns = [], []
    for shown in presentation.columns:
        names.append(shown.name)
        columns.append(_window(rows) if shown.column is None else rows[shown.column])
    for added in ADDED_COLUMNS.get(query.emission.kind, ()):
        names.append(added)
        columns.append(rows[added])
    return pa.Table.from_arrays(columns, names=names)


def local_times(rows: pa.Table, zone: str) -> pa.Table:
    """Return the rows with instants as local times of a zone, without it, as Spark's `toPandas` has them."""
    for place, field in enumerate(rows.schema):
        if _holds_instants(field.type):
            rows = rows.set_column(place, field.name, _local(as_array(rows[field.name]), zone))
    return rows


def _holds_instants(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    if pa.types.is_struct(kind):
        return any(_holds_instants(field.type) for field in kind)
    return bool(pa.types.is_list(kind) and _holds_instants(kind.value_type))


def _local(values: pa.Array, zone: str) -> pa.Array:
    kind = values.type
    if not _holds_instants(kind):
        return values
    if pa.types.is_timestamp(kind):
        return pc.local_timestamp(values.cast(pa.timestamp(kind.unit, tz=zone)))
    if pa.types.is_struct(kind):
        fields = [_local(pc.struct_field(values, [place]), zone) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, names=[field.name for field in kind], mask=values.is_null())
    lists = pa.ListArray.from_arrays(values.offsets, _local(values.values, zone))
    return pc.if_else(values.is_null(), pa.scalar(None, lists.type), lists) if values.null_count else lists


def _window(rows: pa.Table) -> pa.Array:
    """Return the windows of rows as a struct, as Spark's window() returns them."""
    return pa.StructArray.from_arrays([as_array(rows[edge]) for edge in WINDOW_EDGES], names=["start", "end"])


def _order(rows: pa.Table, presentation: Presentation) -> NDArray[np.int64]:
    """Return the places of the rows in their order; rows that are equal in all keys stay as they are."""
    ranks = [rank for key in presentation.order for rank in _ranks(rows, key)]
    return np.lexsort(ranks[::-1])


def _ranks(rows: pa.Table, key: SortKey) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where NULL stands, and the rank of every value: NaN is the largest number, as in Spark."""
    values = as_array(rows[key.column])
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    nulls = np.asarray(values.is_null(), np.bool_)
    is_nan = np.zeros(len(values), np.bool_)
    if pa.types.is_floating(values.type):
        numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False)
        is_nan = np.isnan(numbers) & ~nulls
        values = pa.array(np.where(nulls | is_nan, 0.0, numbers + 0.0))  # −0.0 equals 0.0
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    try:
        found = pc.rank(values, sort_keys="ascending", tiebreaker="dense")
    except pa.ArrowNotImplementedError:
        raise WindloomError(
            f"rows cannot be ordered by '{key.column}'",
            f"it is of type {values.type}",
            "order by plain values: by its fields or elements",
        ) from None
    ranks = found.to_numpy(zero_copy_only=False).astype(np.int64)
    ranks = np.where(is_nan, len(ranks) + 1, ranks)
    ranks = np.where(nulls, 0, -ranks if key.is_descending else ranks)
    return np.where(nulls, -1 if key.nulls_first else 1, 0), ranks
