"""Somebody who reads the tables of the sink `current` all the time, and remembers what was there."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq

from windloom.sinks.current_tables import OLDER

#: Rows as a bag, without the edges of windows: of equal rows, it does not matter which one went.
Shown = frozenset[Any]


def shown(folder: Path | str) -> Shown:
    """What a table holds."""
    rows = pq.read_table(folder, partitioning=None).to_pylist()
    bare = (tuple((name, value) for name, value in row.items() if not name.startswith("window_")) for row in rows)
    return frozenset(Counter(bare).items())


class Reader:
    """A context manager: it reads from begin to end, whatever becomes of the writer meanwhile."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self.seen: dict[str, set[Shown]] = {name: set() for name in names}
        self.reads = 0
        self._folder, self._ended = folder, threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def poll(self) -> None:
        for name, seen in self.seen.items():
            # One reader follows the link file by file, the other once; who is overtaken finds no file.
            with suppress(FileNotFoundError):
                seen.add(shown(self._folder / name))
                self.reads += 1
            with suppress(FileNotFoundError):
                version = Path(os.path.realpath(self._folder / name))
                found = shown(version)
                if not _is_dropped(version):
                    seen.add(found)
                    self.reads += 1

    def _read(self) -> None:
        try:
            while not self._ended.is_set():
                self.poll()
                time.sleep(0.02)
        except Exception as error:
            self._failed = error


def _is_dropped(version: Path) -> bool:
    """Whether a version has been overtaken so often that its files may have been deleted while it was read.

    On a machine with much else to do, a reader may be that slow.
    """
    newer = [name for name in os.listdir(version.parent) if name.isdecimal() and int(name) > int(version.name)]
    return len(newer) > OLDER
