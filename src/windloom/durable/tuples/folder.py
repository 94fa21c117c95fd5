"""All files of tuples of a checkpoint: which exist, which are needed, which are being read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pyarrow as pa

from windloom.durable.checkpoint import Checkpoint
from windloom.durable.pins import Pins
from windloom.durable.recovery import Recovered
from windloom.durable.storage import Storage
from windloom.durable.tuples.columns import folder_of, new_file
from windloom.durable.tuples.files import LostTuplesError, WrittenFile, damaged_file, read_tuples
from windloom.durable.tuples.room import check_room
from windloom.durable.tuples.writer import TupleWriter, stretch_ticks
from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.rounds.rows.kept import BroughtTuples, Kept, KeptTuples, TupleFile, files_of, kept_with

#: This many files of one stretch and of about one size are merged into one.
MERGED_FILES = 8
#: Files with more rows are not merged: what is read from them at once is already long enough.
MERGED_ROWS = 1 << 18


class TupleFolder:
    """`place` is where Spark finds the files; only the driver deletes any.

    `lost` are, by stream, files that `look_for_lost` has found to be missing, or that cannot be read.
    """

    def __init__(self, storage: Storage, place: str, streams: Mapping[str, Stream]) -> None:
        self.place, self._storage, self._streams = place, storage, streams
        self._pins = Pins(storage.delete)
        self.lost: dict[str, frozenset[str]] = {}
        self._unreadable: set[str] = set()

    # ---- rounds -------------------------------------------------------------------------------------------------

    def writer(self, round: int, plan: Plan) -> TupleWriter:
        return TupleWriter(self._storage, round, plan, self._streams)

    def brought(
        self, written: Mapping[str, tuple[TupleFile, ...]], before: Kept, plan: Plan, round: int
    ) -> dict[str, BroughtTuples]:
        """Return the files that a round adds, and the small files that it replaces by one.

        Raises if there is no room for what the streams keep.
        """
        files_by_stream = {}
        for store in plan.stores:
            kept = before.get(store.stream, KeptTuples())
            lost = self.lost.get(store.stream, frozenset())
            try:
                merged, replaced = self._merged(store.stream, kept, lost, stretch_ticks(plan, store), round)
            except LostTuplesError as error:
                # The round only keeps tuples here, so it continues without the file, as if it were missing.
                merged, replaced, lost = (), frozenset(), lost | {error.name}
            added = (*merged, *written.get(store.stream, ()))
            if added or replaced or lost:
                files_by_stream[store.stream] = BroughtTuples(added, replaced, lost)
        check_room(kept_with(before, files_by_stream, plan), plan, self._storage)
        return files_by_stream

    def _merged(
        self, stream: str, kept: KeptTuples, lost: Collection[str], ticks: int, round: int
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

    # ---- which files there are ----------------------------------------------------------------------------------

    def keep_only(self, names: Collection[str]) -> None:
        """Delete every other file, except for pinned files."""
        self._unreadable &= set(names)
        self._pins.keep_only(names, self._there)

    def _there(self) -> Iterator[str]:
        for folder in map(folder_of, self._streams):
            yield from [f"{folder}/{file}" for file in self._storage.list(folder)]

    def pinned(self, names: Collection[str]) -> AbstractContextManager[None]:
        """Keep these files, whatever rounds are committed, until the end of the `with`."""
        return self._pins.pinned(names)

    def look_for_lost(self, kept: Kept) -> None:
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

    def readable(self, kept: Kept) -> Kept:
        """Return the kept tuples without the lost files."""
        return {stream: kept_tuples.without(self.lost.get(stream, frozenset())) for stream, kept_tuples in kept.items()}

    # ---- what is in them ----------------------------------------------------------------------------------------

    def read(self, file: TupleFile, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the tuples of a file; columns that the file does not have are left out."""
        return read_tuples(self._storage, file, columns)

    @contextmanager
    def naming_damage(self, kept: Kept) -> Iterator[None]:
        """Raise an error that names the file, if reading tuples fails because of a file."""
        try:
            yield
        except Exception as error:
            fault = self._fault_in([file for kept_tuples in kept.values() for file in kept_tuples.files])
            if fault is None:
                raise
            raise fault from error

    def _fault_in(self, files: Sequence[TupleFile]) -> WindloomError | None:
        """Return the error of the first of these files that cannot be read; None if all can be read."""
        for file in files:
            try:
                table = self.read(file)
            except WindloomError as error:
                return error
            if table.num_rows != file.rows:
                return damaged_file(file, f"it has {table.num_rows:,} tuples, and {file.rows:,} were written")
        return None


def _alike(files: Sequence[TupleFile], ticks: int) -> Iterator[tuple[TupleFile, ...]]:
    """Yield files to merge: in one stretch, so that they expire together, and of about the same size.

    Files of one size class become a file of the next class, so every tuple is rewritten only a few times, however many
    come.
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


def named_files(checkpoint: Checkpoint, recovered: Recovered) -> set[str]:
    """Return the files that are kept, and the files of a round that was interrupted; all others are leftovers."""
    log = checkpoint.read_log(recovered.next_round)
    brought = () if log is None else log.input.kept.values()
    return files_of(recovered.state.kept) | {file.name for brought_tuples in brought for file in brought_tuples.added}
