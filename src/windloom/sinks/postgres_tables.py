"""Tables of answers in PostgreSQL: their names, columns and keys, the statements about them, and rows as CSV.

Queries with equal output columns and equal grouping columns share a table, whose rows carry the name of their query.
Its key is that name, the window and the group: a window that is reported again, because its query was replaced,
replaces its row. Rows of row queries have no key, because equal rows may be there several times: a window that is
reported again replaces all its rows. Rows of interval joins have no window, and are only added. There is a view for
each query, which shows the rows of that query alone. Provisional rows (EMIT EARLY) are replaced by their key too, and
deleted when they are withdrawn.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from psycopg import sql

from windloom.model.clauses import REPORT
from windloom.model.formatting import plain
from windloom.sinks.sink import WITHDRAWN

#: The greatest length of a name in PostgreSQL.
_NAME_BYTES = 63
#: How many rows are turned into CSV at once.
_PORTION_ROWS = 1 << 16
_WINDOW = ("window_end", "window_start")

_TYPES = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table: `columns` with their Spark types. The key is the query, the window and `groups`; None means no key.

    `has_windows`: all rows of a window come together. `withdraws`: a row may withdraw another row.
    """

    schema: str
    columns: tuple[tuple[str, str], ...]
    groups: tuple[str, ...] | None
    has_windows: bool = True
    withdraws: bool = False

    @property
    def name(self) -> str:
        """The name: readable, and different for different columns, types or groups."""
        readable = "_".join(name for name, _ in self.columns if name not in ("query", *_WINDOW))
        slug = re.sub(r"[^a-z0-9]+", "_", readable.lower()).strip("_")[:40] or "windows"
        kind: list[object] = [self.columns, self.groups]
        kind += [word for word, is_so in (("pairs", not self.has_windows), ("early", self.withdraws)) if is_so]
        digest = hashlib.sha256(json.dumps(kind).encode()).hexdigest()[:8]
        return f"answers_{slug}_{digest}"

    @property
    def key(self) -> tuple[str, ...]:
        return () if self.groups is None else ("query", *_WINDOW, *self.groups)

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    @property
    def _staging(self) -> sql.Identifier:
        return sql.Identifier(f"new_{self.name}"[:_NAME_BYTES])

    def creation(self) -> Iterator[sql.Composed]:
        """Yield the statements that create the table, and an index if it has no key."""
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(column_type(kind))) for name, kind in self.columns
        )
        if self.groups is not None:
            yield sql.SQL("CREATE TABLE IF NOT EXISTS {} ({}, UNIQUE NULLS NOT DISTINCT ({}))").format(
                self.identifier, columns, _names(self.key)
            )
            return
        yield sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(self.identifier, columns)
        index = sql.Identifier(self.name.replace("answers", "windows", 1))
        yield sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} (query, window_end)").format(index, self.identifier)

    def staging_creation(self) -> sql.Composed:
        """Create the staging table, which only this connection sees and which is empty after every transaction."""
        return sql.SQL("CREATE TEMPORARY TABLE IF NOT EXISTS {} (LIKE {}) ON COMMIT DELETE ROWS").format(
            self._staging, self.identifier
        )

    def copy(self) -> sql.Composed:
        return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
            self._staging, _names(name for name, _ in self.columns)
        )

    def upsert(self) -> Iterator[sql.Composed]:
        columns = _names(name for name, _ in self.columns)
        if self.groups is None:  # no key is needed: a round adds its rows once, in its transaction
            if self.has_windows:
                yield sql.SQL(
                    "DELETE FROM {} AS old USING (SELECT DISTINCT query, window_end FROM {}) AS new"
                    " WHERE old.query = new.query AND old.window_end = new.window_end"
                ).format(self.identifier, self._staging)
            yield sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2}").format(self.identifier, columns, self._staging)
            return
        others = [name for name, _ in self.columns if name not in self.key]
        changes = [sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in others]
        action = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(changes)) if changes else sql.SQL("NOTHING")
        stays: sql.Composable = sql.SQL("true")
        if self.withdraws:
            gone = sql.SQL("{} = {}").format(sql.Identifier(REPORT), sql.Literal(WITHDRAWN))
            stays = sql.SQL("NOT ({})").format(gone)
            # Deletes the rows with the key of a withdrawn row; in a key, only groups may be NULL.
            same = [sql.SQL("old.{0} = new.{0}").format(sql.Identifier(name)) for name in ("query", *_WINDOW)]
            same += [sql.SQL("old.{0} IS NOT DISTINCT FROM new.{0}").format(sql.Identifier(n)) for n in self.groups]
            yield sql.SQL("DELETE FROM {} AS old USING (SELECT * FROM {} WHERE {}) AS new WHERE {}").format(
                self.identifier, self._staging, gone, sql.SQL(" AND ").join(same)
            )
        yield sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} WHERE {5} ON CONFLICT ({3}) DO {4}").format(
            self.identifier, columns, self._staging, _names(self.key), action, stays
        )

    def about(self, query: str) -> str:
        """Return the comment on the view of a query, which also shows whether the view is still right."""
        return f"answers of the Windloom query '{query}', from {self.name}"

    def view(self, query: str, name: str, *, replaces: bool) -> Iterator[sql.Composed]:
        """Create the view of a query. It is dropped first if it exists: the columns of a view cannot be changed."""
        view = sql.Identifier(self.schema, name)
        shown = _names([column for column, _ in self.columns if column != "query"])
        if replaces:
            yield sql.SQL("DROP VIEW {}").format(view)
        yield sql.SQL("CREATE VIEW {} AS SELECT {} FROM {} WHERE query = {}").format(
            view, shown, self.identifier, sql.Literal(query)
        )
        yield sql.SQL("COMMENT ON VIEW {} IS {}").format(view, sql.Literal(self.about(query)))


