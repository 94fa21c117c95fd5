"""Checkpoints and answers on any file system Spark reaches: local directories directly, others through Hadoop."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from windloom.errors import WindloomError
from windloom.rounds.checkpoint.storage import LOCK_FILE, LocalStorage, Storage, refuse_second
from windloom.rounds.faults import fault

#: A lock whose owner has not renewed it for this long is free.
STALE_SECONDS = 60.0
_RENEW_SECONDS = 10.0


def absolute_place(path: str | Path) -> str:
    """A directory of this machine as an absolute path; a URL as it stands."""
    text = str(path)
    if text.startswith("file:"):
        text = re.sub(r"^file:/*", "/", text)
    return text.rstrip("/") if _is_remote(text) else str(Path(text).absolute())


def storage_at(spark: SparkSession, place: str) -> Storage:
    return HadoopStorage(spark, place) if _is_remote(place) else LocalStorage(Path(place))


def _is_remote(place: str) -> bool:
    return re.match(r"\w{2,}:/", place) is not None


class HadoopStorage:
    """Files of a Hadoop file system. It needs rename to be atomic, as HDFS has it; object stores have committers.

    The lock is a file that its owner renews; it is free again when that has not happened for a minute.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        self._fs = self._path("").getFileSystem(context._jsc.hadoopConfiguration())
        self._renewing: threading.Event | None = None

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)

    def read(self, name: str) -> bytes | None:
        path = self._path(name)
        try:
            if not self._fs.exists(path):
                return None
            stream = self._fs.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise _failed("read", self.root, name, error) from error

    def write(self, name: str, data: bytes) -> None:
        target = self._path(name)
        unfinished = self._path(f"{name.rpartition('/')[0]}/.{name.rpartition('/')[2]}.unfinished".lstrip("/"))
        try:
            stream = self._fs.create(unfinished, True)
            try:
                stream.write(bytearray(data))
                stream.hsync()
            finally:
                stream.close()
            fault("before rename")
            if not self._fs.rename(unfinished, target):
                # Some file systems do not rename onto a file; what is there is an earlier copy of the same round.
                self._fs.delete(target, False)
                if not self._fs.rename(unfinished, target):
                    raise WindloomError(
                        f"cannot write '{self.root}/{name}'",
                        "the file system refused to rename a finished file to its name",
                        "check permissions, or use another file system",
                    )
        except Py4JJavaError as error:
            raise _failed("write", self.root, name, error) from error

    def list(self, folder: str) -> list[str]:
        path = self._path(folder)
        try:
            if not self._fs.exists(path):
                return []
            found = [one.getPath().getName() for one in self._fs.listStatus(path) if one.isFile()]
        except Py4JJavaError as error:
            raise _failed("read", self.root, folder, error) from error
        return sorted(name for name in found if not name.startswith("."))

    def delete(self, name: str) -> None:
        try:
            self._fs.delete(self._path(name), False)
        except Py4JJavaError as error:
            raise _failed("delete", self.root, name, error) from error

    def lock(self, owner: str) -> None:
        held = self.read(LOCK_FILE)
        if held is not None:
            first, _, renewed = held.decode(errors="replace").rpartition("\n")
            if time.time() - float(renewed or 0) < STALE_SECONDS:
                raise refuse_second(self.root, first)
        self._write_lock(owner)
        ended = self._renewing = threading.Event()

        def renew() -> None:
            while not ended.wait(_RENEW_SECONDS):
                self._write_lock(owner)

        threading.Thread(target=renew, name="windloom-lock", daemon=True).start()

    def unlock(self) -> None:
        if self._renewing is not None:
            self._renewing.set()
            self._renewing = None
            self.delete(LOCK_FILE)

    def _write_lock(self, owner: str) -> None:
        self.write(LOCK_FILE, f"{owner}\n{time.time()}".encode())


def _failed(what: str, root: str, name: str, error: Py4JJavaError) -> WindloomError:
    return WindloomError(
        f"cannot {what} '{root}/{name}'",
        str(error.java_exception.getMessage() or error.java_exception.toString()).split("\n")[0],
        "make room or mend access to it, then start again with the same checkpoint: nothing is lost",
    )
