"""Places outside that sinks write to, and the rows that are there in the end, in one form for all of them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from support.postgres import Server
from support.receiver import Receiver
from windloom.sinks.delta import QUERIES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATABASES = count()

#: A row: its query, then its values by column, windows as ticks.
Rows = Counter[tuple[str, tuple[tuple[str, Any], ...]]]


def row(query: str, values: dict[str, Any]) -> tuple[str, tuple[tuple[str, Any], ...]]:
    return query, tuple(sorted((name, tick(value)) for name, value in values.items()))


def tick(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(value)
    if isinstance(value, str) and value.endswith("Z"):
        value = datetime.fromisoformat(value)
    return (value - _EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def in_delta(lake: Path) -> Rows:
    found: Rows = Counter()
    for table in DeltaTable(lake / QUERIES).to_pyarrow_table()["table"].unique().to_pylist():
        if (lake / table).exists():
            rows: pa.Table = DeltaTable(lake / table).to_pyarrow_table()
            found.update(row(values.pop("query"), values) for values in rows.to_pylist())
    return found


def in_parquet(out: Path) -> Rows:
    tables = (pq.read_table(file, partitioning=None) for file in out.glob("*/*.parquet"))
    return Counter(row(values.pop("query"), values) for table in tables for values in table.to_pylist())


def in_postgres(server: Server, schema: str) -> Rows:
    found: Rows = Counter()
    for (table,) in server.rows(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE 'answers%%'",
        [schema],
    ):
        for (values,) in server.rows(f'SELECT to_jsonb(t) FROM "{schema}"."{table}" t'):
            for edge in {"window_start", "window_end", "as_of", "valid_until"} & values.keys():
                if isinstance(values[edge], str):
                    values[edge] = datetime.fromisoformat(values[edge])
            found[row(values.pop("query"), values)] += 1
    return found


def in_letters(receiver: Receiver) -> Rows:
    return Counter(row(letter["query"], values) for letter in receiver.letters.values() for values in letter["rows"])


class Places:
    """Targets for one stream, and what is there in the end."""

    def __init__(self, folder: Path, server: Server, receiver: Receiver) -> None:
        self.lake, self.receiver = folder / "lake", receiver
        self.server = server.new_database(f"db_{next(_DATABASES)}")
        receiver.letters.clear()
        # It takes some letters without an answer, and answers some with a trouble that passes.
        receiver.behaviour = lambda post: {3: "after", 7: 503}.get(post % 23, 200)
        self.targets = {"delta": str(self.lake), "postgres": self.server.url, "webhook": receiver.url}

    def check(self, every: Rows, last: Rows | None = None) -> None:
        """`last` is what an upsert leaves, where that is not every row."""
        assert in_delta(self.lake) == every
        assert in_letters(self.receiver) == every
        assert in_postgres(self.server, "windloom") == (every if last is None else last)
