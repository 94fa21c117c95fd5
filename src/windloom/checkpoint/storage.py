"""Where a checkpoint lives: a few operations on named files. A write is complete, or not there at all.

Fault points are named places around every durable write where a test can end the process or inspect it.
`WINDLOOM_FAULT="before commit:3"` kills the process, as `kill -9` does, when it passes that point for the third time.
Without the variable, a fault point does nothing.
"""

from __future__ import annotations

import errno
import fcntl
import io
import mmap
import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from windloom.errors import WindloomError

#: In the order in which a round passes them. "before rename" is inside every durable write: the bytes are in a
#: temporary file, and no reader can see them yet.
FAULT_POINTS = (
    "before rename",
    *(
        f"{when} {what}"
        for what in ("plan", "begun", "log", "sink", "commit", "snapshot", "retain")
        for when in ("before", "after")
    ),
)

#: Passed by rounds of queries with EMIT CHANGES, EMIT EMPTY or EMIT EARLY, between sinks and commit.
EMITTED_FAULT_POINTS = ("before emitted", "after emitted")

#: Passed by rounds that keep tuples, before they are logged.
TUPLE_FAULT_POINTS = ("before tuples", "after tuples")

#: Passed by snapshots of states with segments, by the thread that writes them.
SEGMENT_FAULT_POINTS = ("before segment", "after segment")

_passed: Counter[str] = Counter()
_watchers: list[Callable[[str], None]] = []


def fault(name: str) -> None:
    """Pass the fault point `name`."""
    if name not in FAULT_POINTS + EMITTED_FAULT_POINTS + TUPLE_FAULT_POINTS + SEGMENT_FAULT_POINTS:
        raise ValueError(f"'{name}' is not in FAULT_POINTS")
    for watcher in _watchers:
        watcher(name)
    wanted = os.environ.get("WINDLOOM_FAULT")
    if wanted:
        point, _, time = wanted.rpartition(":")
        _passed[name] += 1
        if point == name and _passed[name] == int(time):
            os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def watched(watcher: Callable[[str], None]) -> Iterator[None]:
    """Call `watcher` with the name of every fault point passed; an exception it raises simulates a crash."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


LOCK_FILE = "lock"

Names = list[str]

#: Roots locked by this process: some file systems let one process lock a file twice.
_locked_here: dict[Path, str] = {}


class StorageError(WindloomError):
    """The system could not read, write or delete a file."""


class Storage(Protocol):
    """Files by name (`folder/file` or `file`). Names that begin with a dot are unfinished and never listed."""

    def read(self, name: str) -> bytes | None:
        """Return the whole file, or None if there is none."""

    def mapped(self, name: str) -> bytes | memoryview | None:
        """Return a whole file that is never written again, read as far as it is used; it may be deleted meanwhile."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file: durable when this returns, and atomic, so that a reader sees the old or the new file whole."""

    def create(self, name: str) -> UnfinishedFile:
        """Return a new file, to be written part by part; as with `write`, it is not there until it is finished."""

    def list(self, folder: str) -> Names:
        """Return names of the files in a folder, sorted; none if there is no such folder."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the bytes of the files in a folder, by name."""

    def free_bytes(self) -> int | None:
        """Return how many bytes are free; None if the file system does not report it."""

    def delete(self, name: str) -> None:
        """Remove a file; a missing file is not an error."""

    def lock(self, owner: str) -> None:
        """Keep others out until `unlock` or the end of the process; raise for a second owner, naming the first."""

    def unlock(self, *, without_trace: bool = False) -> None:
        """Let others in; `without_trace`, remove what `lock` has made, as far as nothing else has come into it."""


def refuse_second(place: str, owner: str) -> WindloomError:
    return WindloomError(
        f"the checkpoint '{place}' is in use",
        f"it belongs to {owner}",
        "stop that stream first, or give this one a checkpoint of its own",
    )


