"""Row queries on Spark: batch runs and rounds equal the definition, and Spark's own windows on recorded data."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.micro_batches import MicroBatches, answers_in
from support.row_rounds import AGGREGATED, QUERIES, STREAMS, TEXTS, TYPES, RowRounds
from windloom import Loom
from windloom.durable.tuples import TupleFolder
from windloom.spark.intake.driver_jobs import SparkDriverJobs
from windloom.spark.intake.take import TakenIn
from windloom.spark.rows.session import JobSessions
from windloom.spark.rows.stored import StoredTuples
from windloom.testing import answer_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
#: One of every way to make rows and to report them.
IN_ROUNDS = (
    "sliding", "entering", "leaving", "with_gaps", "new_values", "joined", "pairs", "gone_pairs", "near_all", "circle",
    "left", "unmatched", "nowhere", "except_all", "intersect", "unequal_count", "near_count",
)  # fmt: skip


class FrameJobs(SparkDriverJobs):
    """Micro-batches are frames by stream already."""

    def take_in(self, plan: Any, frames: Any, batch: Any, state: Any, keeper: Any = None) -> TakenIn:
        return SparkDriverJobs.take_in(self, plan, frames, None, state, keeper)


def random_rows(rng: random.Random, count: int, now: int, spread: int) -> list[Row]:
    return [
        {
            "tick": now + rng.randrange(-spread, 6),
            "k": rng.choice(["a", "b", "c", None]),
            "i": rng.choice([None, *range(5)]),
        }
        for _ in range(count)
    ]


def frame_of(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    """A frame whose size Spark knows, so that few tuples are known to be few."""
    texts = ([f"{row['tick']}L", *("NULL" if row[name] is None else repr(row[name]) for name in "ki")] for row in rows)
    values = ", ".join(f"({', '.join(one)})" for one in texts)
    found = spark.sql(f"SELECT * FROM VALUES {values or '(0L, NULL, NULL)'} AS t(tick, k, i)")
    found = found.selectExpr("tick", "CAST(k AS STRING) AS k", "CAST(i AS INT) AS i")
    return found if rows else found.limit(0)


def in_order(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def with_ticks(table: pa.Table) -> list[Row]:
    for place, edge in enumerate(("window_start", "window_end")):
        table = table.set_column(place, edge, table[edge].cast(pa.int64()))
    return [dict(row) for row in table.to_pylist()]


def test_a_batch_run_gives_the_rows_of_the_definition_and_of_spark(spark: SparkSession) -> None:
    rng = random.Random(5)
    rows = {name: random_rows(rng, 14, 20, 25) for name in STREAMS}
    loom = Loom(spark)
    for name, own in rows.items():
        loom.stream(name, frame_of(spark, own), time="tick", unit="us")
    for name, text in {**TEXTS, **AGGREGATED}.items():
        loom.query(name, text)
    results = loom.run()
    for name, query in loom.queries.items():
        assert in_order(with_ticks(results.arrow(name))) == in_order(answer_rows(query, rows)), query.text
    for name in ("gone_pairs", "near_all", "entering_left", "except_all", "circle_count"):
        found = loom.verify(name, results)
        assert found.ok, f"{loom.queries[name].text}\n{found}"


def test_strands_may_be_joined_in_any_order(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(8)
    rows = {name: random_rows(rng, 12, 20, 20) for name in STREAMS}
    names = ("near_all", "circle", "circle_count")
    loom = Loom(spark)
    for name, own in rows.items():
        loom.stream(name, frame_of(spark, own), time="tick", unit="us")
    for order in ((2, 0, 1), (1, 2, 0)):
        monkeypatch.setattr("windloom.optimizer.rows.plan.join_order", lambda *_, order=order: order)
        # Every order is a query of its own: plans of the same queries are made once.
        for name in names:
            loom.query(f"{name}_{order[0]}", {**TEXTS, **AGGREGATED}[name])
        results = loom.run()
        for planned in loom.plan().rows:
            assert planned.orders == (order,)
            wanted = answer_rows(planned.query, rows)
            assert in_order(with_ticks(results.arrow(planned.name))) == in_order(wanted), planned.query.text


def test_rounds_report_what_the_definition_says(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(11)
    rounds = [{name: random_rows(rng, 7, 12 * number, 16) for name in STREAMS} for number in range(3)]
    asked = RowRounds(rounds, STREAMS)

    def jobs(folder: TupleFolder) -> SparkDriverJobs:
        return FrameJobs(spark, STREAMS, False, StoredTuples(folder, STREAMS, JobSessions(spark)))

    with MicroBatches(tmp_path, STREAMS, types=TYPES, jobs=jobs) as life:
        life.change({name: QUERIES[name] for name in IN_ROUNDS})
        for batch in rounds:
            life.round({name: frame_of(spark, own) for name, own in batch.items()})
        life.finish()
    found = answers_in(tmp_path)
    for name in IN_ROUNDS:
        wanted = asked.expected(QUERIES[name])
        for number in range(len(rounds) + 1):
            shown = in_order(found.get(number, {}).get(name, []))
            assert shown == in_order(wanted[number]), f"round {number}: {QUERIES[name].text}"


#: Recorded streams, as SQL over files, and row queries over them.
RECORDED: dict[str, tuple[dict[str, tuple[str, str]], dict[str, str]]] = {
    "zeek": (
        {
            "dns": (
                "zeek_wrccdc/zeek_dns.parquet",
                "timestamp_micros(CAST(ts * 1e6 AS BIGINT)) AS at, src, query, rtt",
            ),
            "ssl": (
                "zeek_wrccdc/zeek_ssl.parquet",
                "timestamp_micros(CAST(ts * 1e6 AS BIGINT)) AS at, src, server_name",
            ),
        },
        {
            "asked_then_met": "SELECT d.src, d.query AS name, d.rtt FROM dns d JOIN ssl s WITHIN 2 seconds"
            " ON d.src = s.src AND d.query = s.server_name",
            "never_met": "SELECT src FROM dns [TUMBLE 2 minutes] EXCEPT SELECT src FROM ssl [TUMBLE 2 minutes]",
            "slow": "SELECT ISTREAM src, query AS name FROM dns [RANGE 5 minutes SLIDE 1 minute] WHERE rtt > 1",
        },
    ),
    "lbl": (
        {
            "tcp": (
                "lbl_pkt4/lbl_pkt4_tcp_synfin.parquet",
                "timestamp_micros(CAST(ts * 1e6 AS BIGINT)) AS at, src, dst, flags",
            ),
            "udp": ("lbl_pkt4/lbl_pkt4_udp.parquet", "timestamp_micros(CAST(ts * 1e6 AS BIGINT)) AS at, src, dst"),
        },
        {
            "both_ways": "SELECT ISTREAM t.src, t.dst, t.flags FROM tcp [RANGE 1 minute SLIDE 20 seconds] t"
            " JOIN udp [RANGE 20 seconds] u ON t.src = u.dst AND t.dst = u.src",
            "silent": "SELECT t.src FROM tcp [TUMBLE 5 minutes] t LEFT ANTI JOIN udp [TUMBLE 5 minutes] u"
            " ON t.src = u.src",
        },
    ),
    "auctions": (
        {
            "auction": (
                "small_streams/auction_modified_100K.csv",
                "CAST(_c0 AS BIGINT) AS at, CAST(_c1 AS BIGINT) AS id, CAST(_c3 AS INT) AS reserve",
            ),
            "bid": (
                "small_streams/bid_modified_100K.csv",
                "CAST(_c0 AS BIGINT) AS at, CAST(_c1 AS BIGINT) AS auction, CAST(_c4 AS DOUBLE) AS price",
            ),
        },
        {
            "won": "SELECT a.id, b.price FROM auction a JOIN bid b WITHIN 500 ms"
            " ON a.id = b.auction AND b.price > a.reserve",
            "sums": "SELECT count(*) AS n, max(b.price) AS high FROM auction [RANGE 2 seconds SLIDE 1 second] a"
            " JOIN bid [RANGE 2 seconds] b ON b.price > a.reserve AND a.id <= b.auction AND a.id + 1 >= b.auction",
        },
    ),
}


def recorded_frames(spark: SparkSession, data: Path, name: str, rows: int) -> dict[str, DataFrame]:
    found = {}
    for stream, (file, columns) in RECORDED[name][0].items():
        reader = spark.read.csv if file.endswith(".csv") else spark.read.parquet
        frame = reader(str(data / file)).selectExpr(*columns.split(", "))
        found[stream] = frame.orderBy("at").limit(rows).localCheckpoint()
    return found


@pytest.mark.parametrize("name", RECORDED)
def test_rows_of_recorded_streams_are_those_of_spark(spark: SparkSession, shared_data: Path, name: str) -> None:
    loom = Loom(spark)
    for stream, frame in recorded_frames(spark, shared_data, name, 12_000).items():
        loom.stream(stream, frame, time="at", unit="ms" if name == "auctions" else None, rate=10)
    for query, text in RECORDED[name][1].items():
        loom.query(query, text)
    results = loom.run()
    for query in loom.queries:
        found = loom.verify(query, results)
        assert found.ok, f"{loom.queries[query].text}\n{found}"
        assert found.rows > 0
