"""Answers as the Parquet sink wrote them, read newest round first, so that the latest cost little.

If all windows of a file lie outside the requested range, only its footer is read.
"""

from __future__ import annotations

import io
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from windloom.errors import WindloomError
from windloom.model.formatting import plain
from windloom.service.models import Rows
from windloom.sinks.parquet import MANIFEST
from windloom.sinks.sink import replaced

#: Bytes of decoded files that are kept: the newest are read again and again.
_KEPT_BYTES = 64 << 20
_FIXED = ("query", "window_start", "window_end")


class StoredAnswers:
    """The rows of one query at a time, from `table=*/round-*.parquet` next to `_manifest.json`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kept: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def read(
        self,
        name: str,
        columns: Sequence[str],
        since: str | None,
        until: str | None,
        limit: int,
        most_files: int | None = None,
        replacing: Sequence[str] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> pa.Table | None:
        """Return the latest rows of a query, at most `limit`, in order of time; None if nothing was written yet.

        With `most_files`, no more files than that are read, once a row is found.

        `columns` are those that the query has now: rows from before a replacement with other columns are left out.
        `since` and `until` bound the end of a window: from the first on, before the second. `replacing` are the
        grouping columns of a query with EMIT EARLY: for every window and group, only the last report counts. `groups`
        has, for some of the grouping columns, the values that are wanted, as text.
        """
        parts: list[pa.Table] = []
        rows_so_far = read = 0
        newest = ""
        for file in self._files(name, columns):
            is_enough = rows_so_far >= limit or (rows_so_far > 0 and most_files is not None and read >= most_files)
            if is_enough and _round(file) != newest:
                break
            newest = _round(file)
            if not self._may_hold(file, name, since, until):
                continue
            read += 1
            rows = _of_groups(_between(self._table(file), name, since, until), groups or {})
            if rows.num_rows:
                parts.append(rows)
                rows_so_far += rows.num_rows
        if not parts:
            return None
        rows = pa.concat_tables(parts[::-1], promote_options="default").combine_chunks()
        if replacing is not None:
            rows = replaced(rows, replacing).combine_chunks()
        order = pc.sort_indices(rows, sort_keys=[("window_end", "ascending")])
        return rows.take(order[-limit:])

    def _files(self, name: str, columns: Sequence[str]) -> Iterator[Path]:
        """Yield the files, newest first, of the tables that hold the query with the columns it has now."""
        try:
            manifest = json.loads((self._directory / MANIFEST).read_bytes())["tables"]
        except (OSError, ValueError, KeyError):
            return
        tables = [
            table
            for table, about in (manifest.items() if isinstance(manifest, dict) else ())
            if name in about["queries"]
            and [column for column in about["columns"] if column not in _FIXED] == list(columns)
        ]
        files = [file for table in tables for file in (self._directory / table).glob("round-*.parquet")]
        yield from sorted(files, key=lambda file: file.name, reverse=True)

    def _table(self, file: Path) -> pa.Table:
        key = (f"{file.parent.name}/{file.name}", file.stat().st_mtime_ns)  # a repeated round replaces its file
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        table = pq.ParquetFile(file).read(use_threads=False)  # a third of what `read_table` takes for small files
        with self._lock:
            self._kept[key] = table
            while len(self._kept) > 1 and sum(rows.nbytes for rows in self._kept.values()) > _KEPT_BYTES:
                self._kept.popitem(last=False)
        return table

    def _may_hold(self, file: Path, name: str, since: str | None, until: str | None) -> bool:
        """Return whether the file may hold rows of a query whose windows end in the range, judging by its footer."""
        about = pq.read_metadata(file)
        first, last = _least_and_most(about, "query")
        if first is not None and not first <= name <= last:
            return False
        first, last = _least_and_most(about, "window_end")
        if first is None or (since is None and until is None):
            return True
        kind = about.schema.to_arrow_schema().field("window_end").type
        return (since is None or last >= _bound("since", since, kind).as_py()) and (
            until is None or first < _bound("until", until, kind).as_py()
        )


def _least_and_most(about: pq.FileMetaData, column: str) -> tuple[Any, Any]:
    """Return the least and the greatest value of a column; None for both if the file does not have them."""
    index = about.schema.names.index(column)
    row_groups = [about.row_group(i).column(index).statistics for i in range(about.num_row_groups)]
    if not row_groups or not all(statistics is not None and statistics.has_min_max for statistics in row_groups):
        return None, None
    return min(statistics.min for statistics in row_groups), max(statistics.max for statistics in row_groups)


def _round(file: Path) -> str:
    """Return the part of a file's name that names the round; earlier revisions wrote several files of a round."""
    return file.stem.split("-")[1]