class LocalStorage:
    """A directory of this machine. The operating system holds the lock, which ends with the process in any case."""

    def __init__(self, root: Path, *, syncs: bool = True) -> None:
        """`syncs=False` is for files that a crash may destroy; they still appear completely or not at all."""
        self.root = root.absolute()
        self._syncs = syncs
        self._lock: int | None = None
        self._made: list[Path] = []  # by `lock`, innermost first

    def read(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed("read", self.root / name, error) from error

    def mapped(self, name: str) -> bytes | memoryview | None:
        try:
            with (self.root / name).open("rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    return b""  # it cannot be mapped
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed("read", self.root / name, error) from error

    def write(self, name: str, data: bytes) -> None:
        file = self.create(name)
        try:
            file.stream.write(data)
        except OSError as error:
            file.discard()
            raise file.failed(error) from error
        file.finish()

    def create(self, name: str) -> UnfinishedFile:
        return _LocalFile(self.root / name, self._syncs)

    def list(self, folder: str) -> Names:
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_file() and not entry.name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed("read", self.root / folder, error) from error

    def sizes(self, folder: str) -> dict[str, int]:
        try:
            with os.scandir(self.root / folder) as entries:
                files = [entry for entry in entries if entry.is_file() and not entry.name.startswith(".")]
                return {file.name: file.stat().st_size for file in files}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _failed("read", self.root / folder, error) from error

    def free_bytes(self) -> int | None:
        existing = next((folder for folder in (self.root, *self.root.parents) if folder.exists()), None)
        try:
            return None if existing is None else shutil.disk_usage(existing).free
        except OSError:
            return None

    def delete(self, name: str) -> None:
        try:
            (self.root / name).unlink(missing_ok=True)
        except OSError as error:
            raise _failed("delete", self.root / name, error) from error

    def lock(self, owner: str) -> None:
        root = self.root.resolve()
        if root in _locked_here:
            raise refuse_second(str(self.root), _locked_here[root])
        path = self.root / LOCK_FILE
        made = [each for each in (path, self.root, *self.root.parents) if not each.exists()]
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            _remove(made)
            raise _failed("write", path, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            first = os.pread(handle, 4096, 0).decode(errors="replace").strip()
            os.close(handle)
            raise refuse_second(str(self.root), first or "another process") from None
        try:
            if not os.path.samestat(os.fstat(handle), os.stat(path)):
                raise FileNotFoundError(errno.ENOENT, "a start that was refused has removed it just now", str(path))
            os.ftruncate(handle, 0)
            os.pwrite(handle, owner.encode(), 0)
        except OSError as error:
            os.close(handle)
            raise _failed("write", path, error) from error
        self._lock, self._made = handle, made
        _locked_here[root] = owner

    def unlock(self, *, without_trace: bool = False) -> None:
        if self._lock is not None:
            root = self.root.resolve()
            if without_trace:
                _remove(self._made)
            os.close(self._lock)  # this frees the lock
            self._lock = None
            _locked_here.pop(root, None)


def _remove(made: Iterable[Path]) -> None:
    """Remove a file and directories, innermost first, up to the first that holds something else."""
    with suppress(OSError):
        for path in made:
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()


class _LocalFile:
    """A file that no reader sees until it is finished."""

    def __init__(self, target: Path, syncs: bool) -> None:
        self._target, self._syncs = target, syncs
        # The name is the same every time: what a crash left behind is overwritten when the write is repeated.
        self._unfinished = target.with_name(f".{target.name}.unfinished")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # Arrow's own file, to which Parquet is written without passing through Python.
            self.stream: Any = pa.OSFile(str(self._unfinished), mode="wb")
        except OSError as error:
            raise _failed("write", target, error) from error

    def finish(self) -> None:
        """Complete the file: it is durable when this returns, and replaces the file of that name, if there was one."""
        try:
            self.stream.close()
            if self._syncs:
                sync_file(self._unfinished)
            fault("before rename")
            self._unfinished.replace(self._target)
            if self._syncs:
                sync_file(self._target.parent)  # a rename is durable only when the directory is
        except OSError as error:
            self.discard()
            raise self.failed(error) from error

    def discard(self) -> None:
        with suppress(OSError):
            self.stream.close()
        with suppress(OSError):
            self._unfinished.unlink(missing_ok=True)

    def failed(self, error: OSError) -> StorageError:
        """Return the error to raise if the stream cannot be written."""
        return _failed("write", self._target, error)


class BufferedFile:
    """A file that is held in memory until it is finished, for storage that writes only complete files."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage, self._name = storage, name
        self.stream: Any = io.BytesIO()

    def finish(self) -> None:
        self._storage.write(self._name, self.stream.getvalue())

    def discard(self) -> None:
        """Do nothing: no file exists yet."""

    def failed(self, error: OSError) -> StorageError:
        return _failed("write", Path(self._name), error)


#: A file to which bytes are written part by part.
UnfinishedFile = _LocalFile | BufferedFile


def sync_file(path: str | os.PathLike[str]) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def full_disk(path: Path) -> StorageError:
    """Return the error for a file that there is no room for: it names the disk and its size."""
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))
    fact = os.strerror(errno.ENOSPC)
    with suppress(OSError):
        used = shutil.disk_usage(existing)
        fact += f": {used.free / 2**20:,.1f} MiB of {used.total / 2**20:,.0f} MiB are free where '{existing}' is"
    return StorageError(
        f"the disk is full: cannot write '{path}'",
        fact,
        "make room, then start again with the same checkpoint: nothing is lost",
    )


def _failed(what: str, path: Path, error: OSError) -> StorageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return full_disk(path)
    return StorageError(
        f"cannot {what} '{path}'",
        str(error.strerror or error),
        "make room or restore access to it, then start again with the same checkpoint: nothing is lost",
    )


class Pins:
    """Keeps track of which files are being read and which files rounds want, while rounds are committed.

    A file that is not wanted is deleted when its last reader is done; only the driver deletes files.
    """

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
