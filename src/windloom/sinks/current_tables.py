"""The tables of the sink `current`: versions that others read while they change, and the update that a round makes.

    <root>/<query>                                a link to the newest version: what readers open
    <root>/.current/<query>/000000042/            the version of round 42
        x12-000000041-1700000000000000-1700000003600000-0.parquet

A file is never changed. A version has hard links to the files that it keeps of the version before, so nothing is
copied, and files of its own for what is new. The link is replaced at once, when the version is complete: a reader sees
one version or the next, and nothing in between. File names are never reused, so a reader that is overtaken finds the
same rows under a name, or no file. A few older versions stay, for readers that have already resolved the link.

Rows whose end is known are kept by that end and by the round in which they came. A round then writes the new rows,
deletes whole files, and rewrites one bucket of ends. Rows whose end depends on tuples to come are kept by the hash of
their group, and a round rewrites the buckets in which something changes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from windloom.checkpoint.storage import fault, sync_file
from windloom.kernels.hashing import spark_hash
from windloom.model.types import as_array
from windloom.sinks.sink import replaced
from windloom.state.cells import number_groups

FOLDER = ".current"
_IDENTITY = ".query"
#: How many versions before the newest are kept.
OLDER = 2
#: How many files are written at the same time.
_WRITERS = 4


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a version: rows of a bucket, made in a round, which end between two ticks (`first` and `last`)."""

    bucket: int
    round: int
    first: int
    last: int
    number: int

    @property
    def name(self) -> str:
        return f"x{self.bucket}-{self.round:09d}-{self.first}-{self.last}-{self.number}.parquet"

    @property
    def is_empty(self) -> bool:
        return self.last == 0

    @classmethod
    def parse(cls, name: str) -> TableFile | None:
        match = re.fullmatch(r"x(\d+)-(\d+)-(\d+)-(\d+)-(\d+)\.parquet", name)
        return None if match is None else cls(*map(int, match.groups()))


class Versions:
    """The versions of the table of one query; `identity` is the query as it was asked."""

    def __init__(self, root: Path, query: str, identity: str) -> None:
        slug = re.sub(r"[^A-Za-z0-9.-]", "_", query).lstrip("._") or "query"
        if slug != query:
            slug = f"{slug}-{hashlib.sha256(query.encode()).hexdigest()[:6]}"
        self.link, self._folder, self._identity = root / slug, root / FOLDER / slug, identity

    @property
    def newest(self) -> int:
        """The round of the version that readers see; -1 if there is none."""
        return int(os.readlink(self.link).rpartition("/")[2]) if self.link.is_symlink() else -1

    @property
    def is_of_query(self) -> bool:
        """Whether the newest version belongs to the query as it is asked now."""
        try:
            return (self._place(self.newest) / _IDENTITY).read_text() == self._identity
        except FileNotFoundError:
            return False

    def files(self) -> list[TableFile]:
        """Return the files of the newest version."""
        if not self.is_of_query:
            return []
        parsed = map(TableFile.parse, os.listdir(self._place(self.newest)))
        return sorted((file for file in parsed if file is not None), key=lambda file: file.name)

    def read(self, file: TableFile) -> pa.Table:
        return pq.ParquetFile(self._place(self.newest) / file.name).read()

    def size(self, file: TableFile) -> int:
        return (self._place(self.newest) / file.name).stat().st_size

    def show(self, update: Update, empty: pa.Table) -> int:
        """Make the version of a round and show it; return the number of bytes written."""
        if not update.kept and not update.fresh:  # a table without rows has columns too
            update.fresh[TableFile(0, update.round, 0, 0, 0)] = empty
        before, folder = self._place(self.newest), self._place(update.round)
        shutil.rmtree(folder, ignore_errors=True)  # left by a crash
        folder.mkdir(parents=True)
        for file in update.kept:
            os.link(before / file.name, folder / file.name)
        # Several at once, because most of the time is spent waiting for the disk.
        with ThreadPoolExecutor(_WRITERS) as pool:
            written = sum(pool.map(write_rows, [folder / file.name for file in update.fresh], update.fresh.values()))
        (folder / _IDENTITY).write_text(self._identity)
        sync_file(folder)
        fault("before sink")
        waiting = self._folder / "link"
        waiting.unlink(missing_ok=True)
        waiting.symlink_to(f"{FOLDER}/{self._folder.name}/{folder.name}")
        waiting.replace(self.link)
        sync_file(self.link.parent)
        fault("after sink")
        for name in sorted(os.listdir(self._folder))[: -OLDER - 1]:
            if name.isdecimal() and int(name) < update.round:
                shutil.rmtree(self._folder / name, ignore_errors=True)
        return written

    def remove(self) -> None:
        self.link.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _place(self, round: int) -> Path:
        return self._folder / f"{round:09d}"


