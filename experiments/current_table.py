"""Records of varying lifetimes in the sink `current`, fed directly: what source E, chapter 4, is compared with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench.fed_rounds import EDGE, MINUTE, FedRound

from experiments.partitioned_index import Records
from windloom.language.select import parse_query
from windloom.model import DataType, Query, Stream
from windloom.sinks.current import CurrentSink

_COLUMNS = {name: DataType.parse(kind) for name, kind in {"ts": "timestamp", "k": "int", "data": "binary"}.items()}
_STREAMS = {name: Stream(name, _COLUMNS, time="ts") for name in ("a", "b")}


def _period(query: Query, number: int, records: Records) -> FedRound:
    """The answers of one round: a period is a minute."""
    count, end = len(records), number * MINUTE
    table = pa.table(
        {
            "query": pa.repeat(pa.scalar("pairs"), count),
            "window_start": pa.array(np.full(count, end - query.window.range_ticks)).cast(EDGE),
            "window_end": pa.array(np.full(count, end)).cast(EDGE),
            "k": pa.array(records["key"]),
            "data": pa.array(records["data"].tolist(), pa.binary()),
            "valid_until": pa.array(records["end"] * MINUTE).cast(EDGE),
        }
    )
    return FedRound(query, number, table)


class CurrentTable:
    """The table of a join whose pairs stand for up to `longest` minutes."""

    def __init__(self, folder: Path, longest: int) -> None:
        window = f"[RANGE {longest} minutes SLIDE 1 minute]"
        text = f"SELECT a.k, b.data FROM a {window} JOIN b {window} ON a.k = b.k EMIT CHANGES"
        self._query = parse_query("pairs", text, _STREAMS)
        self._sink, self.place = CurrentSink(folder, "experiment"), folder / "pairs"
        #: What was written, in bytes and in files.
        self.written = self.files_written = 0

    def answers(self, period: int, records: Records) -> FedRound:
        return _period(self._query, period, records)

    def update(self, answers: FedRound) -> None:
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
