"""Files that are read while rounds are committed: they are deleted when the last reader is done."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager


class Pins:
    """Keeps track of which files are being read and which files rounds want; only the driver deletes files."""

    def __init__(self, delete: Callable[[str], None]) -> None:
        self._delete, self._lock = delete, threading.Lock()
        self._readers: Counter[str] = Counter()
        self._wanted: frozenset[str] | None = None

    def keep_only(self, names: Collection[str], there: Callable[[], Iterable[str]]) -> None:
        """Delete every other file that is there; pinned files are deleted when their readers are done."""
        with self._lock:
            self._wanted = frozenset(names)
            for name in there():
                if name not in self._wanted and not self._readers[name]:
                    self._delete(name)

    @contextmanager
    def pinned(self, names: Collection[str]) -> Iterator[None]:
        """Keep these files, whatever rounds are committed, until the end of the `with`."""
        with self._lock:
            self._readers.update(names)
        try:
            yield
        finally:
            with self._lock:
                self._readers.subtract(names)
                for name in names:
                    # Before the first `keep_only` nothing is deleted: the file may belong to the running round.
                    if not self._readers[name] and self._wanted is not None and name not in self._wanted:
                        self._delete(name)
