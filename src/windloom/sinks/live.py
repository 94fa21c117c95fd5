"""Live: the latest answer of every query and group, to be read while the stream runs.

It is kept in memory and, completely, in one file per table, so that it survives a restart and others can read it too.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windloom.checkpoint.storage import Storage, fault
from windloom.model.clauses import CHANGE, Emits
from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace, TableInfo, present, replaced
from windloom.spark.sources.hadoop import storage_at


class LiveSink(Sink):
    target: ClassVar[str | None] = None

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._latest: dict[str, pa.Table] = {}
        for file in storage.list(""):
            data = storage.read(file) if file.endswith(".parquet") else None
            if data is not None:
                self._latest[file.removesuffix(".parquet")] = pq.read_table(pa.BufferReader(data))

    @classmethod
    def open(cls, place: SinkPlace) -> Self:
        return cls(storage_at(place.spark, f"{place.checkpoint_path}/live"))

    def write(self, round: int, answers: RoundAnswers) -> None:
        tables, fresh = answers.tables, dict[str, pa.Table]()
        for name, rows in answers.rows():
            earlier = fresh.get(name)
            fresh[name] = _last_rows(rows if earlier is None else pa.concat_tables([earlier, rows]), tables[name])
        for name in {*fresh, *self._latest}:
            both = [by_table[name] for by_table in (self._latest, fresh) if name in by_table]
            if name not in tables:  # the last of its queries has been removed
                del self._latest[name]
                self._storage.delete(f"{name}.parquet")
                continue
            before = both[0].num_rows
            if len(both) == 2 and tables[name].rows:
                # All rows of a window come in one round. If it comes again (a crash), none may be there twice.
                again = tables[name].rows.intersection(pc.unique(both[1]["query"]).to_pylist())
                both[0] = both[0].filter(pc.invert(_is_of(both[0], list(again))))
            current = _standing(_last_rows(pa.concat_tables(both), tables[name]), tables[name])
            if name in fresh or current.num_rows < before:
                self._latest[name] = current
                file = io.BytesIO()
                pq.write_table(current, file)
                fault("before sink")
                self._storage.write(f"{name}.parquet", file.getvalue())
                fault("after sink")

    def rows(self, table: str) -> pa.Table | None:
        return self._latest.get(table)


def _last_rows(rows: pa.Table, info: TableInfo) -> pa.Table:
    """Return one row for each query and group, of the window that ends last; for a row query, all rows of that window.

    For a query with EMIT EARLY, the last report of every window and group. Deletions and withdrawals are still there.
    """
    early = set(info.emitting(Emits.EARLY))
    parts = []
    for query in sorted(info.rows):
        own = rows.filter(_is_of(rows, [query]))
        ends = own["window_end"]
        parts.append(own.filter(pc.equal(ends, pc.max(ends))) if own.num_rows else own)
    for query in sorted(early):
        own = rows.filter(_is_of(rows, [query]))
        parts.append(replaced(own, info.queries[query], keeps_withdrawn=True))
    # A column may be a group of one query and an aggregate of another.
    others = {query: keys for query, keys in info.queries.items() if query not in info.rows and query not in early}
    for groups in dict.fromkeys(others.values()):
        same_groups = rows.filter(_is_of(rows, [query for query, group in others.items() if group == groups]))
        same_groups = same_groups.take(pc.sort_indices(same_groups, sort_keys=[("window_end", "ascending")]))
        keys = ["query", *groups]
        numbered = same_groups.select(keys).append_column("row", pa.array(np.arange(same_groups.num_rows)))
        last = numbered.group_by(keys, use_threads=False).aggregate([("row", "max")])["row_max"]
        parts.append(same_groups.take(last))
    return pa.concat_tables(parts)


def _standing(rows: pa.Table, info: TableInfo) -> pa.Table:
    """Return the rows without groups that have vanished; of queries with EMIT EARLY, only the present result."""
    if queries := info.emitting(Emits.CHANGES):
        gone = pc.and_(_is_of(rows, queries), pc.equal(rows[CHANGE], "delete"))
        rows = rows.filter(pc.invert(pc.fill_null(gone, False)))
    for query in info.emitting(Emits.EARLY):
        is_own = _is_of(rows, [query])
        chosen = present(replaced(rows.filter(is_own), info.queries[query]), info.queries[query])
        rows = pa.concat_tables([rows.filter(pc.invert(is_own)), chosen])
    return rows


def _is_of(rows: pa.Table, queries: Sequence[str]) -> pa.ChunkedArray:
    return pc.is_in(rows["query"], value_set=pa.array(queries, pa.string()))
