"""The tuple store: files of tuples under the checkpoint, written before the round that brings them is logged.

`tuples/<stream>/000000042-5f1c….parquet` holds tuples that came in round 42, all in one stretch of time, so that they
expire together: a file dies whole. The name is drawn anew by every attempt, and only names that the log of a round
holds count: what an interrupted attempt has left is deleted. Several small files of one stretch are merged into one.

Columns are called by their place in the stream (`c0`, `c3`), which is fixed for a checkpoint. `__tick` is the event
time of a tuple, `__round` the round in which it came.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from windloom.durable.checkpoint import Checkpoint
from windloom.durable.faults import fault
from windloom.durable.recovery import Recovered
from windloom.durable.storage import NewFile, Storage
from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.plan.rows import Store
from windloom.plan.scans import Kept, WovenScan
from windloom.rounds.rows.kept import BroughtTuples, KeptTuples, TupleFile, files_of
from windloom.weave.tuples import SIGNATURE_BITS

FOLDER = "tuples"
TICK, ROUND = "__tick", "__round"
#: What is kept of a stream is divided into so many stretches of time, which expire one after another.
STRETCHES = 8
#: More files than this are not written at a time; a round that brings more stretches writes some in several files.
_MOST_OPEN = 32
#: So many files of one stretch are merged into one.
MERGED_FILES = 8


def column_name(stream: Stream, column: str) -> str:
    """The name of a column of the stream in files."""
    return f"c{list(stream.columns).index(column)}"


def folder_of(stream: str) -> str:
    """A name that is safe as a directory, and different for different streams."""
    slug = re.sub(r"[^a-z0-9]+", "_", stream.lower()).strip("_")[:40]
    return f"{FOLDER}/{slug}-{hashlib.sha256(stream.encode()).hexdigest()[:6]}"


def stretch_ticks(plan: Plan, store: Store) -> int:
    """The length of the stretches into which tuples are divided: an eighth of how long they are kept."""
    ranges = [
        strand.window.range_ticks + strand.window.slide_ticks
        for planned in plan.rows
        for strand in planned.rows.strands
        if strand.stream == store.stream
    ]
    return max(1, max([store.keep_ticks, *ranges]) // STRETCHES)


class TupleFolder:
    """All files of tuples of a checkpoint. `place` is where Spark finds them; only the driver deletes any."""

    def __init__(self, storage: Storage, place: str, streams: Mapping[str, Stream]) -> None:
        self.place, self._storage, self._streams = place, storage, streams
        self._lock = threading.Lock()
        self._pins: Counter[str] = Counter()
        self._wanted: frozenset[str] | None = None

    def writer(self, round: int, plan: Plan) -> TupleWriter:
        return TupleWriter(self._storage, round, plan, self._streams)

    def path(self, name: str) -> str:
        return f"{self.place}/{name}"

    # ---- which files there are ----------------------------------------------------------------------------------

    def keep_only(self, names: Collection[str]) -> None:
        """Deletes every other file, but for those that are pinned: these go when nobody reads them any more."""
        with self._lock:
            self._wanted = frozenset(names)
            for stream in self._streams:
                folder = folder_of(stream)
                for file in self._storage.list(folder):
                    name = f"{folder}/{file}"
                    if name not in self._wanted and not self._pins[name]:
                        self._storage.delete(name)

    @contextmanager
    def pinned(self, names: Collection[str]) -> Iterator[None]:
        """Keeps these files, whatever rounds are committed, until the end of the `with`."""
        with self._lock:
            self._pins.update(names)
        try:
            yield
        finally:
            with self._lock:
                self._pins.subtract(names)
                for name in names:
                    if not self._pins[name] and self._wanted is not None and name not in self._wanted:
                        self._storage.delete(name)

    def sizes(self, stream: str) -> dict[str, int]:
        """The files of a stream that are there, with their bytes."""
        folder = folder_of(stream)
        return {f"{folder}/{file}": size for file, size in self._storage.sizes(folder).items()}

    # ---- what is in them ----------------------------------------------------------------------------------------

    def read(self, file: TupleFile, columns: Sequence[str] | None = None) -> pa.Table:
        """The tuples of a file; columns that it does not have are missing."""
        data = self._storage.read(file.name)
        if data is None:
            raise missing_file(file)
        try:
            opened = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
            wanted = None if columns is None else [name for name in columns if name in opened.schema_arrow.names]
            return opened.read(wanted)
        except (pa.ArrowException, OSError) as error:
            raise damaged_file(file, str(error).splitlines()[0]) from error

    def merge(self, stream: str, files: Sequence[TupleFile], round: int) -> TupleFile:
        """One file with the tuples of several, in the order of the rounds in which they came."""
        tables = [self.read(file) for file in files]
        table = pa.concat_tables(tables, promote_options="default")
        written = _Written(self._storage, f"{folder_of(stream)}/{_unique(round)}", table.schema)
        try:
            written.add(table)
            done = written.finish()
        except BaseException:
            written.discard()
            raise
        return TupleFile(
            done.name,
            min(file.first for file in files),
            max(file.last for file in files),
            min(file.first_round for file in files),
            max(file.last_round for file in files),
            table.num_rows,
            done.bytes,
        )

    def to_merge(self, kept: KeptTuples, ticks: int) -> list[tuple[TupleFile, ...]]:
        """Files that should be one: so many of one stretch and of about one size, none of which is large."""
        found: dict[tuple[int, int], list[TupleFile]] = {}
        for file in kept.files:
            if file.first // ticks == file.last // ticks:
                found.setdefault((file.first // ticks, _size_class(file.rows)), []).append(file)
        return [tuple(files[:MERGED_FILES]) for files in found.values() if len(files) >= MERGED_FILES]


def named_files(checkpoint: Checkpoint, recovered: Recovered) -> set[str]:
    """The files that are kept, and those of a round that was interrupted; all others are leftovers."""
    log = checkpoint.read_log(recovered.next_round)
    brought = () if log is None else log.input.kept.values()
    return files_of(recovered.state.kept) | {file.name for one in brought for file in one.added}


def _size_class(rows: int) -> int:
    """Files of one class are merged to one of the next: every tuple is rewritten a few times, however many come."""
    return int(np.log(max(1, rows)) / np.log(MERGED_FILES))


def missing_file(file: TupleFile) -> WindloomError:
    return WindloomError(
        f"the tuple file '{file.name}' is missing",
        f"it holds {file.rows:,} tuples of rounds {file.first_round} to {file.last_round}",
        _MEND,
    )


def damaged_file(file: TupleFile, why: str) -> WindloomError:
    return WindloomError(f"the tuple file '{file.name}' is damaged", why, _MEND)


_MEND = (
    "restore it from a copy; or delete it and start again with the same checkpoint: windows of row queries that need it"
    " are not reported then, and all other queries go on"
)


class TupleWriter:
    """Writes the tuples of one round, stretch by stretch; they count when the log of the round names their files."""

    def __init__(self, storage: Storage, round: int, plan: Plan, streams: Mapping[str, Stream]) -> None:
        self._storage, self._round, self._plan, self._streams = storage, round, plan, streams
        self._open: dict[tuple[str, int], _Written] = {}
        self._done: dict[str, list[TupleFile]] = {}

    def take(self, scan: WovenScan, table: pa.Table) -> None:
        """Takes the tuples of a scan, all with a tick, as Spark has projected them."""
        kept, store = scan.kept, self._plan.store(scan.stream)
        if kept is None or store is None or not table.num_rows:
            return
        wanted = _chosen(scan, kept, table)
        stream, first = self._streams[scan.stream], 1 + scan.signature.words
        names = [column_name(stream, name) for name in kept.names]
        ticks = table.column(0)
        columns = [ticks, pa.array(np.full(table.num_rows, self._round, np.int64))]
        columns += [table.column(first + place) for place in kept.places]
        tuples = pa.Table.from_arrays(columns, names=[TICK, ROUND, *names])
        self.write(store, tuples if wanted is None else tuples.filter(pa.array(wanted)))

    def write(self, store: Store, tuples: pa.Table) -> None:
        """Writes tuples with the columns of files."""
        if not tuples.num_rows:
            return
        ticks = tuples.column(TICK).to_numpy()
        stretches = ticks // stretch_ticks(self._plan, store)
        lowest, highest = int(stretches.min()), int(stretches.max())
        if lowest == highest:
            self._file(store.stream, lowest, tuples.schema).add(tuples)
            return
        order = np.argsort(stretches, kind="stable")
        sorted_stretches = stretches[order]
        bounds = np.flatnonzero(np.diff(sorted_stretches)) + 1
        for rows in np.split(order, bounds):
            part = tuples.take(pa.array(rows))
            self._file(store.stream, int(stretches[rows[0]]), tuples.schema).add(part)

    def _file(self, stream: str, stretch: int, schema: pa.Schema) -> _Written:
        key = (stream, stretch)
        if key not in self._open:
            if len(self._open) >= _MOST_OPEN:
                oldest = next(iter(self._open))
                self._finish(oldest)
            self._open[key] = _Written(self._storage, f"{folder_of(stream)}/{_unique(self._round)}", schema)
        return self._open[key]

    def _finish(self, key: tuple[str, int]) -> None:
        written = self._open.pop(key)
        done = written.finish()
        assert written.first is not None
        assert written.last is not None
        file = TupleFile(done.name, written.first, written.last, self._round, self._round, written.rows, done.bytes)
        self._done.setdefault(key[0], []).append(file)

    def finish(self) -> dict[str, BroughtTuples]:
        """All files, complete and durable, by stream."""
        fault("before tuples")
        for key in list(self._open):
            self._finish(key)
        fault("after tuples")
        return {stream: BroughtTuples(tuple(files)) for stream, files in self._done.items()}

    def discard(self) -> None:
        for written in self._open.values():
            written.discard()
        self._open = {}


@dataclass(frozen=True, slots=True)
class _Done:
    name: str
    bytes: int


class _Written:
    """One file while it is written."""

    def __init__(self, storage: Storage, name: str, schema: pa.Schema) -> None:
        self._name = name
        self._file: NewFile = storage.create(name)
        self.rows = 0
        self.first: int | None = None
        self.last: int | None = None
        try:
            self._writer = pq.ParquetWriter(
                self._file.stream, schema, compression="zstd", compression_level=1, write_page_checksum=True
            )
        except OSError as error:
            self._file.discard()
            raise self._file.failed(error) from error

    def add(self, table: pa.Table) -> None:
        try:
            self._writer.write_table(table)
        except OSError as error:
            raise self._file.failed(error) from error
        span = pc.min_max(table.column(TICK)).as_py()
        self.rows += table.num_rows
        self.first = span["min"] if self.first is None else min(self.first, span["min"])
        self.last = span["max"] if self.last is None else max(self.last, span["max"])

    def finish(self) -> _Done:
        try:
            self._writer.close()
            size = self._file.stream.tell()
        except OSError as error:
            raise self._file.failed(error) from error
        self._file.finish()
        return _Done(self._name, int(size))

    def discard(self) -> None:
        with suppress(OSError, ValueError):  # of a file that is closed, or takes no more
            self._writer.close()
        self._file.discard()


def _unique(round: int) -> str:
    return f"{round:09d}-{uuid4().hex}.parquet"


def _chosen(scan: WovenScan, kept: Kept, table: pa.Table) -> NDArray[np.bool_] | None:
    """Which tuples are kept; None for all."""
    if kept.bits is None:
        return None
    found = np.zeros(table.num_rows, np.bool_)
    for word in range(scan.signature.words):
        own = [bit % SIGNATURE_BITS for bit in kept.bits if bit // SIGNATURE_BITS == word]
        mask = sum(1 << bit for bit in own)
        if mask:
            found |= (table.column(1 + word).to_numpy() & mask) != 0
    return found