def split_rows(rows: pa.Table, tables: Mapping[str, PostgresTable]) -> Iterator[tuple[PostgresTable, pa.Table]]:
    """Yield the rows by the table that they go to; usually all go to one."""
    targets = dict.fromkeys(tables.values())
    if len(targets) == 1:
        yield next(iter(targets)), rows
        return
    for target in targets:
        queries = [query for query, table in tables.items() if table == target]
        target_rows = rows.filter(pc.is_in(rows["query"], value_set=pa.array(queries, pa.string())))
        if target_rows.num_rows:
            yield target, target_rows


def view_name(query: str, taken: Container[str]) -> str:
    """Return the query's own name, with a digest if it is too long or already the name of a table."""
    if len(query.encode()) <= _NAME_BYTES and query not in taken:
        return query
    digest = hashlib.sha256(query.encode()).hexdigest()[:8]
    return query.encode()[: _NAME_BYTES - 9].decode(errors="ignore") + "_" + digest


def column_type(kind: str) -> str:
    """Return the PostgreSQL type for a Spark type.

    >>> column_type("double"), column_type("decimal(10,2)"), column_type("array<bigint>")
    ('double precision', 'numeric(10,2)', 'jsonb')
    """
    if kind.startswith("decimal"):
        return kind.replace("decimal", "numeric")
    if kind.startswith(("array<", "struct<", "map<")):
        return "jsonb"
    return _TYPES.get(kind, "text")


def csv_of(rows: pa.Table, columns: Sequence[tuple[str, str]]) -> Iterator[bytes]:
    """Yield rows for COPY: every value is quoted, so that a field without quotes is NULL."""
    options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    for begin in range(0, rows.num_rows, _PORTION_ROWS):
        portion = rows.slice(begin, _PORTION_ROWS)
        texts = pa.table({name: _as_text(portion[name], kind) for name, kind in columns})
        written = io.BytesIO()
        csv.write_csv(texts, written, options)
        yield written.getvalue()


def _as_text(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray | pa.Array:
    """Return the column with values that can be written as CSV."""
    target = column_type(kind)
    if target not in ("jsonb", "bytea", "text") or kind == "string":
        return column

    def text(value: Any) -> str:
        if target == "jsonb":
            return json.dumps(plain(value), ensure_ascii=False)
        return f"\\x{value.hex()}" if target == "bytea" else str(value)  # text: a type that only Spark computes

    return pa.array([None if value is None else text(value) for value in column.to_pylist()], pa.string())


def _names(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
