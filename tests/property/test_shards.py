"""Shards: however groups are divided, rounds, states, counts and what is said of the past are those of one step."""

from __future__ import annotations

import tempfile
from itertools import chain
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import INTAKES, ROWS, catalogs, growing_catalogs
from support.compare import rows_of
from support.drawing import examples
from support.micro_batches import RowJobs
from support.native import taken_of_plan
from support.rounds import first_of, plan_of
from windloom.answers.blocks import Block
from windloom.checkpoint.shards.blocks import joined, read_blocks
from windloom.checkpoint.shards.files import ShardFiles
from windloom.checkpoint.shards.notes import counts_of, kept_from_of
from windloom.checkpoint.shards.run import ShardPlaces, ShardRound, shard_state
from windloom.checkpoint.shards.split import split_cells
from windloom.model import Query
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.optimizer.stages import PlanOptions
from windloom.plan.plan import Plan
from windloom.plan.sharding import sharding_of
from windloom.rounds.step import step
from windloom.spark.executors.shard_job import Gathered
from windloom.spark.executors.shards import ShardReport
from windloom.state.plan_change import migrate
from windloom.state.state import State
from windloom.weave.round_input import RoundInput, ScanResult

Row = dict[str, Any]

ROUNDS = st.lists(st.tuples(ROWS, st.integers(0, 30), st.booleans()), min_size=1, max_size=5)


def reported(blocks: list[Block], queries: list[Query]) -> list[list[str]]:
    return [sorted(map(repr, rows_of(blocks, query))) for query in queries]


@settings(max_examples=examples(60), deadline=None)
@given(
    first=st.one_of(catalogs(3), growing_catalogs()),
    second=st.one_of(catalogs(3), growing_catalogs()),
    rounds=ROUNDS,
    shards=st.integers(1, 4),
    history_ticks=st.sampled_from([0, 20]),
    intake=INTAKES,
)
def test_shards_together_are_one_step(
    first: list[Query], second: list[Query], rounds: list[Any], shards: int, history_ticks: int, intake: str
) -> None:
    whole = facts = State()
    previous: Plan | None = None
    states: tuple[str, ...] = ()
    watermark = TICK_MIN
    with tempfile.TemporaryDirectory() as place:
        files = ShardFiles(place)
        for number, (rows, ahead, changed) in enumerate([*rounds, ([], None, False)]):
            queries = second if changed else first
            plan = plan_of({query.name: query for query in queries}, PlanOptions(intake=intake))
            largest = max([row["tick"] for row in rows], default=0)
            watermark = TICK_MAX if ahead is None else max(watermark, largest - 20 + ahead)
            seen = {"s": max(largest, facts.seen.get("s", largest))}
            other = previous if previous is not None and previous != plan else None
            smallest = first_of(rows)
            given = RoundInput(frontiers={"s": watermark}, seen=seen, first=smallest)
            told = ShardRound(number, plan, given, history_ticks, facts, other)
            places = ShardPlaces(files, states)
            if other is not None:
                whole, facts = migrate(whole, other, plan), migrate(facts, other, plan)
                assert (facts.since, facts.fresh, facts.history) == (whole.since, whole.fresh, whole.history)
            taken = taken_of_plan(plan, rows, facts)
            gathered = Gathered(dict(split_cells(taken.cells, shards, sharding_of(plan))), ShardReport())
            notes = RowJobs().run_shards(told, places, gathered, shards)
            whole, answers, counts = step(whole, given.taking(taken), plan, history_ticks=history_ticks)
            late = ScanResult(behind=taken.behind)
            facts, _, counted = step(facts, given.taking(late), plan, history_ticks=history_ticks)
            facts = facts.forgetting(kept_from_of(notes))
            assert (facts.since, facts.seen, facts.history) == (whole.since, whole.seen, whole.history)
            assert facts.first == whole.first
            made = [read_blocks("a", files.read(note.answers)) for note in notes if note.answers]
            blocks = list(joined(chain.from_iterable(made), rows=4))
            assert reported(blocks, queries) == reported(list(answers.blocks()), queries)
            together = counts_of(notes, counted.late)
            for partial_set in plan.sets:
                assert together.tuples.get(partial_set.number, 0) == counts.tuples.get(partial_set.number, 0)
                assert together.partials.get(partial_set.number, 0) == counts.partials.get(partial_set.number, 0)
            assert together.late == counts.late
            states = tuple(note.state for note in notes)
            parts = [shard_state(files, name, facts, plan) for name in states]
            for partial_set in plan.sets:
                held = [part.cells[partial_set.number] for part in parts if partial_set.number in part.cells]
                assert sum(map(len, held)) == len(whole.cells.get(partial_set.number, ()))
            files.keep_only(states)
            previous = plan
