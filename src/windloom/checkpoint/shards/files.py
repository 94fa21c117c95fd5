"""Files of shards, on storage that the driver and every executor can reach; written once, under unique names.

`shards/000000042-0003-5f1c….state` is the state of shard 3 after round 42, and `….answers` are its answers in round 42.
`….folds` is what it has folded of joins whose answers are divided among shards. `….past` holds cells that the driver
has made for it from kept tuples, before round 42, for a new query. Every attempt of a task draws the last part of the
name anew, so attempts never collide: only the names in the log of the round count, and every other file is a leftover.
No rename is needed for that; a file must only be complete when its task has finished.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import PurePosixPath
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from windloom.checkpoint.storage import Pins, sync_file
from windloom.errors import WindloomError

FOLDER = "shards"


class ShardFiles:
    """Opened by the driver and again by every task: only its place is sent to executors."""

    def __init__(self, place: str) -> None:
        """`place` is the checkpoint: an absolute path that all machines share, or a URL that pyarrow can open."""
        self.place = place
        # Hadoop's names for S3 become the usual one.
        url = re.sub(r"^s3[an]:", "s3:", place)
        try:
            self._system, root = fs.FileSystem.from_uri(url)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise WindloomError(
                f"shards cannot be kept at '{place}'",
                f"executors read and write them with pyarrow, which cannot open it: {str(error).splitlines()[0]}",
                "use a path that all machines share, or a file system that pyarrow knows, such as s3:// or gs://",
            ) from None
        self._folder = f"{root.rstrip('/')}/{FOLDER}"
        self._is_local = isinstance(self._system, fs.LocalFileSystem)
        self._pins = Pins(self._delete)

    def __reduce__(self) -> tuple[type[ShardFiles], tuple[str]]:
        return ShardFiles, (self.place,)

    @staticmethod
    def new_names(round: int, shard: int) -> tuple[str, str, str]:
        """Names for the state, the answers and the folds of one attempt."""
        stem = f"{round:09d}-{shard:04d}-{uuid4().hex}"
        return f"{stem}.state", f"{stem}.answers", f"{stem}.folds"

    @staticmethod
    def new_past(round: int, shard: int) -> str:
        """A name for one attempt's file of cells of the past."""
        return f"{round:09d}-{shard:04d}-{uuid4().hex}.past"

    def write(self, name: str, pieces: Iterable[bytes | pa.Buffer]) -> None:
        """Writes a file, which is complete and durable when this returns."""
        path = f"{self._folder}/{name}"
        try:
            if self._is_local:
                self._system.create_dir(self._folder, recursive=True)
            with self._system.open_output_stream(path) as stream:
                for piece in pieces:
                    stream.write(piece)
            if self._is_local:
                for entry in (path, self._folder):
                    sync_file(entry)
        except OSError as error:
            raise self._failed("write", name, error) from error

    def read(self, name: str) -> bytes:
        try:
            with self._system.open_input_stream(f"{self._folder}/{name}") as stream:
                data: bytes = stream.read()
                return data
        except FileNotFoundError:
            raise WindloomError(
                f"the shard file '{name}' is missing",
                f"it was recorded, and is not under '{self.place}'",
                "keep the checkpoint where the driver and every executor reach it under the same name",
            ) from None
        except OSError as error:
            raise self._failed("read", name, error) from error

    def keep_only(self, names: Collection[str]) -> None:
        """Deletes every other file: files of earlier rounds, and what failed or slower attempts have left.

        Pinned files stay until nobody reads them any more.
        """
        self._pins.keep_only(names, self._there)

    def _there(self) -> list[str]:
        try:
            found = self._system.get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
        except OSError as error:
            raise self._failed("delete", "", error) from error
        return [PurePosixPath(file.path).name for file in found]

    def pinned(self, names: Collection[str]) -> AbstractContextManager[None]:
        """Keeps these files, whatever rounds are committed, until the end of the `with`."""
        return self._pins.pinned(names)

    def _delete(self, name: str) -> None:
        try:
            with suppress(FileNotFoundError):
                self._system.delete_file(f"{self._folder}/{name}")
        except OSError as error:
            raise self._failed("delete", name, error) from error

    def _failed(self, what: str, name: str, error: OSError) -> WindloomError:
        return WindloomError(
            f"cannot {what} '{self.place}/{FOLDER}/{name}'",
            str(error.strerror or error),
            "make room or restore access to it, then start again with the same checkpoint: nothing is lost",
        )
