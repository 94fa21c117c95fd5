"""Rows of windows in sinks that others read, under crashes: equal rows are there as often as they were reported."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.answers import Given, place
from support.micro_batches import CrashError, MicroBatches, crash_after
from support.places import Places, Rows, in_parquet, in_postgres, row
from support.postgres import Server
from support.receiver import Receiver
from support.row_rounds import QUERIES, STREAMS, TYPES, RowRounds, row_rounds
from windloom.checkpoint.storage import LocalStorage
from windloom.sinks.live import LiveSink
from windloom.sinks.postgres import PostgresSink
from windloom.sinks.registry import choose_sinks, sink
from windloom.sinks.sink import TableInfo

NAMES = ("sliding", "entering", "distinct", "pairs", "near")


def run(folder: Path, asked: RowRounds, places: Places) -> None:
    targets = {**places.targets, "parquet": str(folder / "files")}
    openers = choose_sinks([sink(*target) for target in targets.items()], None, folder)
    with MicroBatches(folder, STREAMS, types=TYPES, openers=openers) as life:
        for batch in asked.rounds[life.loop.next_round :]:
            life.change({name: QUERIES[name] for name in NAMES})
            life.round(batch)
        if life.loop.next_round == len(asked.rounds):
            life.finish()


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=row_rounds(), crashes=st.lists(st.integers(0, 120), min_size=1, max_size=3))
def test_any_crashes_leave_every_row_as_often_as_it_was_reported(
    postgres: Server, receiver: Receiver, asked: RowRounds, crashes: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        places = Places(Path(name), postgres, receiver)
        with patch("windloom.sinks.delivery._FIRST_PAUSE", 0.001):
            for crash in crashes:
                try:
                    with crash_after(crash):
                        run(Path(name), asked, places)
                except CrashError:
                    pass
            run(Path(name), asked, places)
        every: Rows = Counter()
        for query in NAMES:
            every.update(row(query, values) for own in asked.expected(QUERIES[query]).values() for values in own)
        places.check(every)
        assert in_parquet(Path(name) / "files") == every


COLUMNS = {"query": "string", "window_start": "bigint", "window_end": "bigint", "x": "bigint"}
INFO = TableInfo(COLUMNS, {"rows": (), "pairs": ()}, frozenset({"rows", "pairs"}), frozenset({"pairs"}))


def given_rows(query: str, *rows: tuple[int, int]) -> Given:
    """Answers of one query: ends of windows, and values."""
    ends, values = ([row_[place] for row_ in rows] for place in (0, 1))
    starts = [end - 10 for end in ends]
    table = pa.table({"query": [query] * len(rows), "window_start": starts, "window_end": ends, "x": values})
    return Given([("t", table)], {"t": INFO})


def test_the_live_sink_holds_all_rows_of_the_last_window_once(tmp_path: Path) -> None:
    live = LiveSink(LocalStorage(tmp_path))
    first = given_rows("rows", (5, 1), (10, 2), (10, 2))
    live.write(0, first)
    live.write(0, first)  # after a crash
    assert LiveSink(LocalStorage(tmp_path)).rows("t")["x"].to_pylist() == [2, 2]
    live.write(1, given_rows("pairs", (9, 7)))
    assert sorted(live.rows("t")["x"].to_pylist()) == [2, 2, 7]
    live.write(2, given_rows("rows", (15, 3)))
    assert sorted(live.rows("t")["x"].to_pylist()) == [3, 7]


def test_a_window_of_rows_that_is_reported_once_more_replaces_its_rows_in_postgres(
    postgres: Server, tmp_path: Path
) -> None:
    server = postgres.new_database("row_windows")
    sink = PostgresSink.open(place(tmp_path), url=server.url)
    for round, again in enumerate([(10, 1), (10, 2)]):  # the query was replaced, and answers from what is kept
        sink.write(round, given_rows("rows", again, again, (20 + round, 5)))
        sink.write(round, given_rows("rows", again, again, (20 + round, 5)))
    for round in (2, 3):  # pairs whose tuples have the same times may come in several rounds
        sink.write(round, given_rows("pairs", (10, 7)))
    sink.close()
    found = Counter((query, dict(values)["x"]) for query, values in in_postgres(server, "windloom").elements())
    assert found == {("rows", 2): 2, ("rows", 5): 2, ("pairs", 7): 2}