def write_rows(path: Path, rows: pa.Table) -> int:
    """Write a file, which is on disk when this returns; return its size in bytes."""
    # Numbers and times rarely repeat in a few rows: a dictionary of them would cost more than it saves.
    texts = [field.name for field in rows.schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
    pq.write_table(rows, path, compression="zstd", use_dictionary=texts or False)
    sync_file(path)
    return path.stat().st_size


#: The end of rows that do not carry one.
NO_END = 2**61
#: The bucket number of young rows, which are not divided among buckets yet.
_YOUNG = 2**62
#: Bucket numbers from here on stand for single ends, into which the bucket that ends next is divided.
_NEAR = 2**61
_ORIGIN = 2**61  # added to ticks: those before the epoch are negative, and numbers in file names must not be


@dataclass(slots=True)
class Update:
    """A version in the making: files of the version before that stay, and files that are new."""

    round: int
    kept: list[TableFile] = field(default_factory=list)
    fresh: dict[TableFile, pa.Table] = field(default_factory=dict)
    _count: int = 0

    def add(self, bucket: int, rows: pa.Table, first: int = NO_END, last: int = NO_END) -> None:
        """Add a file of rows that end between the ticks `first` and `last`."""
        self.fresh[TableFile(bucket, self.round, first + _ORIGIN, last + _ORIGIN, self._count)] = rows
        self._count += 1


@dataclass(frozen=True, slots=True)
class Expiring:
    """Rows whose end is known, in `buckets` buckets, with at most `files` files each.

    A bucket holds rows that end within one stretch of time. Rows of new rounds are *young*: they are in one file per
    round, whatever their ends, until the first of these ends is near. Then all young rows are divided among the buckets
    at once, and the bucket that ends next is divided into single ends, whose files are deleted whole. So files are
    divided by ends and by the rounds in which their rows came, and most rounds touch only young rows. `longest` is the
    longest time for which a row stands, `slide` the time between two ends.
    """

    longest: int
    slide: int
    buckets: int
    files: int

    def update(self, table: Versions, round: int, rows: pa.Table, ends_of: EndsOf, now: int) -> Update:
        """Return the update for a round; rows that end at `now`, the end of the last window, or before are dropped."""
        update, near = Update(round), self._buckets(np.array([now + self.slide]))[0]
        divided, young = [], [rows]
        for file in table.files():
            if file.last - _ORIGIN <= now:
                continue
            if file.bucket == near:
                divided.append(table.read(file))
            elif file.bucket != _YOUNG or self._buckets(np.array([file.first - _ORIGIN]))[0] > near:
                update.kept.append(file)
            else:
                young.append(table.read(file))
        if len(young) > 1:  # young rows of an earlier round end soon: all young rows are divided
            waiting = [file for file in update.kept if file.bucket == _YOUNG]
            young += [table.read(file) for file in waiting]
            update.kept = [file for file in update.kept if file.bucket != _YOUNG]
            divided += young
            young = []
        self._divide(update, [*divided, *young], ends_of, now, int(near), keeps_young=bool(young))
        self._compact(table, update)
        return update

    def _divide(
        self, update: Update, tables: list[pa.Table], ends_of: EndsOf, now: int, near: int, *, keeps_young: bool
    ) -> None:
        """Divide rows by bucket, and those of the next bucket by end; with `keeps_young`, all others stay together."""
        rows = pa.concat_tables(tables).combine_chunks() if tables else None
        if rows is None or not rows.num_rows:
            return
        ends = ends_of(rows)
        buckets = self._buckets(ends)
        far = np.full(len(ends), _YOUNG) if keeps_young else buckets
        buckets = np.where(buckets > near, far, _NEAR + (ends + _ORIGIN) // self.slide)
        standing = np.flatnonzero(ends > now)
        if not len(standing):
            return
        order = standing[np.argsort(buckets[standing], kind="stable")]
        rows, ends, buckets = rows.take(pa.array(order)), ends[order], buckets[order]
        edges = np.flatnonzero(np.append(True, buckets[1:] != buckets[:-1]))
        for begin, stop in zip(edges, np.append(edges[1:], len(buckets)), strict=True):
            bucket_ends = ends[begin:stop]
            update.add(
                int(buckets[begin]), rows.slice(begin, stop - begin), int(bucket_ends.min()), int(bucket_ends.max())
            )

    def _buckets(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        slides = -(-self.longest // self.slide)
        width = -(-slides // self.buckets) * self.slide  # the stretch of time whose ends share a bucket
        buckets: NDArray[np.int64] = (ends + _ORIGIN) // width
        return buckets

    def _compact(self, table: Versions, update: Update) -> None:
        """Merge the small files of a bucket that has too many."""
        by_bucket: dict[int, list[TableFile]] = {}
        for file in (*update.kept, *update.fresh):
            by_bucket.setdefault(file.bucket, []).append(file)
        for bucket, files in by_bucket.items():
            if len(files) > self.files:
                sizes = {file: 0 if file in update.fresh else table.size(file) for file in files}
                small = sorted(files, key=lambda file: sizes[file])[: len(files) - self.files // 2]
                parts = [update.fresh[file] if file in update.fresh else table.read(file) for file in small]
                update.kept = [file for file in update.kept if file not in small]
                update.fresh = {file: rows for file, rows in update.fresh.items() if file not in small}
                first, last = min(file.first for file in small), max(file.last for file in small)
                update.add(bucket, pa.concat_tables(parts), first - _ORIGIN, last - _ORIGIN)


@dataclass(frozen=True, slots=True)
class EndsOf:
    """The ends of rows: the tick in `column` plus `added`; without a column, rows never end."""

    column: str | None
    added: int = 0

    def __call__(self, rows: pa.Table) -> NDArray[np.int64]:
        if self.column is None:
            return np.full(rows.num_rows, NO_END, np.int64)
        ticks = as_array(rows[self.column]).cast(pa.int64()).to_numpy()
        ends: NDArray[np.int64] = ticks + self.added
        return ends


def changed_update(
    table: Versions, round: int, rows: pa.Table, change: str, keys: Sequence[str], values: bool, buckets: int
) -> Update:
    """Apply the changes of a round, which are in the order of windows, to the buckets of their groups."""
    update = Update(round)
    of_bucket = np.zeros(rows.num_rows, np.int64)
    if keys:
        of_bucket += np.mod(spark_hash([as_array(rows[key]) for key in keys], rows.num_rows), buckets)
    touched = set(np.unique(of_bucket).tolist())
    parts_by_bucket: dict[int, list[pa.Table]] = {}
    for file in table.files():
        if file.bucket in touched:
            parts_by_bucket.setdefault(file.bucket, []).append(table.read(file))
        elif not file.is_empty:
            update.kept.append(file)
    for bucket in sorted(touched):
        bucket_rows = rows.filter(pa.array(of_bucket == bucket))
        before = parts_by_bucket.get(bucket, [])
        left = _latest(before, bucket_rows, change, keys) if values else _counted(before, bucket_rows, change, keys)
        if left.num_rows:
            update.add(bucket, left)
    return update


def early_update(table: Versions, round: int, rows: pa.Table, keys: Sequence[str], now: int) -> Update:
    """Return the update with provisional rows of open windows, and final rows of the last closed window.

    That window ends at `now`. Any round may replace any of these rows, so they are in one file, which stays as long as
    nothing changes.
    """
    update, files = Update(round), [file for file in table.files() if not file.is_empty]
    parts = [table.read(file).cast(rows.schema) for file in files]
    before = sum(part.num_rows for part in parts)
    left = replaced(pa.concat_tables([*parts, rows]), keys)
    ends = as_array(left["window_end"]).cast(pa.int64()).to_numpy()
    left = left.filter(pa.array(ends >= now))
    if not rows.num_rows and left.num_rows == before:
        update.kept += files
    elif left.num_rows:
        update.add(0, left)
    return update


def _latest(before: Sequence[pa.Table], rows: pa.Table, change: str, keys: Sequence[str]) -> pa.Table:
    """Return one row for each group: the last one, unless it is a deletion."""
    plain = rows.drop_columns(change)
    every = pa.concat_tables([*(part.cast(plain.schema) for part in before), plain]).combine_chunks()
    known = every.num_rows - rows.num_rows
    numbers, _ = number_groups([as_array(every[key]) for key in keys], every.num_rows)
    last = np.zeros(numbers.max() + 1 if len(numbers) else 0, np.int64)
    np.maximum.at(last, numbers, np.arange(every.num_rows))
    deleted = np.zeros(every.num_rows, np.bool_)
    deleted[known:] = np.asarray(pc.equal(rows[change], "delete"), np.bool_)
    chosen = np.sort(last)
    return every.take(pa.array(chosen[~deleted[chosen]]))


def _counted(before: Sequence[pa.Table], rows: pa.Table, change: str, keys: Sequence[str]) -> pa.Table:
    """Return the rows as a bag: every deletion removes one of several equal rows, the oldest."""
    deleted = np.asarray(pc.equal(rows[change], "delete"), np.bool_)
    plain = rows.drop_columns(change)
    inserted, gone = plain.filter(pa.array(~deleted)), plain.filter(pa.array(deleted))
    candidates = pa.concat_tables([*(part.cast(plain.schema) for part in before), inserted])
    every = pa.concat_tables([candidates, gone]).combine_chunks()
    numbers, _ = number_groups([as_array(every[key]) for key in keys], every.num_rows)
    taken = np.bincount(numbers[candidates.num_rows :], minlength=numbers.max() + 1 if len(numbers) else 0)
    numbers_of_candidates = numbers[: candidates.num_rows]
    order = np.argsort(numbers_of_candidates, kind="stable")
    ranked = numbers_of_candidates[order]
    firsts = np.searchsorted(ranked, ranked, side="left")
    stays = np.zeros(candidates.num_rows, np.bool_)
    stays[order] = np.arange(candidates.num_rows) - firsts >= taken[ranked]
    return candidates.filter(pa.array(stays))
