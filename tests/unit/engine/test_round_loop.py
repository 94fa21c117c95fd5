"""The round loop over several streams, without a JVM: frontiers, crashes, replays, sinks."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from support.catalogs import STREAMS, make_query
from support.micro_batches import (
    CrashError,
    Frames,
    ManualClock,
    MicroBatches,
    answers_in,
    crash_at,
)
from windloom.checkpoint.storage import FAULT_POINTS, watched
from windloom.model import Aggregate, Query, RowsWindow, TimeWindow
from windloom.model.time import TICK_MAX
from windloom.sinks.memory import MemorySink
from windloom.sinks.tables import AnswerTables

DELAYED = {name: replace(STREAMS[name], delay_ticks=delay) for name, delay in (("s", 5), ("t", 20))}


def counting(name: str, stream: str, grouping: tuple[str, ...] = ()) -> Query:
    return make_query(name, TimeWindow(10, 10), [Aggregate("count")], grouping, stream=stream)


QUERIES = {"trades": counting("trades", "s", ("k",)), "quotes": counting("quotes", "t")}


def frames(**ticks: list[int]) -> Frames:
    return {stream: [{"tick": tick, "k": "ab"[tick % 2]} for tick in found] for stream, found in ticks.items()}


def ends(folder: Path) -> dict[int, dict[str, list[int]]]:
    """By round and query, the ends of the windows that were reported."""
    return {
        round: {name: sorted({row["window_end"] for row in rows}) for name, rows in found.items()}
        for round, found in answers_in(folder).items()
    }


def test_a_silent_stream_holds_back_its_own_queries_only(tmp_path: Path) -> None:
    with MicroBatches(tmp_path, DELAYED) as life:
        life.change(QUERIES)
        first = life.round(frames(s=[1, 2, 13, 27]))
        assert first.frontiers == {"s": "1970-01-01T00:00:00.000022+00:00", "t": None}
        assert (first.watermark, first.lag) == (None, None)
        second = life.round(frames(t=[4, 31]))
        assert second.frontiers == {
            "s": "1970-01-01T00:00:00.000022+00:00",
            "t": "1970-01-01T00:00:00.000011+00:00",
        }
        assert second.watermark == second.frontiers["t"]
        assert second.lag == second.lags["t"]
        assert life.state.frontiers == {"s": 22, "t": 11}
        finished = life.finish()
        assert finished.frontiers == {"s": None, "t": None}
        assert life.state.frontiers == {"s": TICK_MAX, "t": TICK_MAX}
    assert ends(tmp_path) == {
        0: {"trades": [10, 20]},
        1: {"quotes": [10]},
        2: {"trades": [30], "quotes": [40]},
    }


def test_late_tuples_are_counted_by_the_frontier_of_their_stream(tmp_path: Path) -> None:
    with MicroBatches(tmp_path, DELAYED) as life:
        life.change(QUERIES)
        life.round(frames(s=[60], t=[60]))
        done = life.round(frames(s=[38, 52, 57], t=[8, 38, 41]))
        # 55 is closed for trades and 40 for quotes: of windows of 10, those that end at or before it.
        assert done.late == {"s": {"partly": 0, "dropped": 1}, "t": {"partly": 0, "dropped": 2}}
        assert (done.late_partly, done.late_dropped) == (0, 3)


def test_every_fault_point_is_survived_with_two_streams(tmp_path: Path) -> None:
    """One stream is silent for a while, the other comes late, and queries change; each crash happens twice."""
    rounds = [
        (QUERIES, frames(s=[1, 2, 13, 27])),
        (QUERIES, frames(s=[40, 9])),
        ({**QUERIES, "more": counting("more", "t", ("k",))}, frames(t=[4, 31, 45])),
        ({**QUERIES, "more": counting("more", "t", ("k",))}, frames(s=[61, 12], t=[18, 20, 90])),
    ]

    def live(folder: Path) -> None:
        with MicroBatches(folder, DELAYED, snapshot_rounds=1) as life:
            for queries, batch in rounds[life.loop.next_round :]:
                life.change(queries)
                life.round(batch)
            if life.loop.next_round == len(rounds):
                life.finish()

    passed: list[str] = []
    with watched(passed.append):
        live(tmp_path / "whole")
    assert set(passed) == set(FAULT_POINTS)
    for point in FAULT_POINTS:
        folder = tmp_path / point
        for nth in (1, 3):
            try:
                with crash_at(point, nth):
                    live(folder)
            except CrashError:
                pass
            live(folder)
        assert in_order(folder) == in_order(tmp_path / "whole"), point


def in_order(folder: Path) -> dict[int, dict[str, list[str]]]:
    return {
        round: {name: sorted(map(repr, rows)) for name, rows in sorted(found.items())}
        for round, found in answers_in(folder).items()
    }


def test_a_replay_asks_neither_for_tuples_nor_for_the_clock(tmp_path: Path) -> None:
    clock = ManualClock()
    with MicroBatches(tmp_path, DELAYED, idle_after=60, clock=clock) as life:
        life.change(QUERIES)
        clock.now = 60.0
        with pytest.raises(CrashError), crash_at("before sink"):
            life.round(frames(s=[1, 2, 13, 27]))
        assert life.jobs.runs == 1
    with MicroBatches(tmp_path, DELAYED, idle_after=60) as life:
        life.round(frames(t=[1]))  # not what the source brought: nobody looks
        assert life.jobs.runs == 0
        log = life.checkpoint.read_log(0)
        assert log is not None
        assert log.input.idle == {"t"}
        assert log.input.frontiers == life.state.frontiers == {"s": 22}
    assert ends(tmp_path) == {0: {"trades": [10, 20]}}


def test_a_query_added_to_a_stream_nobody_read_begins_where_that_stream_is(tmp_path: Path) -> None:
    with MicroBatches(tmp_path, DELAYED) as life:
        life.change({"trades": QUERIES["trades"]})
        alone = life.round(frames(s=[90], t=[24]))
        assert alone.frontiers.keys() == {"s"}
        life.change(QUERIES)
        done = life.round(frames(t=[26, 33, 61]))
        assert done.frontiers == {
            "s": "1970-01-01T00:00:00.000085+00:00",
            "t": "1970-01-01T00:00:00.000041+00:00",
        }
    # [20, 30) held a tuple before anybody asked.
    assert ends(tmp_path) == {1: {"quotes": [40]}}


def test_a_restart_goes_on_with_the_frontier_of_every_stream(tmp_path: Path) -> None:
    with MicroBatches(tmp_path, DELAYED, snapshot_rounds=2) as life:
        life.change(QUERIES)
        life.round(frames(s=[1, 27]))
        life.round(frames(t=[35]))
        life.round(frames(s=[44]))
        before = life.state
    with MicroBatches(tmp_path, DELAYED) as life:
        assert life.state.frontiers == before.frontiers == {"s": 39, "t": 15}
        assert life.state.seen == before.seen


def test_windows_of_rows_wait_for_the_frontier_of_their_own_stream(tmp_path: Path) -> None:
    queries: Mapping[str, Query] = {
        name: make_query(name, RowsWindow(2, 2), [Aggregate("count")], stream=name) for name in ("s", "t")
    }
    with MicroBatches(tmp_path, DELAYED) as life:
        life.change(queries)
        life.round(frames(s=[1, 2, 3, 30], t=[1, 2, 3]))
        life.round(frames(t=[29]))
        last = life.round(frames(s=[7], t=[7, 9]))
        assert last.late == {"s": {"partly": 0, "dropped": 1}, "t": {"partly": 0, "dropped": 1}}
        life.finish()
    # By positions: of s the first two are counted in round 0, of t when its frontier has come to 9.
    assert ends(tmp_path) == {0: {"s": [2]}, 1: {"t": [2]}, 3: {"s": [4], "t": [4]}}


def test_several_sinks_are_given_the_same_rows(tmp_path: Path) -> None:
    memory = MemorySink()
    with MicroBatches(tmp_path, DELAYED, sinks={"memory": memory}) as life:
        life.change(QUERIES)
        done = life.round(frames(s=[1, 2, 13, 27], t=[1, 40]))
        infos = AnswerTables(None).infos(life.loop.plan)
        rows = {name: memory.rows(name) for name in infos}
    assert sum(table.num_rows for table in rows.values() if table is not None) == done.results == 4
    assert {query for info in infos.values() for query in info.queries} == set(QUERIES)


def test_who_reads_what_is_kept_goes_on_while_rounds_are_committed(tmp_path: Path) -> None:
    with MicroBatches(tmp_path, DELAYED) as life, ThreadPoolExecutor(1) as rounds:
        life.change(QUERIES)
        life.round(frames(s=[1, 2, 13, 27], t=[2]))
        held = life.state
        with life.loop.snapshot() as moment:
            assert moment.committed.plan is life.loop.plan
            read = iter(moment._parts)
            found = [next(read)]
            # In another thread, which no lock of this one lets in.
            for batch in (frames(s=[40, 55]), frames(s=[70], t=[50])):
                rounds.submit(life.round, batch).result(timeout=120)
            found += read
        assert life.loop.next_round == 3
    assert {state.frontiers["s"] for state in found} == {held.frontiers["s"]}
    assert sum(state.cells[0].tuples.sum() for state in found if 0 in state.cells) > 0
