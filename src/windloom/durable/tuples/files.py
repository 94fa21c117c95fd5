"""One file of tuples: written part by part, read whole; and the errors if it is missing or damaged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windloom.durable.storage import NewFile, Storage
from windloom.durable.tuples.columns import ROUND, TICK
from windloom.errors import WindloomError
from windloom.rounds.rows.kept import TupleFile

_MEND = (
    "restore it from a copy before a round needs it; otherwise windows of row queries that need it are not reported,"
    " and all other queries go on"
)


class LostTuplesError(WindloomError):
    """A file of tuples that is missing or damaged."""

    name: str


def damaged_file(file: TupleFile, why: str) -> LostTuplesError:
    return _lost(file, f"the tuple file '{file.name}' is damaged", why)


def _lost(file: TupleFile, message: str, fact: str) -> LostTuplesError:
    error = LostTuplesError(message, fact, _MEND)
    error.name = file.name
    return error


def read_tuples(storage: Storage, file: TupleFile, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the tuples of a file; columns that the file does not have are left out."""
    data = storage.read(file.name)
    if data is None:
        fact = f"it holds {file.rows:,} tuples of rounds {file.first_round} to {file.last_round}"
        raise _lost(file, f"the tuple file '{file.name}' is missing", fact)
    try:
        opened = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        wanted = None if columns is None else [name for name in columns if name in opened.schema_arrow.names]
        return opened.read(wanted)
    except (pa.ArrowException, OSError) as error:
        raise damaged_file(file, str(error).splitlines()[0]) from error


class WrittenFile:
    """A file while it is written; it appears when it is finished, and not before."""

    def __init__(self, storage: Storage, name: str, schema: pa.Schema) -> None:
        self._name = name
        self._file: NewFile = storage.create(name)
        self._rows = 0
        self._first: int | None = None
        self._last: int | None = None
        try:
            self._writer = pq.ParquetWriter(self._file.stream, schema, **_encodings(schema))
        except OSError as error:
            self._file.discard()
            raise self._file.failed(error) from error

    def add(self, table: pa.Table) -> None:
        try:
            self._writer.write_table(table)
        except OSError as error:
            raise self._file.failed(error) from error
        span = pc.min_max(table.column(TICK)).as_py()
        self._rows += table.num_rows
        self._first = span["min"] if self._first is None else min(self._first, span["min"])
        self._last = span["max"] if self._last is None else max(self._last, span["max"])

    def finish(self, first_round: int, last_round: int) -> TupleFile:
        try:
            self._writer.close()
            size = int(self._file.stream.tell())
        except OSError as error:
            raise self._file.failed(error) from error
        self._file.finish()
        assert self._first is not None
        assert self._last is not None
        return TupleFile(self._name, self._first, self._last, first_round, last_round, self._rows, size)

    def discard(self) -> None:
        with suppress(OSError, ValueError):  # the file is closed, or takes no more
            self._writer.close()
        self._file.discard()


def _encodings(schema: pa.Schema) -> dict[str, object]:
    """Return the encodings of columns: times grow, texts repeat, and whole numbers that are close together need few
    bits.
    """
    texts = [column.name for column in schema if _is_text(column.type)]
    whole = (pa.int32(), pa.int64())
    packed = [
        column.name
        for column in schema
        if column.name != ROUND and (column.type in whole or pa.types.is_timestamp(column.type))
    ]
    return {
        "compression": "lz4",
        "use_dictionary": [*texts, ROUND],
        "column_encoding": dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        "write_page_checksum": True,
        "store_schema": False,  # texts that came with a dictionary are read as texts
    }


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_dictionary(kind))
