"""Pieces: rows of answers that the task of a shard writes where the sink keeps them, hidden until their round is shown.

`.pieces/000000042-0003-5f1c…-0.piece`, beside the tables, is a Parquet file with rows of one table that shard 3 has
answered in round 42. Every attempt of the task draws the name anew, and only names in the log of the round count. When
the round is shown, each piece is renamed to `table=<table>/round-000000042-shard-0003.parquet`; repeating that changes
nothing. What other attempts have left is never shown, and is deleted.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windloom.answers.blocks import Block
from windloom.answers.finish import answer_rows
from windloom.checkpoint.storage import StorageError, fault, full_disk, sync_file
from windloom.errors import WindloomError
from windloom.expressions.arithmetic import DeclinedError
from windloom.plan.plan import Plan

FOLDER = ".pieces"
#: A shard with at least this many rows of a table writes them itself; fewer go through the driver, which combines them.
LEAST_ROWS = 1 << 16
_OWNER = "owner"
_AGAIN = "make room or mend access to it, then start again with the same checkpoint: nothing is lost"


@dataclass(frozen=True, slots=True)
class Piece:
    """A file in the folder of pieces, and the table that its rows belong to."""

    table: str
    file: str
    rows: int

    @property
    def shown(self) -> str:
        """The name under which readers find its rows, which is the same for all attempts of a shard."""
        round, shard, *_ = self.file.split("-")
        return f"{table_folder(self.table)}/round-{round}-shard-{shard}.parquet"


def table_folder(table: str) -> str:
    """Return the directory of a table's files, named as Spark names partitions, so that all tables are one dataset."""
    return f"table={table}"


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where tasks may write the answers of a round. It is sent to executors.

    `tables` names, by number of the shape, the table of its rows; None if only Spark can finish them.
    """

    place: str
    owner: str
    tables: tuple[str | None, ...]
    least_rows: int

    @property
    def is_reached(self) -> bool:
        """Whether this process sees the driver's directory: a cluster need not share it."""
        try:
            return (Path(self.place) / FOLDER / _OWNER).read_text() == self.owner
        except OSError:
            return False


class PieceFolder:
    """The driver's side: shows pieces of rounds that are logged, and deletes all others."""

    def __init__(self, root: Path, owner: str) -> None:
        """`owner` distinguishes this directory from directories with the same name on other machines."""
        self._root, self._owner = root, owner

    def outlet(self, tables: tuple[str | None, ...]) -> Outlet:
        token = self._root / FOLDER / _OWNER
        try:
            if not token.exists():
                token.parent.mkdir(parents=True, exist_ok=True)
                token.write_text(self._owner)
        except OSError as error:
            raise _failed("write", token, error) from error
        return Outlet(str(self._root), self._owner, tables, LEAST_ROWS)

    def show(self, pieces: Iterable[Piece]) -> None:
        """Shows pieces; may be repeated, because a piece that is no longer there has been shown."""
        for piece in pieces:
            hidden, target = self._hidden(piece), self._root / piece.shown
            fault("before sink")
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError):
                    hidden.replace(target)
                    sync_file(target.parent)
            except OSError as error:
                raise _failed("write", target, error) from error
            if not target.exists():
                raise self._missing(piece)
            fault("after sink")

    def read(self, piece: Piece) -> pa.Table:
        """The rows of a piece, whether it has been shown or not."""
        for path in (self._hidden(piece), self._root / piece.shown):
            if path.exists():
                return pq.ParquetFile(path).read()
        raise self._missing(piece)

    def keep_only(self, names: Collection[str]) -> None:
        """Deletes all pieces except these: they were left by failed or slower attempts."""
        try:
            for path in (self._root / FOLDER).glob("*.piece"):
                if path.name not in names:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise _failed("delete", self._root / FOLDER, error) from error

    def _hidden(self, piece: Piece) -> Path:
        return self._root / FOLDER / piece.file

    def _missing(self, piece: Piece) -> WindloomError:
        return WindloomError(
            f"the rows '{piece.file}' of table '{piece.table}' are missing",
            f"a shard has written them, and they are not under '{self._root}'",
            "start with the path that the answers had before",
        )


class PieceWriter:
    """The task's side: writes the pieces of one attempt of one shard."""

    def __init__(self, outlet: Outlet, round: int, shard: int) -> None:
        self._outlet, self._stem = outlet, f"{round:09d}-{shard:04d}-{uuid4().hex}"
        self._waiting: dict[str, list[tuple[Block, pa.Table]]] = {}
        self._open: dict[str, tuple[str, pq.ParquetWriter]] = {}
        self._rows: dict[str, int] = {}

    def take(self, plan: Plan, blocks: Iterable[Block]) -> Iterator[Block]:
        """Writes rows of tables that have many, and returns the blocks whose rows the driver must finish."""
        for block in blocks:
            table, rows = self._outlet.tables[block.shape], self._finished(plan, block)
            if table is None or rows is None:
                yield block
            elif table in self._open:
                self._write(table, rows)
            elif rows.num_rows:
                waiting = self._waiting.setdefault(table, [])
                waiting.append((block, rows))
                if sum(waiting_rows.num_rows for _, waiting_rows in waiting) >= self._outlet.least_rows:
                    for _, waiting_rows in self._waiting.pop(table):
                        self._write(table, waiting_rows)
        for waiting in self._waiting.values():
            yield from (block for block, _ in waiting)

    def finish(self) -> tuple[Piece, ...]:
        """The pieces, complete and durable when this returns."""
        found = []
        for table, (file, writer) in self._open.items():
            path = self._path(file)
            try:
                writer.close()
                sync_file(path)
            except OSError as error:
                raise _failed("write", path, error) from error
            found.append(Piece(table, file, self._rows[table]))
        if found:
            sync_file(self._path("").parent)
        return tuple(found)

    def _finished(self, plan: Plan, block: Block) -> pa.Table | None:
        if self._outlet.tables[block.shape] is None:
            return None
        try:
            return answer_rows(plan.shapes[block.shape], with_query(block), ("query",))
        except DeclinedError:
            return None

    def _write(self, table: str, rows: pa.Table) -> None:
        try:
            if table not in self._open:
                file = f"{self._stem}-{len(self._open)}.piece"
                self._open[table] = (file, pq.ParquetWriter(self._path(file), rows.schema, compression="zstd"))
            self._open[table][1].write_table(rows)
        except OSError as error:
            raise _failed("write", self._path(self._stem), error) from error
        self._rows[table] = self._rows.get(table, 0) + rows.num_rows

    def _path(self, file: str) -> Path:
        return Path(self._outlet.place) / FOLDER / file


def with_query(block: Block) -> pa.Table:
    """The rows of a block with the name of their query as the first column."""
    counts = np.diff(block.bounds)
    query = pa.DictionaryArray.from_arrays(
        pa.array(np.repeat(np.arange(len(counts), dtype=np.int32), counts)), pa.array(block.queries, pa.string())
    )
    return block.table.add_column(0, "query", query)


def _failed(what: str, path: Path, error: OSError) -> StorageError:
    if error.errno == errno.ENOSPC:
        return full_disk(path)
    return StorageError(f"cannot {what} '{path}'", str(error.strerror or error), _AGAIN)
