"""A handful of trades, as rows, as a catalog and as files: small enough to read, with every answer known."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from support.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM = "CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE, volume BIGINT) TIME ts DELAY 10 seconds;\n"
SCHEMA = "ts timestamp, symbol string, price double, volume bigint"
COLUMNS = ("ts", "symbol", "price", "volume")
WINDOW = "FROM trades [RANGE 30 seconds SLIDE 10 seconds]"

_MIDNIGHT = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)

#: Every seven seconds a trade, of A and of B in turn; one price is not known.
ROWS: list[tuple[Any, ...]] = [
    (_MIDNIGHT + datetime.timedelta(seconds=7 * i), "AB"[i % 2], None if i == 5 else 10.0 + i, i + 1) for i in range(30)
]


def trades(spark: SparkSession, rows: list[tuple[Any, ...]] = ROWS) -> DataFrame:
    return frame_of(spark, rows, SCHEMA)


def csv_text(rows: list[tuple[Any, ...]] = ROWS, header: bool = True) -> str:
    lines = [",".join(COLUMNS)] if header else []
    for ts, *rest in rows:
        lines.append(",".join([f"{ts:%Y-%m-%d %H:%M:%S}", *("" if value is None else str(value) for value in rest)]))
    return "\n".join(lines) + "\n"


def catalog(**queries: str) -> str:
    """A catalog of the trades and these queries; `…` stands for the window."""
    made = [f"CREATE QUERY {name} AS\n  {text.replace('…', WINDOW)};\n" for name, text in queries.items()]
    return STREAM + "".join(made)


@contextmanager
def settings(spark: SparkSession, **wanted: str) -> Iterator[None]:
    """Settings of the session for a while; `__` stands for the dots in their names."""
    names = {name: name.replace("__", ".") for name in wanted}
    before = {name: str(spark.conf.get(name)) for name in names.values()}
    try:
        for name, value in wanted.items():
            spark.conf.set(names[name], value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
