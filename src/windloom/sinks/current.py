"""Current: the present result of each query as a table of Parquet files, which any reader can open at any instant.

`<path>/<query>` is the result of the query's last closed window, also while a round runs. How the table changes follows
from the update pattern of the query: rows that carry their end are dropped when it comes, other rows when their
deletion is reported, and rows of aggregates when the next window is closed. A round appears at once, or not at all.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc

from windloom.checkpoint.storage import StorageError, full_disk
from windloom.errors import WindloomError
from windloom.model.clauses import CHANGE, VALID_UNTIL, Emits
from windloom.model.query import Query
from windloom.model.rows import Reports
from windloom.sinks.current_tables import FOLDER, EndsOf, Expiring, Update, Versions, changed_update, early_update
from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace
from windloom.sinks.tables import plain
from windloom.spark.sources.hadoop import absolute_place, is_remote

_OWNER = "owner"


class CurrentSink(Sink):
    target: ClassVar[str | None] = "path"

    def __init__(self, root: Path, checkpoint: str, *, expiries: int = 16, files: int = 8, buckets: int = 16) -> None:
        """Rows are divided by their ends into `expiries` buckets of at most `files` files each; rows of queries with
        EMIT CHANGES are divided by their groups into `buckets` buckets.
        """
        self._root, self._expiries, self._files, self._buckets = root, expiries, files, buckets
        self._checkpoint, self._is_owner = checkpoint, False
        self._tables: dict[str, Versions] = {}
        self._queries: dict[str, list[str]] = {}  # by table of answers
        self._own(writes=False)

    def _own(self, *, writes: bool) -> None:
        """Check that no other checkpoint owns the directory; with `writes`, make it this one's."""
        if self._is_owner:
            return
        owner = self._root / FOLDER / _OWNER
        try:
            owned_by = owner.read_text()
        except FileNotFoundError:
            owned_by = None
        except OSError as error:
            raise WindloomError(
                f"cannot write to '{self._root}'", str(error), "choose another directory, or make room"
            ) from None
        if owned_by is not None and owned_by != self._checkpoint:
            raise WindloomError(
                f"the directory '{self._root}' holds the results of another stream",
                "its rounds belong to another checkpoint",
                "give a new directory, or the checkpoint these results were made with",
            )
        if writes:
            owner.parent.mkdir(parents=True, exist_ok=True)
            owner.write_text(self._checkpoint)
            self._is_owner = True

    @classmethod
    def open(
        cls,
        place: SinkPlace,
        *,
        path: str | Path,
        expiries: int | str = 16,
        files: int | str = 8,
        buckets: int | str = 16,
    ) -> Self:
        where = absolute_place(path)
        if is_remote(where):
            raise WindloomError(
                f"the sink 'current' cannot write to '{where}'",
                "a version is shown by replacing a link, which only directories have",
                "give a directory, or use the sink 'live' or 'delta'",
            )
        sizes: dict[str, int] = {}
        for name, value in {"expiries": expiries, "files": files, "buckets": buckets}.items():
            if not str(value).isdecimal() or int(value) < 1:
                raise WindloomError(
                    f"the option '{name}' of the sink 'current' must be a positive number", f"it is {value!r}"
                )
            sizes[name] = int(value)
        return cls(Path(where), place.checkpoint_id, **sizes)

    def check(self, query: Query) -> None:
        rows = query.rows
        if (
            rows is not None
            and rows.columns
            and rows.reports is not Reports.STANDING
            and not (rows.tells_end or rows.within)
        ):
            raise WindloomError(
                f"query '{query.name}' has no present result for the sink 'current'",
                "it reports rows that enter or leave, each once",
                "write the query without ISTREAM and DSTREAM, with EMIT CHANGES",
            )
        if query.window.is_of_positions or not query.window.is_sliced:
            raise WindloomError(
                f"query '{query.name}' has no present result for the sink 'current'",
                f"{query.window}: its windows do not end together, so none of them is the last one",
                "use windows of time, or another sink",
            )

    def write(self, round: int, answers: RoundAnswers) -> dict[str, float]:
        try:
            self._own(writes=True)
            return self._written(round, answers)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise full_disk(self._root) from error
            hint = "restore access to it, then start again with the same checkpoint: nothing is lost"
            raise StorageError(f"cannot write to '{self._root}'", str(error), hint) from error

    def _written(self, round: int, answers: RoundAnswers) -> dict[str, float]:
        parts_by_table: dict[str, list[pa.Table]] = {}
        for name, table in answers.rows():
            parts_by_table.setdefault(name, []).append(plain(table))
        written = 0
        tables: dict[str, Versions] = {}
        for name, info in answers.tables.items():
            table_rows = pa.concat_tables(parts_by_table[name]) if name in parts_by_table else None
            for query in info.asked.values():
                rows = answers.schema(query.name).empty_table() if table_rows is None else table_rows
                if table_rows is not None and len(info.asked) > 1:
                    rows = rows.filter(pc.equal(rows["query"], query.name))
                rows = rows if table_rows is None else rows.drop_columns("query")
                tables[query.name] = Versions(self._root, query.name, _identity(query))
                written += self._write(tables[query.name], round, query, rows, answers.until(query.name))
        shown = {versions.link.name for versions in tables.values()}
        for path in (self._root / FOLDER).iterdir():
            if path.is_dir() and path.name not in shown:
                Versions(self._root, path.name, "").remove()
        self._tables = tables
        self._queries = {name: list(info.asked) for name, info in answers.tables.items()}
        return {"bytes": float(written)}

    def rows(self, table: str) -> pa.Table | None:
        pieces: list[pa.Table] = []
        for query in self._queries.get(table, []):
            parts = map(self._tables[query].read, self._tables[query].files())
            pieces += [part.add_column(0, "query", pa.repeat(pa.scalar(query), part.num_rows)) for part in parts]
        return pa.concat_tables(pieces) if pieces else None

    def _write(self, table: Versions, round: int, query: Query, rows: pa.Table, until: int) -> int:
        """Show the version of a round, if the query has changed or its rows have; return the number of bytes."""
        if table.newest > round:
            raise WindloomError(
                f"the table '{table.link}' has come further than the checkpoint",
                f"it holds round {table.newest}, and the checkpoint goes on with round {round}",
                "use the newest checkpoint, or give a new directory",
            )
        if table.newest == round and table.is_of_query:
            return 0  # this round was written before
        update = self._update(table, round, query, rows, until)
        is_changed = update.fresh or len(update.kept) < sum(not file.is_empty for file in table.files())
        if table.is_of_query and not is_changed:
            return 0
        is_changing = query.emission.kind is Emits.CHANGES and CHANGE in rows.column_names
        return table.show(update, rows.slice(0, 0).drop_columns([CHANGE] if is_changing else []))

    def _update(self, table: Versions, round: int, query: Query, rows: pa.Table, until: int) -> Update:
        window, keys = query.window, [grouping.name for grouping in query.group_by]
        if query.emission.kind is Emits.CHANGES and CHANGE in rows.column_names:
            if query.rows is not None and query.rows.columns:
                keys = [name for name in rows.column_names if name not in ("window_start", "window_end", CHANGE)]
            values = len(keys) + 3 < rows.num_columns
            return changed_update(table, round, rows, CHANGE, keys, values, self._buckets)
        last_end = until - (until - window.end_ticks) % window.slide_ticks  # of the windows that are reported
        if query.emission.kind is Emits.EARLY:
            return early_update(table, round, rows, keys, last_end)
        ends, longest = EndsOf("window_end", window.slide_ticks), window.slide_ticks
        if query.rows is not None and query.rows.tells_end:
            ends, longest = EndsOf(VALID_UNTIL), window.range_ticks + window.slide_ticks
        elif query.rows is not None and query.rows.within:
            ends = EndsOf(None)
        grid = Expiring(longest, window.slide_ticks, self._expiries, self._files)
        return grid.update(table, round, rows, ends, last_end)


def _identity(query: Query) -> str:
    """Return the identity of a query: a query of aggregates continues with its table if only its spelling changes."""
    if query.rows is not None:
        return query.text
    groups = [grouping.expression for grouping in query.group_by]
    parts: list[object] = [query.source, query.where, *groups, *query.aggregates]
    parts += [*(output.expression for output in query.outputs), query.having, query.emission]
    return "\n".join(map(str, parts))
