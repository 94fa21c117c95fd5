"""Checkpoints and answers on any file system that Spark can reach: local directories directly, others by Hadoop."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from windloom.checkpoint.storage import (
    LOCK_FILE,
    BufferedFile,
    LocalStorage,
    Storage,
    StorageError,
    UnfinishedFile,
    fault,
    refuse_second,
)
from windloom.errors import WindloomError

#: A lock is free if its owner has not renewed it for this long.
STALE_SECONDS = 60.0
_RENEW_SECONDS = 10.0
_STARTING = "a process that is just starting"


def absolute_place(path: str | Path) -> str:
    """Return a directory of this machine as an absolute path; a URL unchanged."""
    text = str(path)
    if text.startswith("file:"):
        text = re.sub(r"^file:/*", "/", text)
    return text.rstrip("/") if is_remote(text) else str(Path(text).absolute())


def storage_at(spark: SparkSession, place: str) -> Storage:
    return HadoopStorage(spark, place) if is_remote(place) else LocalStorage(Path(place))


def is_remote(place: str) -> bool:
    return re.match(r"\w{2,}:/", place) is not None


class HadoopStorage:
    """Files of a Hadoop file system, whose rename must be atomic, as on HDFS.

    The lock is a file that its owner renews; the lock is free again if it has not been renewed for a minute.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        conf = context._jsc.hadoopConfiguration()
        self._fs = self._path("").getFileSystem(conf)
        # An API that renames onto an existing file atomically; not every file system has it.
        self._context: Any | None = None
        with suppress(Py4JJavaError):
            self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(self._path("").toUri(), conf)
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        self._overwrite = context._gateway.new_array(rename, 1)
        self._overwrite[0] = rename.OVERWRITE
        self._renewal: tuple[threading.Thread, threading.Event] | None = None
        self._made: Sequence[Any] = ()  # directories made by `lock`, innermost first

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)

    def read(self, name: str) -> bytes | None:
        path = self._path(name)
        with _failing("read", f"{self.root}/{name}"):
            if not self._fs.exists(path):
                return None
            stream = self._fs.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def mapped(self, name: str) -> bytes | None:
        return self.read(name)

    def write(self, name: str, data: bytes) -> None:
        target = self._path(name)
        unfinished = self._path(f"{name.rpartition('/')[0]}/.{name.rpartition('/')[2]}.unfinished".lstrip("/"))
        with _failing("write", f"{self.root}/{name}"):
            stream = self._fs.create(unfinished, True)
            try:
                stream.write(bytearray(data))
                stream.hsync()
            finally:
                stream.close()
            fault("before rename")
            self._rename(unfinished, target)

    def create(self, name: str) -> UnfinishedFile:
        return BufferedFile(self, name)

    def _rename(self, unfinished: Any, target: Any) -> None:
        if self._context is not None:
            self._context.rename(unfinished, target, self._overwrite)
            return
        if self._fs.rename(unfinished, target):
            return
        # The file system does not rename onto an existing file, which is an earlier copy of the same round.
        self._fs.delete(target, False)
        if not self._fs.rename(unfinished, target):
            raise StorageError(
                f"cannot write '{target.toString()}'",
                "the file system refused to rename a finished file to its name",
                "check permissions, or use another file system",
            )

    def list(self, folder: str) -> list[str]:
        return sorted(self.sizes(folder))

    def sizes(self, folder: str) -> dict[str, int]:
        path = self._path(folder)
        with _failing("read", f"{self.root}/{folder}"):
            if not self._fs.exists(path):
                return {}
            files = [status for status in self._fs.listStatus(path) if status.isFile()]
            sizes = {status.getPath().getName(): int(status.getLen()) for status in files}
        return {name: size for name, size in sizes.items() if not name.startswith(".")}

    def free_bytes(self) -> int | None:
        try:
            status = self._fs.getStatus(self._path(""))
            # Object stores return the largest number there is, or 0 of 0.
            return int(status.getRemaining()) if 0 < status.getCapacity() < 2**62 else None
        except Py4JJavaError:
            return None

    def delete(self, name: str) -> None:
        with _failing("delete", f"{self.root}/{name}"):
            self._fs.delete(self._path(name), False)

    def lock(self, owner: str) -> None:
        holder = self._lock_holder()
        if holder is not None and time.time() - holder[1] < STALE_SECONDS:
            raise refuse_second(self.root, holder[0])
        if holder is None:
            self._made = self._missing()
            with _failing("write", f"{self.root}/{LOCK_FILE}"):  # only this step is atomic between two owners
                is_first = bool(self._fs.createNewFile(self._path(LOCK_FILE)))
            if not is_first:
                raise refuse_second(self.root, _STARTING)
        self._write_lock(owner)
        ended = threading.Event()
        thread = threading.Thread(target=self._renew, args=(owner, ended), name="windloom-lock", daemon=True)
        self._renewal = (thread, ended)
        thread.start()

    def unlock(self, *, without_trace: bool = False) -> None:
        if self._renewal is not None:
            thread, ended = self._renewal
            self._renewal = None
            ended.set()
            thread.join()  # a renewal after this would lock it again
            self.delete(LOCK_FILE)
            with suppress(Py4JJavaError):
                for path in self._made if without_trace else ():
                    if len(self._fs.listStatus(path)):
                        break
                    self._fs.delete(path, False)

    def _missing(self) -> Sequence[Any]:
        """Return the directory of the checkpoint and those above it that do not exist, innermost first."""
        path, missing = self._path(""), []
        with _failing("read", self.root):
            while path is not None and not self._fs.exists(path):
                missing.append(path)
                path = path.getParent()
        return missing

    def _renew(self, owner: str, ended: threading.Event) -> None:
        while not ended.wait(_RENEW_SECONDS):
            # There is time for more attempts, and a round that cannot be written reports it.
            with suppress(WindloomError, Py4JError):
                self._write_lock(owner)

    def _lock_holder(self) -> tuple[str, float] | None:
        """Return the owner of the lock, and the time of its last renewal; None if nobody holds it."""
        lock = self.read(LOCK_FILE)
        if lock is None:
            return None
        owner, _, renewed = lock.decode(errors="replace").rpartition("\n")
        if owner:
            return owner, float(renewed)
        return _STARTING, self._fs.getFileStatus(self._path(LOCK_FILE)).getModificationTime() / 1000

    def _write_lock(self, owner: str) -> None:
        self.write(LOCK_FILE, f"{owner}\n{time.time()}".encode())


@contextmanager
def _failing(what: str, place: str) -> Iterator[None]:
    """Turn failures of the file system into errors that say which file cannot be read, written or deleted."""
    try:
        yield
    except Py4JJavaError as error:
        raise StorageError(
            f"cannot {what} '{place}'",
            str(error.java_exception.getMessage() or error.java_exception.toString()).split("\n")[0],
            "make room or restore access to it, then start again with the same checkpoint: nothing is lost",
        ) from error
