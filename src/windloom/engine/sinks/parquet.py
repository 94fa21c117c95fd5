"""Parquet: one file per table and round, named after the round, so that a repeated round replaces itself.

`<table>/round-000000042.parquet` appears whole or not at all. If a stream runs on executors, a shard with many rows for
a table writes them itself, one file per table, round and shard: `<table>/round-000000042-shard-0003.parquet`.
`manifest.json` lists which table holds which queries, and which checkpoint the rounds belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Self

import pyarrow as pa
import pyarrow.parquet as pq

from windloom.durable.faults import fault
from windloom.durable.shards.pieces import PieceFolder
from windloom.durable.storage import LocalStorage, NewFile, Storage
from windloom.engine.sinks.manifest import MANIFEST, Manifest
from windloom.engine.sinks.sink import RoundAnswers, SinkPlace, TableInfo
from windloom.errors import WindloomError
from windloom.spark.sources.storage import absolute_place, storage_at


class ParquetSink:
    target: ClassVar[str | None] = "path"

    def __init__(self, storage: Storage, path: str, checkpoint: str | None) -> None:
        """`checkpoint` is the identity of the checkpoint whose rounds are written here; None for a batch run."""
        self._storage = storage
        # Executors write pieces to a directory, if they see the same one, but not to other file systems.
        is_directory = isinstance(storage, LocalStorage)
        self.pieces = PieceFolder(Path(path), checkpoint) if is_directory and checkpoint is not None else None
        self._has_written = False
        self._manifest = Manifest(checkpoint)
        written_manifest = storage.read(MANIFEST)
        if written_manifest is None:
            return
        manifest = Manifest.from_bytes(written_manifest)
        if manifest is None or manifest.checkpoint != checkpoint:
            raise WindloomError(
                f"the output directory '{path}' holds the answers of another run",
                "its rounds belong to another checkpoint, or to a batch run",
                "give a new directory, or the checkpoint these answers were made with",
            )
        self._manifest = manifest

    @classmethod
    def open(cls, place: SinkPlace, *, path: str | Path) -> Self:
        where = absolute_place(path)
        return cls(storage_at(place.spark, where), where, place.checkpoint_id)

    def write(self, round: int, answers: RoundAnswers) -> None:
        written = _Written(self._storage, round)
        try:
            written.take(answers.rows(with_pieces=self.pieces is None))
            self.describe(answers.tables)
            if not self._has_written:
                # Deletes files that an earlier process wrote for a round and that the round, answered again, does not
                # have.
                names = {*written.names, *(piece.shown for piece in answers.pieces)}
                prefix = round_file(round).removesuffix(".parquet")
                for table in self._manifest.tables:
                    for name in self._storage.list(table):
                        if name.startswith(prefix) and f"{table}/{name}" not in names:
                            self._storage.delete(f"{table}/{name}")
            if self.pieces is not None:
                self.pieces.show(answers.pieces)
            written.finish()
            self._has_written = True
        except BaseException:
            written.discard()
            raise

    def rows(self, table: str) -> pa.Table | None:
        files = [name for name in self._storage.list(table) if name.endswith(".parquet")]
        contents = [self._storage.read(f"{table}/{name}") for name in files]
        tables = [pq.read_table(pa.BufferReader(data)) for data in contents if data is not None]
        return pa.concat_tables(tables) if tables else None

    def close(self) -> None:
        """Do nothing: every round is complete by itself."""

    def describe(self, tables: Mapping[str, TableInfo]) -> None:
        """Write the manifest, before the files: no reader finds a table that the manifest does not name."""
        if self._manifest.describe(tables):
            self._storage.write(MANIFEST, self._manifest.to_bytes())


class _Written:
    """The files of a round: written while rows come, then shown one after another."""

    def __init__(self, storage: Storage, round: int) -> None:
        self._storage, self._round = storage, round
        self._files: dict[str, tuple[NewFile, pq.ParquetWriter]] = {}

    @property
    def names(self) -> list[str]:
        return [f"{table}/{round_file(self._round)}" for table in self._files]

    def take(self, pieces: Iterable[tuple[str, pa.Table]]) -> None:
        for name, rows in pieces:
            if name not in self._files:
                self._files[name] = self._opened(f"{name}/{round_file(self._round)}", rows.schema)
            file, writer = self._files[name]
            with _failing(file):
                writer.write_table(rows)

    def _opened(self, name: str, schema: pa.Schema) -> tuple[NewFile, pq.ParquetWriter]:
        file = self._storage.create(name)
        try:
            with _failing(file):
                return file, pq.ParquetWriter(file.stream, schema, compression="zstd")
        except BaseException:
            file.discard()
            raise

    def finish(self) -> None:
        for file, writer in self._files.values():
            with _failing(file):
                writer.close()
            fault("before sink")
            file.finish()
            fault("after sink")

    def discard(self) -> None:
        for file, writer in self._files.values():
            with suppress(OSError, ValueError):  # the file is closed, or takes no more
                writer.close()
            file.discard()


@contextmanager
def _failing(file: NewFile) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise file.failed(error) from error


def round_file(round: int) -> str:
    return f"round-{round:09d}.parquet"
