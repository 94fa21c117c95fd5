"""Joins of recorded streams equal Spark's own windows, joined: auctions with their bids, logs of a network by host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = "timestamp_micros(CAST(ts * 1e6 AS BIGINT)) AS at"
#: Streams as files and their columns, and joins of them.
RECORDED: dict[str, tuple[dict[str, tuple[str, list[str]]], dict[str, str]]] = {
    "auctions": (
        {
            "auction": (
                "small_streams/auction_modified_100K.csv",
                ["CAST(_c0 AS BIGINT) AS at", "CAST(_c1 AS BIGINT) AS id", "CAST(_c3 AS INT) AS reserve"],
            ),
            "bid": (
                "small_streams/bid_modified_100K.csv",
                ["CAST(_c0 AS BIGINT) AS at", "CAST(_c1 AS BIGINT) AS auction", "CAST(_c4 AS DOUBLE) AS price"],
            ),
        },
        {
            "bids": "SELECT a.id, count(*) AS n, max(b.price) AS high, avg(b.price - a.reserve) AS above"
            " FROM auction [RANGE 3 seconds SLIDE 1 second] a JOIN bid [RANGE 1 second] b ON a.id = b.auction"
            " GROUP BY a.id",
            "unsold": "SELECT count(*) AS n, sum(a.reserve) AS total FROM auction [RANGE 2 seconds SLIDE 1 second] a"
            " WHERE NOT EXISTS (SELECT 1 FROM bid [RANGE 2 seconds] b WHERE b.auction = a.id)",
        },
    ),
    "zeek": (
        {
            "dns": ("zeek_wrccdc/zeek_dns.parquet", [_SECONDS, "src", "rtt"]),
            "ssl": ("zeek_wrccdc/zeek_ssl.parquet", [_SECONDS, "src", "version"]),
            "weird": ("zeek_wrccdc/zeek_weird.parquet", [_SECONDS, "src", "name"]),
        },
        {
            "after_dns": "SELECT s.version, count(*) AS n, avg(d.rtt) AS rtt, median(d.rtt) AS middle"
            " FROM ssl [RANGE 1 minute SLIDE 1 minute] s JOIN dns [RANGE 3 minutes] d ON s.src = d.src"
            " GROUP BY s.version",
            "odd": "SELECT w.name, count(*) AS n, count(d.rtt) AS asked FROM weird [RANGE 5 minutes SLIDE 1 minute] w"
            " JOIN ssl [RANGE 1 minute] s ON w.src = s.src LEFT JOIN dns [RANGE 1 minute] d ON d.src = w.src"
            " GROUP BY w.name",
        },
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_joins_of_recorded_streams_equal_spark(spark: SparkSession, shared_data: Path, name: str) -> None:
    streams, queries = RECORDED[name]
    loom = Loom(spark)
    for stream, (file, columns) in streams.items():
        reader = spark.read.csv if file.endswith(".csv") else spark.read.parquet
        frame = reader(str(shared_data / file)).selectExpr(*columns).orderBy("at").limit(4_000).localCheckpoint()
        loom.stream(stream, frame, time="at", unit="ms" if name == "auctions" else None)
    for query, text in queries.items():
        assert loom.query(query, text).join is not None
    results = loom.run()
    for query in queries:
        found = loom.verify(query, results)
        assert found.ok, f"{queries[query]}\n{found}"
        assert found.rows > 0
