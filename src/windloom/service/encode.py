"""Answers as JSON, CSV or an Arrow stream."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.csv as pcsv

from windloom.engine.json_values import plain
from windloom.service.models import Rows

FORMATS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}


def as_rows(table: pa.Table) -> Rows:
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return Rows(
        columns=table.column_names,
        types=[str(field.type) for field in table.schema],
        rows=[list(row) for row in zip(*columns, strict=True)],
    )


def csv_bytes(table: pa.Table) -> bytes:
    file = io.BytesIO()
    # The table with dictionaries decoded, and lists and structures as JSON text.
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_dictionary(kind):
            columns.append(column.cast(kind.value_type))
        elif pa.types.is_nested(kind):
            texts = [None if value is None else json.dumps(plain(value)) for value in column.to_pylist()]
            columns.append(pa.chunked_array([pa.array(texts, pa.string())]))
        else:
            columns.append(column)
    pcsv.write_csv(pa.table(columns, names=table.column_names), file)
    return file.getvalue()


def arrow_pieces(table: pa.Table) -> Iterator[bytes]:
    """Yield the stream, batch by batch."""
    file = io.BytesIO()

    def taken() -> bytes:
        data = file.getvalue()
        file.seek(0)
        file.truncate()
        return data

    with pa.ipc.new_stream(file, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=65_536):
            writer.write_batch(batch)
            yield taken()
    yield taken()


ENCODERS: dict[str, Callable[[pa.Table], bytes | Iterator[bytes]]] = {"csv": csv_bytes, "arrow": arrow_pieces}
