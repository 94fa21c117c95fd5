"""Sinks that are down: the round waits and says so, goes on where it was, or ends the stream with nothing lost."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.catalogs import make_query
from support.durable import STREAMS
from support.micro_batches import Frames, MicroBatches, answers_in
from windloom.errors import SinkDownError, WindloomError
from windloom.model import Aggregate, TimeWindow
from windloom.sinks import delivery
from windloom.sinks.delivery import RoundStoppedError
from windloom.sinks.memory import MemorySink
from windloom.sinks.sink import RoundAnswers

QUERIES = {"q": make_query("q", TimeWindow(10, 5), [Aggregate("count")], ("k",))}


def frames(*ticks: int) -> Frames:
    return {"s": [{"tick": tick, "k": "ab"[tick % 2], "i": tick} for tick in ticks]}


class Flaky(MemorySink):
    """Down for the first `failures` writes of a round; half of them have read all rows by then."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures, self.tried = failures, 0
        self.is_down = threading.Event()

    def write(self, round: int, answers: RoundAnswers) -> Mapping[str, float] | None:  # type: ignore[override]
        if self.tried < self.failures:
            self.tried += 1
            if self.tried % 2:
                super().write(round, answers)
            self.is_down.set()
            raise SinkDownError("nobody answers at port 5432", "connection refused", "start the server")
        self.tried = 0
        super().write(round, answers)
        return {"letters": 2}


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_FIRST_PAUSE", 0.001)


def count(sink: MemorySink, life: MicroBatches) -> int:
    assert life.loop.plan is not None
    tables = (sink.rows(name) for name in life.loop._tables.infos(life.loop.plan))
    return sum(table.num_rows for table in tables if table is not None)


def test_a_round_waits_for_a_sink_that_is_down_and_gives_it_the_same_rows(tmp_path: Path) -> None:
    flaky = Flaky(3)
    with MicroBatches(tmp_path, STREAMS, sinks={"flaky": flaky}) as life:
        life.change(QUERIES)
        done = [life.round(frames(1, 2, 12, 23, 30)), life.round(frames(41, 42, 66))]
        assert count(flaky, life) == sum(progress.results for progress in done) > 0
        assert [None if wait is None else (wait.sink, wait.round, wait.attempts) for wait in life.waits] == [
            *(("flaky", number, attempt) if attempt else None for number in (0, 1) for attempt in (1, 2, 3, 0))
        ]
        assert "round 0 waits for the sink 'flaky' since " in str(life.waits[0])
        assert "tried once: nobody answers at port 5432: connection refused (the stream stops after 1 minute)" in str(
            life.waits[0]
        )
        assert life.loop.delivery.waiting is None
    for progress in done:
        assert progress.sinks["flaky"]["letters"] == 2
        assert progress.sinks["flaky"]["waited"] > 0
        assert "waited" not in progress.sinks["parquet"]
        assert progress.seconds["waiting"] > 0


def test_a_sink_alone_is_given_the_same_rows_too(tmp_path: Path) -> None:
    """What is not shared among sinks is made anew."""
    flaky = Flaky(2)
    with MicroBatches(tmp_path, STREAMS) as life:
        life.loop._sinks = {"flaky": flaky}
        life.loop.delivery._sinks = {"flaky": flaky}
        life.change(QUERIES)
        done = life.round(frames(1, 2, 12, 23, 30))
        assert count(flaky, life) == done.results > 0


def test_when_patience_is_over_the_stream_fails_and_the_next_start_loses_nothing(tmp_path: Path) -> None:
    with MicroBatches(tmp_path, STREAMS, sinks={"flaky": Flaky(10**6)}, sink_patience=0.05) as life:
        life.change(QUERIES)
        with pytest.raises(WindloomError) as caught:
            life.round(frames(1, 2, 12, 23, 30))
        assert life.checkpoint.last_committed == -1
    assert caught.value.message == "the sink 'flaky' has been down for 0.05 seconds"
    assert caught.value.detail == "nobody answers at port 5432: connection refused"
    assert caught.value.hint == "start the server"
    memory = MemorySink()
    with MicroBatches(tmp_path, STREAMS, sinks={"memory": memory}) as life:
        done = life.round(frames())  # from its log
        assert life.jobs.runs == 0
        assert done.round == 0
        shown = sum(len(rows) for rows in answers_in(tmp_path)[0].values())
        assert count(memory, life) == done.results == shown > 0


def test_without_patience_it_fails_at_once(tmp_path: Path) -> None:
    with MicroBatches(tmp_path, STREAMS, sinks={"flaky": Flaky(1)}, sink_patience=0) as life:
        life.change(QUERIES)
        with pytest.raises(WindloomError, match="the sink 'flaky' has been down"):
            life.round(frames(1, 2, 12, 23, 30))
        assert life.waits == []


def test_a_stream_that_waits_stops_when_it_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_FIRST_PAUSE", 600.0)
    flaky = Flaky(1)
    with (
        MicroBatches(tmp_path, STREAMS, sinks={"flaky": flaky}, sink_patience=1e6) as life,
        ThreadPoolExecutor(1) as pool,
    ):
        life.change(QUERIES)
        round = pool.submit(life.round, frames(1, 2, 12, 23, 30))
        assert flaky.is_down.wait(60)
        with life.loop.lock:  # which a round that waits does not hold
            assert life.loop.delivery.waiting is not None
            life.loop.delivery.stop()
        with pytest.raises(RoundStoppedError):
            round.result(60)
        assert life.loop.delivery.waiting is None
        assert life.checkpoint.last_committed == -1
    with MicroBatches(tmp_path, STREAMS, sinks={"flaky": flaky}) as life:
        assert life.round(frames()).results == count(flaky, life) > 0
