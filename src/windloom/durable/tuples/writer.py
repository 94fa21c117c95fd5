"""Writes the tuples of one round by stretches of time; the files count when the log of the round names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.durable.faults import fault
from windloom.durable.storage import Storage
from windloom.durable.tuples.columns import ROUND, TICK, column_name, new_file
from windloom.durable.tuples.files import WrittenFile
from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.plan.rows import Store, kept_ticks
from windloom.plan.scans import Kept, WovenScan
from windloom.rounds.rows.kept import TupleFile
from windloom.weave.signatures import SIGNATURE_BITS

#: The tuples kept of a stream are divided into this many stretches of time, which expire one after another.
STRETCHES = 8
#: The most files that are open at a time; a round that brings more stretches writes some in several files.
_MOST_OPEN = 32
#: The number of writing threads: one divides a portion and writes its largest part, so there must be another.
_WRITERS = 2
#: The type of ticks as a column of times.
_INSTANT = pa.timestamp("us", tz="UTC")


def stretch_ticks(plan: Plan, store: Store) -> int:
    """Return the length of the stretches into which tuples are divided: an eighth of the time they are kept."""
    return max(1, kept_ticks(store, plan.rows) // STRETCHES)


class TupleWriter:
    """Writes the tuple files of one attempt at one round.

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

    def _take(self, scan: WovenScan, kept: Kept, store: Store, table: pa.Table) -> None:
        wanted = _chosen(scan, kept, table)
        stream, first = self._streams[scan.stream], 1 + scan.signature.words
        ticks = table.column(0)
        columns = [ticks, pa.array(np.full(table.num_rows, self._round, np.int64))]
        columns += [ticks.cast(_INSTANT) if index is None else table.column(first + index) for index in kept.places]
        names = [TICK, ROUND, *(column_name(stream, name) for name in kept.names)]
        tuples = pa.Table.from_arrays(columns, names=names)
        # Writes tuples that have the columns of files.
        tuples = tuples if wanted is None else tuples.filter(pa.array(wanted))
        if tuples.num_rows:
            stretches = tuples.column(TICK).to_numpy() // stretch_ticks(self._plan, store)
            # If a round brings more time than is kept, all tuples that will be dropped first go into one stretch.
            stretches = np.maximum(stretches, stretches.max() - 2 * STRETCHES)
            divided = list(_divided(tuples, stretches))
            self._make_room({(store.stream, stretch) for stretch, _ in divided})
            parts = [(self._file(store.stream, stretch, tuples.schema), part) for stretch, part in divided]
            parts.sort(key=lambda each: each[1].num_rows)
            # The largest part is written by this thread, and the others meanwhile by other threads.
            others = [self._threads.submit(file.add, part) for file, part in parts[:-1]]
            for file, part in parts[-1:]:
                file.add(part)
            for other in others:
                other.result()

    def _file(self, stream: str, stretch: int, schema: pa.Schema) -> WrittenFile:
        key = (stream, stretch)
        if key not in self._open:
            self._open[key] = WrittenFile(self._storage, new_file(stream, self._round), schema)
        return self._open[key]

    def _make_room(self, wanted: set[tuple[str, int]]) -> None:
        """Finish the oldest files that are not wanted, so that not too many are open."""
        for key in [key for key in self._open if key not in wanted]:
            if len(self._open.keys() | wanted) <= _MOST_OPEN:
                return
            self._finish(key)

    def _finish(self, key: tuple[str, int]) -> None:
        written = self._open[key]
        self._done.setdefault(key[0], []).append(written.finish(self._round, self._round))
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


def _divided(tuples: pa.Table, stretches: NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    """Yield tuples by stretch; tuples that come in order, as most do, are not copied."""
    steps = np.diff(stretches)
    if len(steps) and steps.min() < 0:
        order = np.argsort(stretches, kind="stable")
        tuples, stretches = tuples.take(pa.array(order)), stretches[order]
        steps = np.diff(stretches)
    edges = [0, *(np.flatnonzero(steps) + 1).tolist(), len(stretches)]
    for begin, end in pairwise(edges):
        yield int(stretches[begin]), tuples.slice(begin, end - begin)


def _chosen(scan: WovenScan, kept: Kept, table: pa.Table) -> NDArray[np.bool_] | None:
    """Return a mask of the tuples that are kept; None if all are kept."""
    if kept.bits is None:
        return None
    mask_of_kept = np.zeros(table.num_rows, np.bool_)
    for word in range(scan.signature.words):
        mask = sum(1 << bit % SIGNATURE_BITS for bit in kept.bits if bit // SIGNATURE_BITS == word)
        if mask:
            mask_of_kept |= (table.column(1 + word).to_numpy() & mask) != 0
    return mask_of_kept