def _between(rows: pa.Table, name: str, since: str | None, until: str | None) -> pa.Table:
    wanted = pc.equal(rows["query"], name)
    ends = rows["window_end"]
    if since is not None:
        wanted = pc.and_(wanted, pc.greater_equal(ends, _bound("since", since, ends.type)))
    if until is not None:
        wanted = pc.and_(wanted, pc.less(ends, _bound("until", until, ends.type)))
    return rows.filter(wanted).drop_columns("query")


def _of_groups(rows: pa.Table, groups: Mapping[str, Sequence[str]]) -> pa.Table:
    """Return the rows whose grouping columns have one of the given values."""
    for name, texts in groups.items():
        column = rows[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        rows = rows.filter(pc.is_in(column, value_set=_values(name, texts, column.type)))
    return rows


def _values(name: str, texts: Sequence[str], kind: pa.DataType) -> pa.Array:
    try:
        if pa.types.is_timestamp(kind):
            return pa.array([_bound(name, text, kind).as_py() for text in texts], kind)
        if pa.types.is_binary(kind):
            return pa.array([bytes.fromhex(text) for text in texts], kind)
        return pa.array(texts, pa.string()).cast(kind)
    except (ValueError, pa.ArrowNotImplementedError):
        raise WindloomError(
            f"no group of '{name}' can be '{', '.join(texts)[:60]}'",
            f"its values are of type {kind}",
            "write a value as the answers show it in JSON",
        ) from None


def _bound(what: str, text: str, kind: pa.DataType) -> pa.Scalar:
    """Return an instant, or a position for windows of rows."""
    try:
        if not pa.types.is_timestamp(kind):
            return pa.scalar(int(text), kind)
        instant = datetime.fromisoformat(text)
        instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return pa.scalar(instant if kind.tz else instant.astimezone(UTC).replace(tzinfo=None), kind)
    except (ValueError, OverflowError, pa.ArrowInvalid):
        if not pa.types.is_timestamp(kind):
            raise WindloomError(
                f"'{what}' is not a position",
                f"it is '{text[:60]}', and the windows of this query are of rows: they begin and end at positions",
                f"give the number of a row, for example {what}=1000",
            ) from None
        raise WindloomError(
            f"'{what}' is not an instant", f"it is '{text[:60]}'", "write it as 2026-01-31T12:00:00Z"
        ) from None


# Answers as JSON, CSV or an Arrow stream.

FORMATS = {"json": "application/json", "csv": "text/csv; charset=utf-8", "arrow": "application/vnd.apache.arrow.stream"}


def as_rows(table: pa.Table) -> Rows:
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return Rows(
        columns=table.column_names,
        types=[str(field.type) for field in table.schema],
        rows=[list(row) for row in zip(*columns, strict=True)],
    )


def csv_bytes(table: pa.Table) -> bytes:
    file = io.BytesIO()
    # The table with dictionaries decoded, and lists and structures as JSON text.
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_dictionary(kind):
            columns.append(column.cast(kind.value_type))
        elif pa.types.is_nested(kind):
            texts = [None if value is None else json.dumps(plain(value)) for value in column.to_pylist()]
            columns.append(pa.chunked_array([pa.array(texts, pa.string())]))
        else:
            columns.append(column)
    pcsv.write_csv(pa.table(columns, names=table.column_names), file)
    return file.getvalue()


def arrow_pieces(table: pa.Table) -> Iterator[bytes]:
    """Yield the stream, batch by batch."""
    file = io.BytesIO()

    def taken() -> bytes:
        data = file.getvalue()
        file.seek(0)
        file.truncate()
        return data

    with pa.ipc.new_stream(file, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=65_536):
            writer.write_batch(batch)
            yield taken()
    yield taken()
