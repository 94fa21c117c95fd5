"""Files of tuples: their names, writing one part by part, reading it whole, and whether there is room for more."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windloom.checkpoint.storage import Storage, UnfinishedFile
from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.model.time import TICKS_PER_SECOND, format_duration
from windloom.plan.plan import Plan
from windloom.plan.rows import kept_ticks, store_size
from windloom.state.tuple_store import TupleFile, TupleStores

FOLDER = "tuples"
TICK, ROUND = "__tick", "__round"


def column_name(stream: Stream, column: str) -> str:
    """Return the name of a column of the stream in files."""
    return f"c{list(stream.columns).index(column)}"


def folder_of(stream: str) -> str:
    """Return the folder of a stream: a name that is safe as a directory, and different for different streams."""
    slug = re.sub(r"[^a-z0-9]+", "_", stream.lower()).strip("_")[:40]
    return f"{FOLDER}/{slug}-{hashlib.sha256(stream.encode()).hexdigest()[:6]}"


def new_file(stream: str, round: int) -> str:
    """Return a file name that no other attempt has."""
    return f"{folder_of(stream)}/{round:09d}-{uuid4().hex}.parquet"


class LostTuplesError(WindloomError):
    """A file of tuples that is missing or damaged."""

    name: str


def lost_tuples(file: TupleFile, what: str, fact: str) -> LostTuplesError:
    """Return the error for a file that is `what`: missing or damaged."""
    hint = (
        "restore it from a copy before a round needs it; otherwise windows of row queries that need it are not"
        " reported, and all other queries go on"
    )
    error = LostTuplesError(f"the tuple file '{file.name}' is {what}", fact, hint)
    error.name = file.name
    return error


def read_tuples(storage: Storage, file: TupleFile, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the tuples of a file; columns that the file does not have are left out."""
    data = storage.read(file.name)
    if data is None:
        fact = f"it holds {file.rows:,} tuples of rounds {file.first_round} to {file.last_round}"
        raise lost_tuples(file, "missing", fact)
    try:
        opened = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        wanted = None if columns is None else [name for name in columns if name in opened.schema_arrow.names]
        return opened.read(wanted)
    except (pa.ArrowException, OSError) as error:
        raise lost_tuples(file, "damaged", str(error).splitlines()[0]) from error


class WrittenFile:
    """A file while it is written; it appears when it is finished, and not before."""

    def __init__(self, storage: Storage, name: str, schema: pa.Schema) -> None:
        self._name = name
        self._file: UnfinishedFile = storage.create(name)
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
    """Return the encodings of columns: times grow, texts repeat, and whole numbers close together need few bits."""
    kinds = pa.types
    texts = [
        column.name
        for column in schema
        if any(is_text(column.type) for is_text in (kinds.is_string, kinds.is_binary, kinds.is_dictionary))
    ]
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


#: The tuples so far predict the size of a full store once they span this share of the time for which they are kept.
_TELLING = 0.01


@dataclass(frozen=True, slots=True)
class Room:
    """The room that one stream needs: the bytes so far, and the bytes that are expected when its store is full."""

    stream: str
    ticks: int
    held: int
    expected: float


def planned_room(plan: Plan, kept: TupleStores) -> list[Room]:
    """Return what is expected before a stream starts, for streams whose rates are known."""
    rooms = []
    for store in plan.stores:
        rate, origin = plan.rate_of(plan.stream(store.stream))
        if origin.source != "assumed":
            size = store_size(store, plan.rows, rate, origin)
            bytes_so_far = kept[store.stream].bytes if store.stream in kept else 0
            rooms.append(Room(store.stream, size.ticks, bytes_so_far, size.bytes))
    return rooms


def current_room(plan: Plan, kept: TupleStores) -> list[Room]:
    """Return what is expected if tuples continue to come as they did, for streams that keep some."""
    rooms = []
    for store in plan.stores:
        stored, ticks = kept.get(store.stream), kept_ticks(store, plan.rows)
        if stored is None:
            continue
        first = min((file.first for file in stored.files), default=0)
        span = max((file.last for file in stored.files), default=0) - first
        is_telling = span >= max(_TELLING * ticks, TICKS_PER_SECOND)
        expected = stored.bytes * max(1.0, ticks / span) if is_telling else float(stored.bytes)
        rooms.append(Room(store.stream, ticks, stored.bytes, expected))
    return rooms


def refuse_without_room(rooms: Sequence[Room], storage: Storage) -> None:
    """Raise if streams are expected to keep more tuples than there is room for."""
    free = storage.free_bytes() if rooms else None
    if free is None:
        return
    more = sum(max(0.0, room.expected - room.held) for room in rooms)
    if more <= free:
        return
    largest = max(rooms, key=lambda room: room.expected)
    raise WindloomError(
        f"there is no room to keep the tuples of stream '{largest.stream}' for {format_duration(largest.ticks)}",
        f"about {_bytes(sum(room.expected for room in rooms))} are expected in all, {_bytes(free)} are free,"
        f" and {_bytes(sum(room.held for room in rooms))} are there already",
        "keep them for a shorter time (keep_tuples, or the windows of row queries), or make room;"
        " then start again with the same checkpoint: nothing is lost",
    )


def _bytes(count: float) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} bytes"
