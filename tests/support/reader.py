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
            link = self._folder / name
            # One reader follows the link file by file, the other once; who is overtaken finds no file.
            for place in (link, os.path.realpath(link)):
                with suppress(FileNotFoundError):
                    seen.add(shown(place))
                    self.reads += 1

    def _read(self) -> None:
        try:
            while not self._ended.is_set():
                self.poll()
                time.sleep(0.02)
        except Exception as error:
            self._failed = error
