"""Parquet: one file per table and round, named after the round, so that a repeated round replaces itself.

`table=<table>/round-000000042.parquet` appears whole or not at all. `_manifest.json` lists which table holds which
queries, and which checkpoint the rounds belong to.

Tables are partitions of one dataset, which other programs read without knowing us: names that begin with `_` are hidden
from them, and two files without rows tell them the columns of all tables, where they would look at the first table
only. `_common_metadata` is for Spark; `columns.parquet`, the first file by name, is for readers that use Arrow.

The files of a batch run, which is one round, are written into a directory with another name, and moved to their target
when everything is complete: a run that fails leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import pyarrow as pa
import pyarrow.parquet as pq

from windloom.checkpoint.storage import LocalStorage, Storage, StorageError, UnfinishedFile, fault
from windloom.errors import WindloomError
from windloom.model.types import DataType, arrow_type
from windloom.plan.plan import Plan
from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace, TableInfo
from windloom.sinks.tables import AnswerTables
from windloom.spark.sources.hadoop import absolute_place, storage_at

MANIFEST = "_manifest.json"
_EARLIER_MANIFEST = "manifest.json"
_FORMAT = "windloom-answers/2"
#: Files without rows, which have the columns of all tables.
_COLUMNS = ("_common_metadata", "columns.parquet")


class ParquetSink(Sink):
    target: ClassVar[str | None] = "path"

    def __init__(self, storage: Storage, path: str, checkpoint: str | None) -> None:
        """`checkpoint` is the identity of the checkpoint whose rounds are written here; None for a batch run."""
        self._storage = storage
        self._has_written = False
        self._checkpoint = checkpoint
        self._tables: dict[str, dict[str, Any]] = {}  # columns and queries of each table, by its directory
        self._queries: dict[str, dict[str, Any]] = {}  # each query as it was asked last, by name
        data = storage.read(MANIFEST)
        if data is None:
            if storage.read(_EARLIER_MANIFEST) is not None:
                raise written_earlier(path)
            return
        try:
            manifest = json.loads(data)
            is_own = (manifest["format"], manifest["checkpoint"]) == (_FORMAT, checkpoint)
            self._tables, self._queries = dict(manifest["tables"]), dict(manifest["queries"])
        except (ValueError, LookupError, TypeError):
            is_own = False
        if not is_own:
            raise WindloomError(
                f"the output directory '{path}' holds the answers of another run",
                "its rounds belong to another checkpoint, or to a batch run",
                "give a new directory, or the checkpoint these answers were made with",
            )

    @classmethod
    def open(cls, place: SinkPlace, *, path: str | Path) -> Self:
        where = absolute_place(path)
        return cls(storage_at(place.spark, where), where, place.checkpoint_id)

    def write(self, round: int, answers: RoundAnswers) -> None:
        writer = _RoundWriter(self._storage, round)
        try:
            writer.take(answers.rows())
            self.describe(answers.tables)
            if not self._has_written:
                # Deletes files that an earlier process wrote for a round and that the round, answered again, does not
                # have.
                prefix = round_file(round).removesuffix(".parquet")
                for folder in self._tables:
                    for name in self._storage.list(folder):
                        if name.startswith(prefix) and f"{folder}/{name}" not in writer.files:
                            self._storage.delete(f"{folder}/{name}")
            writer.finish()
            self._has_written = True
        except BaseException:
            writer.discard()
            raise

    def rows(self, table: str) -> pa.Table | None:
        folder = table_folder(table)
        files = [name for name in self._storage.list(folder) if name.endswith(".parquet")]
        contents = [self._storage.read(f"{folder}/{name}") for name in files]
        tables = [pq.read_table(pa.BufferReader(data)) for data in contents if data is not None]
        return pa.concat_tables(tables) if tables else None

    def describe(self, tables: Mapping[str, TableInfo]) -> None:
        """Write the manifest before the files: it names every table, and removed queries too, as their answers stay."""
        is_changed = False
        for name, info in tables.items():
            folder = table_folder(name)
            entry = self._tables.setdefault(folder, {"columns": dict(info.columns), "queries": []})
            queries = sorted({*entry["queries"], *info.queries})
            asked = {
                query: {"table": folder, "by": list(by), "text": info.asked[query].text if query in info.asked else ""}
                for query, by in info.queries.items()
            }
            is_changed |= queries != entry["queries"] or any(
                self._queries.get(query) != asked[query] for query in asked
            )
            entry["queries"] = queries
            self._queries |= asked
        if not is_changed:
            return
        none = _all_columns(entry["columns"] for entry in self._tables.values()).empty_table()
        for name in _COLUMNS:
            data = pa.BufferOutputStream()
            pq.write_table(none, data)
            self._storage.write(name, data.getvalue().to_pybytes())
        manifest = {
            "format": _FORMAT,
            "checkpoint": self._checkpoint,
            "tables": self._tables,
            "queries": dict(sorted(self._queries.items())),
        }
        self._storage.write(MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def read_manifest(out: str | Path) -> dict[str, Any]:
    """Return the manifest of a directory of answers on this machine: its tables, and its queries with their tables."""
    if re.match(r"\w{2,}:/", str(out)):
        raise WindloomError(
            f"cannot read '{out}'",
            "answers are read from a directory of this machine",
            "read it with Spark: spark.read.parquet('…').where(\"query = '…'\")",
        )
    out = Path(out)
    try:
        manifest: dict[str, Any] = json.loads((out / MANIFEST).read_bytes())
        if manifest["format"] == _FORMAT:
            return manifest
        fact = f"its '{MANIFEST}' is of the format '{manifest['format']}', and this revision reads '{_FORMAT}'"
    except FileNotFoundError:
        if (out / _EARLIER_MANIFEST).exists():
            raise written_earlier(out) from None
        fact = f"it has no '{MANIFEST}'" if out.is_dir() else "there is no such directory"
    except (OSError, ValueError, LookupError, TypeError) as error:
        fact = f"its '{MANIFEST}' cannot be read: {error}"
    raise WindloomError(f"'{out}' holds no answers", fact, "give the directory that was --out, or out= in Python")


def _all_columns(tables: Iterable[Mapping[str, str]]) -> pa.Schema:
    """Return the columns of all tables, from their Spark types; of two types of a column, the wider one."""
    found = pa.schema([])
    for columns in tables:
        fields = []
        for name, kind in columns.items():
            with suppress(KeyError):  # a type that only Spark computes, such as a map
                fields.append(pa.field(name, arrow_type(DataType.parse(kind))))
        try:
            found = pa.unify_schemas([found, pa.schema(fields)], promote_options="permissive")
        except pa.ArrowException:  # types that have nothing in common: readers of all tables see the first
            others = [field for field in fields if field.name not in found.names]
            found = pa.unify_schemas([found, pa.schema(others)])
    return found


def written_earlier(path: str | Path) -> WindloomError:
    """Return the error for a directory whose tables an earlier revision has written, under other names."""
    return WindloomError(
        f"the output directory '{path}' was written by an earlier revision of Windloom",
        f"it lists its tables in '{_EARLIER_MANIFEST}'; now they are directories 'table=…', listed in '{MANIFEST}'",
        "give a new directory; the old tables stay readable one by one: spark.read.parquet('DIR/TABLE')",
    )


class _RoundWriter:
    """The files of a round: written while rows come, then shown one after another."""

    def __init__(self, storage: Storage, round: int) -> None:
        self._storage, self._round = storage, round
        self.files: dict[str, tuple[UnfinishedFile, pq.ParquetWriter]] = {}

    def take(self, pieces: Iterable[tuple[str, pa.Table]]) -> None:
        for table, rows in pieces:
            name = f"{table_folder(table)}/{round_file(self._round)}"
            if name not in self.files:
                file = self._storage.create(name)
                try:
                    with _failing(file):
                        self.files[name] = file, pq.ParquetWriter(file.stream, rows.schema, compression="zstd")
                except BaseException:
                    file.discard()
                    raise
            file, writer = self.files[name]
            with _failing(file):
                writer.write_table(rows)

    def finish(self) -> None:
        for file, writer in self.files.values():
            with _failing(file):
                writer.close()
            fault("before sink")
            file.finish()
            fault("after sink")

    def discard(self) -> None:
        for file, writer in self.files.values():
            with suppress(OSError, ValueError):  # the file is closed, or takes no more
                writer.close()
            file.discard()


@contextmanager
def _failing(file: UnfinishedFile) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise file.failed(error) from error


def table_folder(table: str) -> str:
    """Return the directory of a table's files, named as Spark names partitions, so that all tables are one dataset."""
    return f"table={table}"


