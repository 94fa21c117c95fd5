"""Delta Lake: one Delta table per table of answers, and one commit per table and round.

A commit carries the number of its round as an application transaction of the checkpoint, so a round that comes again is
left out. `windloom_queries`, which is also a Delta table, lists which table holds which queries. A directory belongs to
one checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from windloom.checkpoint.storage import fault, full_disk
from windloom.errors import SinkDownError, WindloomError
from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace
from windloom.spark.sources.hadoop import absolute_place

QUERIES = "windloom_queries"
_OWNER = "windloom.checkpoint"
_QUERY_COLUMNS = pa.schema([("query", pa.string()), ("table", pa.string()), ("groups", pa.list_(pa.string()))])
_COLOURS = re.compile(r"\x1b\[[\d;]*m")


class DeltaSink(Sink):
    target: ClassVar[str | None] = "path"

    def __init__(self, root: str, checkpoint: str, storage_options: Mapping[str, str] | None = None) -> None:
        """`storage_options` are the options of delta-rs for object stores; by default it reads the environment."""
        self._root, self._checkpoint = root, checkpoint
        self._options = None if storage_options is None else dict(storage_options)
        self._tables: dict[str, DeltaTable] = {}
        with self._errors(QUERIES, is_start=True):
            listed = self._table(QUERIES, _QUERY_COLUMNS).to_pyarrow_table(columns=["query", "table"])
        self._listed = {(row["query"], row["table"]) for row in listed.to_pylist()}

    @classmethod
    def open(cls, place: SinkPlace, *, path: str | Path, storage_options: Mapping[str, str] | None = None) -> Self:
        return cls(absolute_place(path), place.checkpoint_id, storage_options)

    def write(self, round: int, answers: RoundAnswers) -> None:
        parts: dict[str, list[pa.Table]] = {}
        for name, rows in answers.rows():
            parts.setdefault(name, []).append(rows)
        with self._errors(QUERIES):
            # Queries that are new. Removed queries stay listed, because their answers stay too.
            new = [
                {"query": query, "table": name, "groups": list(groups)}
                for name, info in answers.tables.items()
                for query, groups in info.queries.items()
                if (query, name) not in self._listed
            ]
            if new:
                self._commit(self._table(QUERIES, _QUERY_COLUMNS), pa.Table.from_pylist(new, _QUERY_COLUMNS), None)
                self._listed |= {(row["query"], row["table"]) for row in new}
        for name, tables in parts.items():
            with self._errors(name):
                rows = pa.concat_tables(tables)
                table = self._table(name, rows.schema)
                last_round = table.transaction_version(self._checkpoint)
                if last_round is not None and last_round > round:
                    raise WindloomError(
                        f"the Delta table '{self._place(name)}' has come further than the checkpoint",
                        f"it holds round {last_round}, and the checkpoint goes on with round {round}:"
                        " it may be an older copy",
                        "use the newest checkpoint, or give a new directory",
                    )
                if last_round != round:
                    self._commit(table, rows, CommitProperties(app_transactions=[Transaction(self._checkpoint, round)]))

    def rows(self, table: str) -> pa.Table | None:
        with self._errors(table):
            try:
                return DeltaTable(self._place(table), storage_options=self._options).to_pyarrow_table()
            except TableNotFoundError:
                return None

    def _commit(self, table: DeltaTable, rows: pa.Table, properties: CommitProperties | None) -> None:
        fault("before sink")
        write_deltalake(table, rows, mode="append", commit_properties=properties)
        fault("after sink")

    def _table(self, name: str, schema: pa.Schema) -> DeltaTable:
        """Return a table that belongs to this checkpoint; it is created if it does not exist."""
        if name not in self._tables:
            fault("before sink")
            table = DeltaTable.create(
                self._place(name),
                schema,
                mode="ignore",
                name=name,
                description="answers of Windloom queries",
                configuration={_OWNER: self._checkpoint},
                storage_options=self._options,
                raise_if_key_not_exists=False,
            )
            fault("after sink")
            if table.metadata().configuration.get(_OWNER) != self._checkpoint:
                raise WindloomError(
                    f"the Delta table '{self._place(name)}' holds the answers of another stream",
                    "its rounds belong to another checkpoint",
                    "give a new directory, or the checkpoint these answers were made with",
                )
            self._tables[name] = table
        return self._tables[name]

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _errors(self, name: str, *, is_start: bool = False) -> Iterator[None]:
        """Raise errors as the stream expects them; the next attempt opens the table again, to see the last commit."""
        try:
            yield
        except BaseException as error:
            self._tables.pop(name, None)
            # delta-rs raises a plain Exception for types that it does not know.
            if not isinstance(error, DeltaError | OSError) and type(error) is not Exception:
                raise
            target = self._place(name)
            facts = " ".join(_COLOURS.sub("", str(error)).partition("stack backtrace")[0].split())[:500]
            if "No space left on device" in facts:
                raise full_disk(Path(target)) from error
            # Errors of an object store may be temporary, unless delta-rs itself refuses; errors of a directory are not.
            is_away = isinstance(error, OSError) and "://" in target
            if not is_start and (is_away or isinstance(error, CommitFailedError)):
                message = f"the Delta table '{target}' does not take the round"
                raise SinkDownError(message, facts, "restore access to it") from error
            hint = "restore access to it, or correct what it names"
            raise WindloomError(f"cannot write the Delta table '{target}'", facts, hint) from error
