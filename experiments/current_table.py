"""Records of varying lifetimes in the sink `current`, fed directly: what source E, chapter 4, is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.partitioned_index import Records
from windloom.durable.shards.pieces import Piece
from windloom.engine.sinks.current import CurrentSink
from windloom.engine.sinks.sink import TableInfo
from windloom.language import parse_query
from windloom.model import DataType, Query, Stream
from windloom.rounds import Block

MINUTE = 60_000_000
_EDGE = pa.timestamp("us", tz="UTC")
_COLUMNS = {name: DataType.parse(kind) for name, kind in {"ts": "timestamp", "k": "int", "data": "binary"}.items()}
_STREAMS = {name: Stream(name, _COLUMNS, time="ts") for name in ("a", "b")}


@dataclass(frozen=True, slots=True)
class _Period:
    """The answers of one round: a period is a minute."""

    query: Query
    number: int
    records: Records

    @property
    def _table(self) -> pa.Table:
        count, end = len(self.records), self.number * MINUTE
        return pa.table(
            {
                "query": pa.repeat(pa.scalar("pairs"), count),
                "window_start": pa.array(np.full(count, end - self.query.window.range_ticks)).cast(_EDGE),
                "window_end": pa.array(np.full(count, end)).cast(_EDGE),
                "k": pa.array(self.records["key"]),
                "data": pa.array(self.records["data"].tolist(), pa.binary()),
                "valid_until": pa.array(self.records["end"] * MINUTE).cast(_EDGE),
            }
        )

    @property
    def tables(self) -> Mapping[str, TableInfo]:
        return {"pairs": TableInfo({}, {"pairs": ()}, frozenset({"pairs"}), frozenset(), {"pairs": self.query})}

    def rows(self, *, with_pieces: bool = True) -> Iterable[tuple[str, pa.Table]]:
        return [("pairs", self._table)]

    def until(self, query: str) -> int:
        return self.number * MINUTE

    def schema(self, query: str) -> pa.Schema:
        return self._table.drop_columns("query").schema

    def blocks(self) -> Iterator[Block]:
        return iter(())

    @property
    def pieces(self) -> Sequence[Piece]:
        return ()

    @property
    def wide(self) -> None:
        return None


class CurrentTable:
    """The table of a join whose pairs stand for up to `longest` minutes."""

    def __init__(self, folder: Path, longest: int) -> None:
        window = f"[RANGE {longest} minutes SLIDE 1 minute]"
        text = f"SELECT a.k, b.data FROM a {window} JOIN b {window} ON a.k = b.k EMIT CHANGES"
        self._query = parse_query("pairs", text, _STREAMS)
        self._sink, self.place = CurrentSink(folder, "experiment"), folder / "pairs"
        #: What was written, in bytes and in files.
        self.written = self.files_written = 0

    def answers(self, period: int, records: Records) -> _Period:
        return _Period(self._query, period, records)

    def update(self, answers: _Period) -> None:
        before = self._names()
        self.written += int(self._sink.write(answers.number, answers)["bytes"])
        self.files_written += len(self._names() - before)

    def _names(self) -> set[str]:
        return {path.name for path in self.place.glob("*.parquet")} if self.place.exists() else set()

    def probe(self, key: int) -> int:
        found: pa.Table = pq.read_table(self.place, filters=[("k", "=", key)], partitioning=None)
        return int(found.num_rows)

    def scan(self) -> pa.Table:
        return pq.read_table(self.place, partitioning=None)

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.place.glob("*.parquet"))