def round_file(round: int) -> str:
    return f"round-{round:09d}.parquet"


def check_empty(out: Path) -> None:
    """Raise if the directory already holds something: a run's answers are not mixed with other files."""
    if re.match(r"\w{2,}:/", str(out)):
        raise WindloomError(
            f"cannot write to '{out}'", "the answers go to a directory of this machine", "copy it afterwards"
        )
    try:
        if out.exists() and not out.is_dir():
            raise WindloomError(f"cannot write to '{out}'", "it is a file", "give a directory")
        entries = sorted(path.name for path in out.iterdir()) if out.exists() else []
    except OSError as error:
        raise _unwritable(out, error) from None
    if entries:
        raise WindloomError(
            f"the output directory '{out}' is not empty",
            f"it holds {len(entries):,} {'entry' if len(entries) == 1 else 'entries'}, such as '{entries[0]}'",
            "give a new directory, or empty this one first",
        )


class ParquetStore(Sink):
    """The Parquet sink over a hidden directory. `tables` gives the final place of each shape's rows, by its number."""

    def __init__(self, plan: Plan, answers: AnswerTables, out: Path) -> None:
        check_empty(out)
        self._plan, self._answers = plan, answers
        self._out = out.absolute()  # Spark's own working directory may be another
        # An existing directory may be the root of a volume, or in use by others: it is filled, not replaced.
        self._fills = out.exists()
        name = f".{self._out.name}.unfinished-{os.getpid()}"
        self._work = (self._out if self._fills else self._out.parent) / name
        self._made: list[Path] = []  # parents that did not exist
        self._names = [table_folder(answers.name(shape)) for shape in plan.shapes]
        self.tables = [self._out / name for name in self._names]
        # What a crash leaves behind is not used, so nothing must be synced before the directory has its final name.
        self._storage = LocalStorage(self._work, syncs=False)

    def __enter__(self) -> ParquetStore:
        self._made = [parent for parent in self._work.parents if not parent.exists()]
        shutil.rmtree(self._work, ignore_errors=True)  # left by a killed process with the same process id
        try:
            for name in self._names:
                (self._work / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._remove()
            raise _unwritable(self._out, error) from None
        return self

    def write(self, round: int, answers: RoundAnswers) -> None:
        sink = ParquetSink(self._storage, str(self._out), None)
        sink.write(round, answers)
        self._complete(round)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self._publish()
                return
            except OSError as problem:
                error = problem
            except BaseException:
                self._remove()
                raise
        self._remove()
        cause = error.__cause__ if isinstance(error, StorageError) else error
        if isinstance(cause, OSError):  # a full disk, a volume that went away
            raise _unwritable(self._out, cause) from cause

    def _complete(self, round: int) -> None:
        """Write an empty file, with a schema, for a table without rows."""
        for number, name in enumerate(self._names):
            if not any((self._work / name).iterdir()):
                pq.write_table(self._answers.empty(self._plan.shapes[number]), self._work / name / round_file(round))

    def _publish(self) -> None:
        if not self._fills:
            self._work.rename(self._out)
            return
        for entry in sorted(self._work.iterdir(), key=lambda path: path.name == MANIFEST):
            entry.rename(self._out / entry.name)  # the manifest is last: if it is there, everything is there
        self._work.rmdir()

    def _remove(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)
        for parent in self._made:
            try:
                parent.rmdir()
            except OSError:  # another process uses it by now
                return


def _unwritable(out: Path, error: OSError) -> WindloomError:
    return WindloomError(f"cannot write to '{out}'", str(error), "choose another directory, or make room")
