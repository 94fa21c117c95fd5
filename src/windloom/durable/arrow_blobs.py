"""Arrow tables as blobs of a frame, and back."""

from __future__ import annotations

import pyarrow as pa


def table_blob(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def table_of(blob: memoryview) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()
