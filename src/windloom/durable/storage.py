"""Where a checkpoint lives: a few operations on named files, each write complete or not there at all."""

from __future__ import annotations

import fcntl
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from windloom.durable.faults import fault
from windloom.errors import WindloomError

LOCK_FILE = "lock"

Names = list[str]

#: Roots locked by this process: some file systems let one process lock a file twice.
_locked_here: dict[Path, str] = {}


class Storage(Protocol):
    """Files by name (`folder/file` or `file`). Names that begin with a dot are unfinished and never listed."""

    def read(self, name: str) -> bytes | None:
        """The whole file, or None if there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Durable when it returns, and atomic: a reader sees the old file or the new one, never a part."""

    def list(self, folder: str) -> Names:
        """Names of the files in a folder, sorted; none if there is no such folder."""

    def delete(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""

    def lock(self, owner: str) -> None:
        """Keep others out until `unlock` or the end of the process; refuses a second owner, naming the first."""

    def unlock(self) -> None: ...


def this_process() -> str:
    """Who owns a lock, as people look for it."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"process {os.getpid()} on host {socket.gethostname()}, since {now}"


def refuse_second(place: str, owner: str) -> WindloomError:
    return WindloomError(
        f"the checkpoint '{place}' is in use",
        f"it belongs to {owner}",
        "stop that stream first, or give this one a checkpoint of its own",
    )


class LocalStorage:
    """A directory of this machine. The lock is the operating system's: it ends with the process, however that ends."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._lock: int | None = None

    def read(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed("read", self.root / name, error) from error

    def write(self, name: str, data: bytes) -> None:
        target = self.root / name
        # The same name every time: what a crash left behind is overwritten when the write is repeated.
        unfinished = target.with_name(f".{target.name}.unfinished")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(unfinished, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fault("before rename")
            unfinished.replace(target)
            _sync_directory(target.parent)
        except OSError as error:
            _forget(unfinished)
            raise _failed("write", target, error) from error

    def list(self, folder: str) -> Names:
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted(one.name for one in entries if one.is_file() and not one.name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed("read", self.root / folder, error) from error

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
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise _failed("write", path, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            first = os.pread(handle, 4096, 0).decode(errors="replace").strip()
            os.close(handle)
            raise refuse_second(str(self.root), first or "another process") from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, owner.encode(), 0)
        self._lock = handle
        _locked_here[root] = owner

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)  # which frees it
            self._lock = None
            _locked_here.pop(self.root.resolve(), None)


def _sync_directory(folder: Path) -> None:
    """A rename is durable only when the directory is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _forget(unfinished: Path) -> None:
    try:
        unfinished.unlink(missing_ok=True)
    except OSError:
        return


def _failed(what: str, path: Path, error: OSError) -> WindloomError:
    return WindloomError(
        f"cannot {what} '{path}'",
        str(error.strerror or error),
        "make room or restore access to it, then start again with the same checkpoint: nothing is lost",
    )
