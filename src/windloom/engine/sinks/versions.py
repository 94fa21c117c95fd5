"""The versions of a table that others read while it changes: each is a directory of files, and a link shows one.

    <root>/<query>                                a link to the newest version: what readers open
    <root>/.current/<query>/000000042/            the version of round 42
        x12-000000041-1700000000000000-1700000003600000-0.parquet

A file is never changed. A version has hard links to the files that it keeps of the version before, so nothing is
copied, and files of its own for what is new. The link is replaced at once, when the version is complete: a reader sees
one version or the next, and nothing in between. File names are never reused, so a reader that is overtaken finds the
same rows under a name, or no file. A few older versions stay, for readers that have already resolved the link.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windloom.durable.faults import fault
from windloom.durable.storage import sync_file

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

    @classmethod
    def of_nothing(cls, round: int) -> TableFile:
        """Return the file of a table without rows."""
        return cls(0, round, 0, 0, 0)

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
        parsed = (TableFile.parse(name) for name in os.listdir(self._place(self.newest)))
        return sorted(
            (table_file for table_file in parsed if table_file is not None), key=lambda table_file: table_file.name
        )

    def read(self, file: TableFile) -> pa.Table:
        return pq.ParquetFile(self._place(self.newest) / file.name).read()

    def size(self, file: TableFile) -> int:
        return (self._place(self.newest) / file.name).stat().st_size

    def show(self, round: int, files_kept: Iterable[TableFile], fresh: Mapping[TableFile, pa.Table]) -> int:
        """Make the version of a round and show it; return the number of bytes written."""
        before, folder = self._place(self.newest), self._place(round)
        shutil.rmtree(folder, ignore_errors=True)  # left by a crash
        folder.mkdir(parents=True)
        for file in files_kept:
            os.link(before / file.name, folder / file.name)
        # Several at once, because most of the time is spent waiting for the disk.
        with ThreadPoolExecutor(_WRITERS) as pool:
            written = sum(pool.map(write_rows, [folder / file.name for file in fresh], fresh.values()))
        (folder / _IDENTITY).write_text(self._identity)
        sync_file(folder)
        fault("before sink")
        waiting = self._folder / "link"
        waiting.unlink(missing_ok=True)
        waiting.symlink_to(f"{FOLDER}/{self._folder.name}/{round:09d}")
        waiting.replace(self.link)
        sync_file(self.link.parent)
        fault("after sink")
        for name in sorted(os.listdir(self._folder))[: -OLDER - 1]:
            if name.isdecimal() and int(name) < round:
                shutil.rmtree(self._folder / name, ignore_errors=True)
        return written

    def remove(self) -> None:
        self.link.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _place(self, round: int) -> Path:
        return self._folder / f"{round:09d}"


def shown_queries(root: Path) -> list[str]:
    """Return the names of the queries whose versions are kept."""
    folder = root / FOLDER
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def write_rows(path: Path, rows: pa.Table) -> int:
    """Write a file, which is on disk when this returns; return its size in bytes."""
    # Numbers and times rarely repeat in a few rows: a dictionary of them would cost more than it saves.
    texts = [
        column.name for column in rows.schema if pa.types.is_string(column.type) or pa.types.is_binary(column.type)
    ]
    pq.write_table(rows, path, compression="zstd", use_dictionary=texts or False)
    sync_file(path)
    return path.stat().st_size
