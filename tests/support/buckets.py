"""Rounds of a stream in buckets, as the Spark operator runs them, but in memory and without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from support.compare import rows_of
from support.native import tuples_table
from support.rounds import Life, Round, Run, plan_of
from windloom.checkpoint.frames import read_frame
from windloom.checkpoint.state_codec import decode
from windloom.model import Query
from windloom.operator.buckets import BucketRound, OperatorPlan, step_bucket
from windloom.operator.parts import Part, merged_parts, weave_parts
from windloom.optimizer.intake.woven import whole_scans
from windloom.optimizer.stages import PlanOptions
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

_RUNS = count()


class MemoryStore:
    """The blobs of a bucket in memory, in the place of Spark's state store."""

    def __init__(self, place: str = "") -> None:
        self.place = place
        self.blobs: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        return self.blobs.get(name)

    def put(self, name: str, blob: bytes) -> None:
        self.blobs[name] = blob

    def remove(self, name: str) -> None:
        del self.blobs[name]


@lru_cache(maxsize=64)
def operator_plan(queries: tuple[Query, ...], options: PlanOptions) -> OperatorPlan:
    plan = whole_scans(plan_of({query.name: query for query in queries}, options))
    return OperatorPlan(plan, pickle.dumps(plan))


def step_buckets(
    planned: OperatorPlan,
    stores: Sequence[MemoryStore],
    rows: Sequence[Mapping[str, Any]],
    watermark: int,
    tasks: int = 2,
    history_ticks: int = 0,
) -> list[BucketRound]:
    """Run one round: its rows are divided among tasks, each of which sends a part to every bucket."""
    plan, buckets = planned.plan, len(stores)
    parts: list[list[bytes]] = [[] for _ in stores]
    for task in reversed(range(tasks)):  # parts come in any order
        own = rows[task::tasks]
        for scan in plan.scans:
            table = tuples_table(plan, scan, own)
            for bucket, part in weave_parts(plan, scan, [table] if own else [], buckets, task, is_stream=True):
                parts[bucket].append(part)

    def frontiers(facts: State, largest: Mapping[str, int], smallest: Mapping[str, int]) -> RoundInput:
        seen = {name: max(tick, facts.seen.get(name, tick)) for name, tick in largest.items()}
        return RoundInput(frontiers={"s": watermark}, seen={**facts.seen, **seen}, first=dict(smallest))

    return [
        step_bucket(
            planned,
            store,
            merged_parts(parts[bucket], plan) if parts[bucket] else Part(buckets),
            frontiers,
            is_first=bucket == 0,
            history_ticks=history_ticks,
        )
        for bucket, store in enumerate(stores)
    ]


def run_in_buckets(
    rounds: Sequence[Round], options: PlanOptions, buckets: int, history_ticks: int = 0
) -> tuple[Run, list[MemoryStore]]:
    """Like `run_rounds`, in buckets; states are left out."""
    # Every other bucket remembers the segments that it has read.
    stores = [MemoryStore(f"{next(_RUNS)}" if number % 2 else "") for number in range(buckets)]
    run, running = Run([], [], []), dict[str, Life]()
    for number, round_ in enumerate(rounds):
        planned = operator_plan(tuple(round_.queries.values()), options)
        made = step_buckets(planned, stores, round_.rows, round_.watermark, history_ticks=history_ticks)
        running = {name: life for name, life in running.items() if round_.queries.get(name) == life.query}
        for name, query in round_.queries.items():
            if name not in running:
                running[name] = Life(query, number, made[0].began.since.get(name))
                run.lives.append(running[name])
        blocks = [block for bucket in made for block in bucket.blocks()]
        for life in running.values():
            life.last = number
            life.reported[number] = rows_of(blocks, life.query)
        run.late.append(made[0].late)
    return run, stores


def facts_of(store: MemoryStore) -> State:
    frame = read_frame("head", "a head", store.blobs["head"], "")
    return decode(bytes(frame.blobs["facts"]))
