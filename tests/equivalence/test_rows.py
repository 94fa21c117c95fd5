"""Row queries on Spark: batch runs and rounds equal the definition, and Spark's own windows on recorded data."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.join_looms import registered
from support.micro_batches import MicroBatches, answers_in
from support.row_rounds import AGGREGATED, QUERIES, STREAMS, TEXTS, TYPES, RowRounds
from windloom import Loom
from windloom.checkpoint.tuple_folder import TupleFolder
from windloom.errors import WindloomWarning
from windloom.model import DataType, Query, Stream
from windloom.spark.jobs import SparkDriverJobs, SparkRowJobs
from windloom.spark.rows.job import JobSessions
from windloom.spark.rows.stored import StoredTuples
from windloom.spark.scan import RoundScans
from windloom.testing import answer_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: One of every way to make rows and to report them.
IN_ROUNDS = (
    "sliding", "entering", "leaving", "with_gaps", "new_values", "joined", "pairs", "gone_pairs", "near_all", "circle",
    "left", "unmatched", "nowhere", "except_all", "intersect", "unequal_count", "near_count",
)  # fmt: skip


class FrameJobs:
    """Micro-batches are frames by stream already, and rows are made from the tuples that are kept."""

    def __init__(self, spark: SparkSession, streams: Mapping[str, Stream], folder: TupleFolder) -> None:
        self._tuples = SparkDriverJobs(spark, streams, False)
        self._rows = SparkRowJobs(StoredTuples(folder, streams, JobSessions(spark)))
        self.take_rows = self._tuples.take_rows
        self.row_summaries, self.row_blocks = self._rows.row_summaries, self._rows.row_blocks

    def take_in(self, plan: Any, frames: Any, batch: Any, state: Any, keeper: Any = None) -> RoundScans:
        return self._tuples.take_in(plan, frames, None, state, keeper)


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
    values = ", ".join(f"({', '.join(text)})" for text in texts)
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
        monkeypatch.setattr("windloom.optimizer.rows.join_order", lambda *_, order=order: order)
        # Every order is a query of its own: plans of the same queries are made once.
        for name in names:
            loom.query(f"{name}_{order[0]}", {**TEXTS, **AGGREGATED}[name])
        results = loom.run()
        for planned in loom.plan().rows:
            assert planned.orders == (order,)
            wanted = answer_rows(planned.query, rows)
            assert in_order(with_ticks(results.arrow(planned.name))) == in_order(wanted), planned.query.text


def test_a_batch_run_on_executors_gives_the_rows_of_the_definition(spark: SparkSession) -> None:
    rng = random.Random(6)
    rows = {name: random_rows(rng, 14, 20, 25) for name in ("s", "t")}
    loom = Loom(spark)
    for name, own in rows.items():
        loom.stream(name, frame_of(spark, own), time="tick", unit="us")
    for name in ("near", "except_all", "unequal_count"):
        loom.query(name, {**TEXTS, **AGGREGATED}[name])
    with pytest.warns(WindloomWarning, match="query 'near' and 2 other queries are answered in process: its answers"):
        results = loom.run(placement="executors", buckets=2)
    counts = 0
    for name, query in loom.queries.items():
        found = with_ticks(results.arrow(name))
        assert in_order(found) == in_order(answer_rows(query, rows)), query.text
        counts += len(found)
    assert results.stats.results == counts > 0


def test_rounds_report_what_the_definition_says(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(11)
    rounds = [{name: random_rows(rng, 7, 12 * number, 16) for name in STREAMS} for number in range(3)]
    asked = RowRounds(rounds, STREAMS)

    jobs = partial(FrameJobs, spark, STREAMS)
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
            "slow": "SELECT ISTREAM src, query AS name FROM dns [RANGE 5 minutes SLIDE 1 minute] WHERE rtt > 0.1",
            "more_asked": "SELECT src FROM dns [RANGE 2 minutes SLIDE 1 minute] EXCEPT ALL"
            " SELECT src FROM ssl [RANGE 2 minutes]",
            "both": "SELECT src FROM dns [TUMBLE 1 minute] INTERSECT SELECT src FROM ssl [TUMBLE 1 minute]",
            "slowest": "SELECT src, rtt FROM dns [TUMBLE 1 minute] d WHERE NOT EXISTS (SELECT 1 FROM dns"
            " [TUMBLE 1 minute] o WHERE o.src = d.src AND o.rtt > d.rtt)",
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


#: The same queries as plain SQL, over tuples with `c_<query>`: up to where windows of a query were closed when the
#: tuple came. A tuple counts in windows that were open then, and a pair if some window of both was.
_ENDS = "explode(sequence(t - pmod(t, {s}) + {s}, t - pmod(t, {s}) + {r}, {s})) AS e"
PLAIN = {
    "asked_then_met": "SELECT least(d.t, s.t), greatest(d.t, s.t), d.src, d.query, d.rtt FROM dns d JOIN ssl s"
    " ON d.src = s.src AND d.query = s.server_name AND abs(d.t - s.t) < 2000000"
    " AND greatest(d.t, s.t, d.c_asked_then_met, s.c_asked_then_met) < least(d.t, s.t) + 2000000",
    "never_met": "SELECT e - 120000000L, e, src FROM (SELECT src, c_never_met AS c, {120,120} FROM dns) WHERE e > c"
    " EXCEPT SELECT e - 120000000L, e, src FROM (SELECT src, c_never_met AS c, {120,120} FROM ssl) WHERE e > c",
    "more_asked": "SELECT e - 120000000L, e, src FROM (SELECT src, c_more_asked AS c, {120,60} FROM dns) WHERE e > c"
    " EXCEPT ALL SELECT e - 120000000L, e, src FROM (SELECT src, c_more_asked AS c, {120,60} FROM ssl) WHERE e > c",
    "both": "SELECT e - 60000000L, e, src FROM (SELECT src, c_both AS c, {60,60} FROM dns) WHERE e > c"
    " INTERSECT SELECT e - 60000000L, e, src FROM (SELECT src, c_both AS c, {60,60} FROM ssl) WHERE e > c",
    "slowest": "SELECT d.e - 60000000L, d.e, d.src, d.rtt FROM (SELECT *, {60,60} FROM dns) d WHERE d.e > d.c_slowest"
    " AND NOT EXISTS (SELECT 1 FROM (SELECT *, {60,60} FROM dns) o WHERE o.e = d.e AND o.src = d.src AND o.rtt > d.rtt"
    " AND o.e > o.c_slowest)",
    "slow": "SELECT min(e) - 300000000L, min(e) AS e, first(src), first(query) FROM"
    " (SELECT n, src, query, c_slow AS c, {300,60} FROM dns WHERE rtt > 0.1) WHERE e > c GROUP BY n",
    "both_ways": "SELECT min(t.e) - 60000000L, min(t.e) AS e, first(t.src), first(t.dst), first(flags) FROM"
    " (SELECT *, {60,20} FROM tcp) t JOIN (SELECT *, {20,20} FROM udp) u ON t.e = u.e AND t.src = u.dst"
    " AND t.dst = u.src WHERE t.e > greatest(t.c_both_ways, u.c_both_ways) GROUP BY t.n, u.n",
    "silent": "SELECT t.e - 300000000L, t.e, t.src FROM (SELECT *, {300,300} FROM tcp) t LEFT ANTI JOIN"
    " (SELECT src, e FROM (SELECT *, {300,300} FROM udp) WHERE e > c_silent) u ON t.src = u.src AND t.e = u.e"
    " WHERE t.e > t.c_silent",
    "won": "SELECT least(a.t, b.t), greatest(a.t, b.t), a.id, b.price FROM auction a JOIN bid b ON a.id = b.auction"
    " AND b.price > a.reserve AND abs(a.t - b.t) < 500000"
    " AND greatest(a.t, b.t, a.c_won, b.c_won) < least(a.t, b.t) + 500000",
    "sums": "SELECT a.e - 2000000L, a.e, count(*), max(b.price) FROM (SELECT *, {2,1} FROM auction) a JOIN"
    " (SELECT *, {2,1} FROM bid) b ON a.e = b.e AND b.price > a.reserve AND a.id <= b.auction AND a.id + 1 >= b.auction"
    " WHERE a.e > greatest(a.c_sums, b.c_sums) GROUP BY a.e",
}
ROUNDS, SLICE = 4, 1_500
#: Seconds by which streams may be in disorder; some tuples come later than that.
DELAYS = {"zeek": 3, "lbl": 20, "auctions": 1}


def plain_sql(text: str) -> str:
    """`{r,s}` stands for the ends of the windows of range r and slide s seconds that a tuple lies in."""

    def ends(found: re.Match[str]) -> str:
        r, s = (f"{int(length)}000000L" for length in found.groups())
        return _ENDS.format(r=r, s=s)

    return re.sub(r"\{(\d+),(\d+)\}", ends, text)


def arrivals(rng: random.Random, rows: pa.Table, delay: int) -> list[pa.Table]:
    """A stream cut at random, in disorder within its delay; a few tuples come later."""
    ticks = rows["t"].to_pylist()
    come = [t + rng.randrange(delay) + (8 * delay if rng.random() < 0.02 else 0) for t in ticks]
    rows = rows.take(pa.array(sorted(range(len(come)), key=come.__getitem__)))
    cuts = [0, *sorted(rng.sample(range(1, len(rows)), ROUNDS - 1)), len(rows)]
    return [rows.slice(begin, end - begin) for begin, end in pairwise(cuts)]


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_streams_cut_at_random_with_late_tuples_give_the_rows_of_plain_sql(
    spark: SparkSession, shared_data: Path, tmp_path: Path, name: str
) -> None:
    rng = random.Random(name)
    delay = DELAYS[name] * 1_000_000
    texts = RECORDED[name][1]
    streams, batches = dict[str, Stream](), dict[str, list[pa.Table]]()
    tick = "at * 1000" if name == "auctions" else "unix_micros(at)"
    for stream, frame in recorded_frames(spark, shared_data, name, SLICE).items():
        columns = {column: DataType.parse(kind) for column, kind in frame.dtypes}
        streams[stream] = Stream(stream, columns, "at", delay, time_unit="ms" if name == "auctions" else None)
        batches[stream] = arrivals(rng, frame.selectExpr("*", f"{tick} AS t").toArrow(), delay)
    registry = registered(texts, streams)

    jobs = partial(FrameJobs, spark, streams)
    with MicroBatches(tmp_path, streams, types=registry.types(), jobs=jobs) as life:
        life.change(registry.queries)
        for number in range(ROUNDS):
            came = {stream: spark.createDataFrame(own[number].drop_columns("t")) for stream, own in batches.items()}
            done = life.round(came)
        life.finish()
        late = sum(progress.late_partly + progress.late_dropped for progress in life.done)
    assert done.round == ROUNDS - 1
    assert late > 0
    register_tuples(spark, registry.queries, batches, delay)
    found: dict[str, list[str]] = {}
    for own in answers_in(tmp_path).values():
        for query, rows in own.items():
            found.setdefault(query, []).extend(repr(tuple(ticked(value) for value in row.values())) for row in rows)
    for query in texts:
        wanted = [repr(tuple(row)) for row in spark.sql(plain_sql(PLAIN[query])).collect()]
        assert wanted, query
        assert Counter(found.get(query, [])) == Counter(wanted), query


def register_tuples(
    spark: SparkSession, queries: Mapping[str, Query], batches: Mapping[str, list[pa.Table]], delay: int
) -> None:
    """Views with all tuples of a stream: a number `n`, the tick `t`, and `c_<query>` for every query that reads it."""
    frontiers = {stream: [-1 << 60] for stream in batches}
    for stream, own in batches.items():
        for batch in own:
            frontiers[stream].append(max(frontiers[stream][-1], max(batch["t"].to_pylist()) - delay))
    for stream, own in batches.items():
        tables = []
        for number, batch in enumerate(own):
            for query in queries.values():
                closed = min(frontiers[other][number] for other in query.streams)
                batch = batch.append_column(f"c_{query.name}", pa.array([closed] * len(batch)))
            tables.append(batch)
        table = pa.concat_tables(tables)
        frame = spark.createDataFrame(table.append_column("n", pa.array(range(len(table)))))
        frame.createOrReplaceTempView(stream)


def ticked(value: Any) -> Any:
    return (value - _EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value
