"""A batch run is a loop of one round: placement, loop and sinks of a stream, and nothing is written down."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.catalogs import STREAMS, TYPES, make_query
from support.micro_batches import Frames, ManualClock, MicroBatches, RowJobs, answers_in
from windloom.checkpoint.journal import NoJournal
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.recovery import RecoveredState
from windloom.engine.batch import without_full_collections
from windloom.engine.driver import DriverPlacement
from windloom.engine.loop import CompletedRound, Listeners, RoundLoop
from windloom.engine.round import RoundTuples
from windloom.engine.row_queries import RowQueries
from windloom.errors import WindloomError
from windloom.model import Aggregate, Expression, LandmarkWindow, RowsWindow, TimeWindow
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.sinks.memory import HeldAnswers, MemorySink
from windloom.sinks.parquet import ParquetStore
from windloom.sinks.round_rows import Outcome
from windloom.sinks.sink import Sink
from windloom.sinks.tables import AnswerTables
from windloom.state.state import State
from windloom.weave.round_input import Watermarks

COUNT, SUM = Aggregate("count"), Aggregate("sum", Expression.of_column("i"))
QUERIES = {
    "sliding": make_query("sliding", TimeWindow(10, 4), [COUNT, SUM], ("k",)),
    "landmark": make_query("landmark", LandmarkWindow(6), [SUM], ("k",)),
    "rows": make_query("rows", RowsWindow(3, 2), [COUNT]),
    "other": make_query("other", TimeWindow(8, 8), [COUNT], stream="t"),
}
FRAMES: Frames = {
    "s": [{"tick": tick, "k": "ab"[tick % 2], "i": tick} for tick in (1, 2, 5, 13, 14, 27)],
    "t": [{"tick": tick, "k": "a", "i": 1} for tick in (3, 40)],
}


@pytest.fixture
def plan() -> Plan:
    return make_plan(STREAMS, QUERIES.values(), TYPES, PlanOptions(), PlanningFacts())


def run_whole(plan: Plan, sinks: list[Sink], listeners: Listeners | None = None) -> CompletedRound:
    journal = NoJournal(PlanRecord(0, 0, dict.fromkeys(QUERIES, "")))
    jobs = RowJobs()
    placement = DriverPlacement(jobs, journal, Watermarks(STREAMS, ManualClock(), None), RowQueries(jobs))
    recovered = RecoveredState(State(), None, None, 0)
    given = {str(number): sink for number, sink in enumerate(sinks)}
    loop = RoundLoop(lambda _: plan, journal, recovered, placement, given, AnswerTables(None), listeners=listeners)
    return loop.run(RoundTuples(FRAMES, ends=True))


def in_order(table: pa.Table | None) -> list[str]:
    rows = [] if table is None else table.to_pylist()
    ticks = [{name: getattr(value, "value", value) for name, value in row.items()} for row in rows]
    return sorted(map(repr, ticks))


def test_one_round_answers_what_a_stream_answers_when_it_is_finished(plan: Plan, tmp_path: Path) -> None:
    memory, streamed = MemorySink(), MemorySink()
    ran = run_whole(plan, [memory])
    with MicroBatches(tmp_path, STREAMS, sinks={"memory": streamed}) as life:
        life.change(QUERIES)
        life.round({"s": FRAMES["s"][:3]})
        life.round({"s": FRAMES["s"][3:], "t": FRAMES["t"]})
        life.finish()
    names = list(AnswerTables(None).infos(plan))
    assert ran.progress.results == ran.made == sum(memory.rows(name).num_rows for name in names)
    for name in names:
        assert in_order(memory.rows(name)) == in_order(streamed.rows(name)) != []
    assert set(ran.outcome.state.frontiers.values()) == {TICK_MAX}
    assert ran.outcome.observed.sets.keys() == {partial_set.identity for partial_set in plan.sets}
    assert set(answers_in(tmp_path)) > {0}, "the stream needed several rounds for it"


def test_answers_are_held_as_the_step_made_them(plan: Plan) -> None:
    held = HeldAnswers()
    ran = run_whole(plan, [held])
    assert ran.made == sum(block.table.num_rows for block in held.blocks) > 0
    assert {name for block in held.blocks for name in block.queries} == set(QUERIES)


def test_listeners_hear_of_the_step_before_any_row_is_made(plan: Plan) -> None:
    heard: list[object] = []
    ran = run_whole(plan, [MemorySink()], Listeners(heard.append, heard.append, heard.append))
    first, *made, last = heard
    assert isinstance(first, Outcome)
    assert made == sorted(made)
    assert made[-1] == ran.made
    assert last == ran.progress


def test_the_store_shows_one_round_of_the_parquet_sink_when_everything_is_there(plan: Plan, tmp_path: Path) -> None:
    out, tables, memory = tmp_path / "new" / "out", AnswerTables(None), MemorySink()
    with ParquetStore(plan, tables, out) as store:
        run_whole(plan, [store, memory])
        assert not out.exists()
    infos = tables.infos(plan)
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()) == sorted(
        ["_common_metadata", "_manifest.json", "columns.parquet"]
        + [f"table={name}/round-000000000.parquet" for name in infos]
    )
    manifest = json.loads((out / "_manifest.json").read_text())
    assert manifest["checkpoint"] is None
    assert {query for entry in manifest["tables"].values() for query in entry["queries"]} == set(QUERIES)
    for name in infos:
        assert in_order(pq.read_table(out / f"table={name}")) == in_order(memory.rows(name))


def test_a_sink_that_fails_leaves_nothing_of_the_store(plan: Plan, tmp_path: Path) -> None:
    class Broken(MemorySink):
        def write(self, round: int, answers: object) -> None:
            raise WindloomError("no", "more", "room")

    with (
        pytest.raises(WindloomError, match="no"),
        ParquetStore(plan, AnswerTables(None), tmp_path / "out") as store,
    ):
        run_whole(plan, [store, Broken()])
    assert not list(tmp_path.iterdir())


def test_full_collections_wait_for_the_last_of_several_runs() -> None:
    before = gc.get_threshold()
    with without_full_collections():
        with without_full_collections():
            assert gc.get_threshold()[2] > 1_000_000
        assert gc.get_threshold()[2] > 1_000_000
        assert gc.get_threshold()[:2] == before[:2]
    assert gc.get_threshold() == before
    with pytest.raises(ZeroDivisionError), without_full_collections():
        raise ZeroDivisionError
    assert gc.get_threshold() == before
