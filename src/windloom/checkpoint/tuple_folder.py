"""The tuple files of a checkpoint: a round writes them by stretches of time, small ones merge, unneeded ones go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.recovery import RecoveredState
from windloom.checkpoint.storage import Pins, Storage, fault
from windloom.checkpoint.tuple_files import (
    ROUND,
    TICK,
    LostTuplesError,
    WrittenFile,
    column_name,
    current_room,
    folder_of,
    lost_tuples,
    new_file,
    read_tuples,
    refuse_without_room,
)
from windloom.errors import WindloomError
from windloom.kernels.tuples.signatures import SIGNATURE_BITS
from windloom.model.stream import Stream
from windloom.plan.plan import Plan
from windloom.plan.rows import Retention, kept_ticks
from windloom.plan.scans import RetainedColumns, WovenScan
from windloom.state.tuple_store import NewTupleFiles, TupleFile, TupleStore, TupleStores, files_of, kept_with

#: The tuples kept of a stream are divided into this many stretches of time, which expire one after another.
STRETCHES = 8
#: The most files that are open at a time; a round that brings more stretches writes some in several files.
_MOST_OPEN = 32
#: The number of writing threads: one divides a portion and writes its largest part, so there must be another.
_WRITERS = 2
#: The type of ticks as a column of times.
_INSTANT = pa.timestamp("us", tz="UTC")


def stretch_ticks(plan: Plan, store: Retention) -> int:
    """Return the length of the stretches into which tuples are divided: an eighth of the time they are kept."""
    return max(1, kept_ticks(store, plan.rows) // STRETCHES)


class TupleWriter:
    """Writes the tuple files of one attempt at one round; they count when the log of the round names them.

    Its own threads write tuples while the round makes cells of them, one portion at a time, so that it holds no more
    memory than the round does anyway. Errors of these threads are raised when the next portion comes, or at the end.
    """

    def __init__(self, storage: Storage, round: int, plan: Plan, streams: Mapping[str, Stream]) -> None:
        self._storage, self._round, self._plan, self._streams = storage, round, plan, streams
        self._open: dict[tuple[str, int], WrittenFile] = {}
        self._done: dict[str, list[TupleFile]] = {}
        self._threads = ThreadPoolExecutor(_WRITERS, "windloom-tuples")
        self._writing: Future[None] | None = None

    def take(self, scan: WovenScan, table: pa.Table) -> None:
        """Take the tuples of a scan, all with a tick, as Spark has projected them."""
        kept, store = scan.kept, self._plan.store(scan.stream)
        if kept is None or store is None or not table.num_rows:
            return
        self._wait()
        self._writing = self._threads.submit(self._take, scan, kept, store, table)

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _take(self, scan: WovenScan, kept: RetainedColumns, store: Retention, table: pa.Table) -> None:
        wanted = _chosen(scan, kept, table)
        stream, first = self._streams[scan.stream], 1 + scan.signature.words
        ticks = table.column(0)
        columns = [ticks, pa.array(np.full(table.num_rows, self._round, np.int64))]
        columns += [ticks.cast(_INSTANT) if index is None else table.column(first + index) for index in kept.places]
        names = [TICK, ROUND, *(column_name(stream, name) for name in kept.names)]
        tuples = pa.Table.from_arrays(columns, names=names)
        tuples = tuples if wanted is None else tuples.filter(pa.array(wanted))
        if not tuples.num_rows:
            return
        stretches = tuples.column(TICK).to_numpy() // stretch_ticks(self._plan, store)
        # If a round brings more time than is kept, all tuples that will be dropped first go into one stretch.
        stretches = np.maximum(stretches, stretches.max() - 2 * STRETCHES)
        if np.any(np.diff(stretches) < 0):  # most tuples come in order, and are not copied
            order = np.argsort(stretches, kind="stable")
            tuples, stretches = tuples.take(pa.array(order)), stretches[order]
        edges = [0, *(np.flatnonzero(np.diff(stretches)) + 1).tolist(), len(stretches)]
        divided = {
            (store.stream, int(stretches[begin])): tuples.slice(begin, end - begin) for begin, end in pairwise(edges)
        }
        # The oldest files that are not wanted are finished, so that not too many are open.
        for key in [key for key in self._open if key not in divided]:
            if len(self._open.keys() | divided.keys()) > _MOST_OPEN:
                self._finish(key)
        for key in divided:
            if key not in self._open:
                self._open[key] = WrittenFile(self._storage, new_file(store.stream, self._round), tuples.schema)
        # The largest part is written by this thread, and the others meanwhile by other threads.
        *smaller, largest = sorted(divided, key=lambda key: divided[key].num_rows)
        others = [self._threads.submit(self._open[key].add, divided[key]) for key in smaller]
        self._open[largest].add(divided[largest])
        for other in others:
            other.result()

    def _finish(self, key: tuple[str, int]) -> None:
        self._done.setdefault(key[0], []).append(self._open[key].finish(self._round, self._round))
        del self._open[key]

    def finish(self) -> dict[str, tuple[TupleFile, ...]]:
        """Finish all files; return them, complete and durable, by stream."""
        self._wait()
        self._threads.shutdown()
        fault("before tuples")
        for key in list(self._open):
            self._finish(key)
        fault("after tuples")
        return {stream: tuple(files) for stream, files in self._done.items()}

    def discard(self) -> None:
        """Drop files that are not finished; finished files are leftovers."""
        with suppress(Exception):  # another error is already being raised
            self._wait()
        self._threads.shutdown()
        for written in self._open.values():
            written.discard()
        self._open = {}


def _chosen(scan: WovenScan, kept: RetainedColumns, table: pa.Table) -> NDArray[np.bool_] | None:
    """Return a mask of the tuples that are kept; None if all are kept."""
    if kept.bits is None:
        return None
    mask_of_kept = np.zeros(table.num_rows, np.bool_)
    for word in range(scan.signature.words):
        mask = sum(1 << bit % SIGNATURE_BITS for bit in kept.bits if bit // SIGNATURE_BITS == word)
        if mask:
            mask_of_kept |= (table.column(1 + word).to_numpy() & mask) != 0
    return mask_of_kept


#: This many files of one stretch and of about one size are merged into one.
MERGED_FILES = 8
#: Files with more rows are not merged: what is read from them at once is already long enough.
MERGED_ROWS = 1 << 18


class TupleFolder:
    """All tuple files of a checkpoint; `place` is where Spark finds them, and only the driver deletes any.

    `lost` are, by stream, files that `look_for_lost` has found to be missing, or that cannot be read.
    """

    def __init__(self, storage: Storage, place: str, streams: Mapping[str, Stream]) -> None:
        self.place, self._storage, self._streams = place, storage, streams
        self._pins = Pins(storage.delete)
        self.lost: dict[str, frozenset[str]] = {}
        self._unreadable: set[str] = set()

    def writer(self, round: int, plan: Plan) -> TupleWriter:
        return TupleWriter(self._storage, round, plan, self._streams)

    def brought(
        self, written: Mapping[str, tuple[TupleFile, ...]], before: TupleStores, plan: Plan, round: int
    ) -> dict[str, NewTupleFiles]:
        """Return the files that a round adds, and the small ones that it replaces by one; raise if there is no room."""
        files_by_stream = {}
        for store in plan.stores:
            kept = before.get(store.stream, TupleStore())
            lost = self.lost.get(store.stream, frozenset())
            try:
                merged, replaced = self._merged(store.stream, kept, lost, stretch_ticks(plan, store), round)
            except LostTuplesError as error:
                # The round only keeps tuples here, so it continues without the file, as if it were missing.
                merged, replaced, lost = (), frozenset(), lost | {error.name}
            added = (*merged, *written.get(store.stream, ()))
            if added or replaced or lost:
                files_by_stream[store.stream] = NewTupleFiles(added, replaced, lost)
        refuse_without_room(current_room(plan, kept_with(before, files_by_stream, plan)), self._storage)
        return files_by_stream

    def _merged(
        self, stream: str, kept: TupleStore, lost: Collection[str], ticks: int, round: int
    ) -> tuple[tuple[TupleFile, ...], frozenset[str]]:
        """Merge files, at most once per round, because the round waits while tuples are read and written."""
        files = next(_alike([file for file in kept.files if file.name not in lost], ticks), ())
        if not files:
            return (), frozenset()
        table = pa.concat_tables([self.read(file) for file in files], promote_options="default")
        written = WrittenFile(self._storage, new_file(stream, round), table.schema)
        try:
            written.add(table)
            merged = written.finish(min(file.first_round for file in files), max(file.last_round for file in files))
        except BaseException:
            written.discard()
            raise
        return (merged,), frozenset(file.name for file in files)

    def keep_only(self, names: Collection[str]) -> None:
        """Delete every other file, except for pinned files."""
        self._unreadable &= set(names)
        folders = [folder_of(stream) for stream in self._streams]
        self._pins.keep_only(names, lambda: [f"{at}/{file}" for at in folders for file in self._storage.list(at)])

    def pinned(self, names: Collection[str]) -> AbstractContextManager[None]:
        """Keep these files, whatever rounds are committed, until the end of the `with`."""
        return self._pins.pinned(names)

    def look_for_lost(self, kept: TupleStores) -> None:
        """Find files that are missing, have another size than when they were written, or could not be read before."""
        self.lost = {}
        for stream, stored in kept.items():
            folder = folder_of(stream)
            there = {f"{folder}/{name}": size for name, size in self._storage.sizes(folder).items()}
            missing = {file.name for file in stored.files if there.get(file.name) != file.bytes}
            lost = missing | {file.name for file in stored.files if file.name in self._unreadable}
            if lost:
                self.lost[stream] = frozenset(lost)

    def lose(self, name: str) -> bool:
        """Count a file that could not be read as lost; False if it was lost before."""
        stream = next(stream for stream in self._streams if name.startswith(f"{folder_of(stream)}/"))
        before = self.lost.get(stream, frozenset())
        self.lost[stream] = before | {name}
        self._unreadable.add(name)
        return name not in before

    def readable(self, kept: TupleStores) -> TupleStores:
        """Return the kept tuples without the lost files."""
        return {stream: kept_tuples.without(self.lost.get(stream, frozenset())) for stream, kept_tuples in kept.items()}

    def read(self, file: TupleFile, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the tuples of a file; columns that the file does not have are left out."""
        return read_tuples(self._storage, file, columns)

    @contextmanager
    def naming_damage(self, kept: TupleStores) -> Iterator[None]:
        """Raise an error that names the file, if reading tuples fails because of a file."""
        try:
            yield
        except Exception as error:
            for file in (file for kept_tuples in kept.values() for file in kept_tuples.files):
                try:
                    rows = self.read(file).num_rows
                except WindloomError as fault:
                    raise fault from error
                if rows != file.rows:
                    fact = f"it has {rows:,} tuples, and {file.rows:,} were written"
                    raise lost_tuples(file, "damaged", fact) from error
            raise


def _alike(files: Sequence[TupleFile], ticks: int) -> Iterator[tuple[TupleFile, ...]]:
    """Yield files to merge: in one stretch, so that they expire together, and of about the same size.

    Files of one size class become a file of the next class, so every tuple is rewritten only a few times.
    """
    classes: dict[tuple[int, int], list[TupleFile]] = {}
    for file in files:
        if file.first // ticks == file.last // ticks and file.rows <= MERGED_ROWS:
            size = int(np.log(max(1, file.rows)) / np.log(MERGED_FILES))
            same_class = classes.setdefault((file.first // ticks, size), [])
            same_class.append(file)
            if len(same_class) == MERGED_FILES:
                yield tuple(same_class)
                same_class.clear()


def named_files(checkpoint: Checkpoint, recovered: RecoveredState) -> set[str]:
    """Return the files that are kept, and the files of a round that was interrupted; all others are leftovers."""
    log = checkpoint.read_log(recovered.next_round)
    brought = () if log is None else log.input.kept.values()
    return files_of(recovered.state.kept) | {file.name for brought_tuples in brought for file in brought_tuples.added}
