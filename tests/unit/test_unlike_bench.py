"""The bench of unlike queries: always the same catalogs and bids, and peers whose answers must be the same."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.__main__ import meant_by
from bench.bids import UnlikeQuery, unlike_queries, write_bids
from bench.measure import in_fresh_process, peak_resident_bytes
from bench.peers import DuckDB, check_rows, check_values, spark_sql
from bench.unlike import UNLIKE_WORKLOADS, evenly

QUERY = UnlikeQuery("q", ("channel",), ("sum(price) AS s", "last(price) AS l"), "price > 50", 60, 10, "count(*) > 5")


def test_catalogs_are_always_the_same_and_a_longer_one_goes_on_where_a_shorter_ends() -> None:
    plain, mixed = unlike_queries(100, mixed=False), unlike_queries(100, mixed=True)
    assert plain[:30] == unlike_queries(30, mixed=False)
    assert plain[-1].cql == (
        "SELECT country, min(price) AS lo, sum(price) FILTER (WHERE channel = 'web') AS w, stddev(price) AS sd"
        " FROM bids [RANGE 10 seconds SLIDE 10 seconds] WHERE country <> 'US' AND price > 50 GROUP BY country"
    )
    assert sum(query.having is not None for query in plain) == 27
    assert len({(query.groups, query.predicate) for query in plain}) == 51
    assert any("median(price) AS med" in query.aggregates for query in mixed)


def test_bids_are_always_the_same_and_a_longer_stream_begins_with_a_shorter(tmp_path: Path) -> None:
    write_bids(tmp_path / "short", events=2_000, per_file=1_000)
    write_bids(tmp_path / "long", events=3_500, per_file=1_000)
    short, long = (pq.read_table(tmp_path / name) for name in ("short", "long"))
    assert long.slice(0, 2_000).equals(short)
    assert long.num_rows == 3_500
    assert long["ts"].cast(pa.int64()).to_pylist() == [1_000 * i for i in range(3_500)]
    files = sorted((tmp_path / "long").iterdir(), key=lambda file: file.stat().st_mtime)
    assert [file.name for file in files] == ["p000.parquet", "p001.parquet", "p002.parquet", "p003.parquet"]


def test_duckdb_answers_a_query_as_its_definition_says(tmp_path: Path) -> None:
    write_bids(tmp_path, events=600, per_second=2)
    held = defaultdict(list)
    for bid in pq.read_table(tmp_path).to_pylist():
        second = bid["ts"].timestamp()
        for start in range(int(second // 10 - 5) * 10, int(second) + 1, 10):
            if start <= second < start + 60 and bid["price"] > 50:
                held[start, bid["channel"]].append(bid["price"])
    duck = DuckDB(tmp_path)
    rows = {(row["window_start"] // 10**6, row["channel"]): row for row in duck.arrow(QUERY).to_pylist()}
    duck.close()
    expected = {key: prices for key, prices in held.items() if len(prices) > 5}
    assert rows.keys() == expected.keys()
    assert {key: row["s"] for key, row in rows.items()} == pytest.approx({k: sum(v) for k, v in expected.items()})
    assert {key: row["l"] for key, row in rows.items()} == {key: prices[-1] for key, prices in expected.items()}


def test_spark_is_asked_as_its_users_ask_it() -> None:
    assert spark_sql(QUERY) == (
        "SELECT window.start AS window_start, channel, sum(price) AS s, max_by(price, ts) AS l FROM bids"
        " WHERE price > 50 GROUP BY window(ts, '60 seconds', '10 seconds'), channel HAVING count(*) > 5"
    )


def answers(starts: list[int], totals: list[float], lasts: list[float]) -> pa.Table:
    return pa.table({"window_start": starts, "channel": ["web"] * len(starts), "s": totals, "l": lasts})


def test_a_peer_with_other_rows_or_values_stops_the_bench() -> None:
    ours = answers([0, 10], [1.0, 2.0], [1.0, None])
    check_values(QUERY, ours, answers([10, 0], [2.0, 1.0 + 1e-12], [None, 1.0]))
    with pytest.raises(AssertionError, match="the values of 's' differ"):
        check_values(QUERY, ours, answers([0, 10], [1.0, 2.1], [1.0, None]))
    with pytest.raises(AssertionError, match="the windows or groups differ"):
        check_values(QUERY, ours, answers([0, 20], [1.0, 2.0], [1.0, None]))
    with pytest.raises(AssertionError, match="2 rows, not 3"):
        check_rows([QUERY], {"q": 2}, {"q": 3})


def test_the_first_word_of_names_means_all_of_them() -> None:
    assert meant_by("unlike", UNLIKE_WORKLOADS) == list(UNLIKE_WORKLOADS)
    assert meant_by("unlike_8m", UNLIKE_WORKLOADS) == ["unlike_8m"]
    assert meant_by("unlik", UNLIKE_WORKLOADS) == []


def test_a_sample_lies_evenly_and_has_no_more_than_there_are() -> None:
    queries = unlike_queries(10, mixed=False)
    assert [query.name for query in evenly(queries, 2)] == ["q2", "q7"]
    assert evenly(queries[:3], 10) == queries[:3]


def test_a_fresh_process_has_its_own_peak_of_memory() -> None:
    room = bytearray(400 << 20)
    assert peak_resident_bytes() > len(room) > in_fresh_process(peak_resident_bytes)
