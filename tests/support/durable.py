"""A stream of rounds with a checkpoint and a sink on disk, without Spark: to be crashed, killed and started again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from support.catalogs import STREAM, TYPES, make_query
from support.micro_batches import MicroBatches, RecordedQueries, Row, answers_in
from support.rounds import renamed
from windloom.engine.budget import Scheduling
from windloom.model import (
    Aggregate,
    Expression,
    LandmarkWindow,
    Query,
    RowsWindow,
    SessionWindow,
    TimeWindow,
)
from windloom.model.windows.cumulate import CumulateWindow
from windloom.sinks.registry import choose_sinks, sink
from windloom.state.state import State

STREAMS = {"s": replace(STREAM, delay_ticks=6)}
ASKED = [
    make_query("q", window, [aggregate], grouping)
    for window in (
        *(TimeWindow(8, 4), TimeWindow(12, 4), TimeWindow(10, 5, 1), TimeWindow(6, 3)),
        *(
            LandmarkWindow(5),
            CumulateWindow(20, 5, 3),
            SessionWindow(2),
            SessionWindow(4),
            RowsWindow(7, 3),
            RowsWindow(4, 2, 0, (Expression.of_column("k"),)),
        ),
    )
    for aggregate in (Aggregate("count"), Aggregate("sum", Expression.of_column("i")))
    for grouping in ((), ("k",))
    if grouping or not window.counted_by
]


plan_of_record = RecordedQueries(STREAMS, TYPES, intake="auto").plan_of


class Batch(NamedTuple):
    """What one round brings, and the queries that run."""

    rows: Sequence[Row]
    queries: Mapping[str, Query]


def make_batches(seed: int, count: int) -> list[Batch]:
    """Tuples in disorder, some late; queries that come, go and are replaced."""
    rng = random.Random(seed)
    queries = {name: renamed(rng.choice(ASKED), name) for name in ("a", "b", "c")}
    batches = []
    for number in range(count):
        if number and rng.random() < 0.4:
            name = rng.choice("abcd")
            queries = {query_name: query for query_name, query in queries.items() if query_name != name}
            if rng.random() < 0.7 or not queries:
                queries[name] = renamed(rng.choice(ASKED), name)
        ticks = [number * 7 + rng.randrange(-9, 10) for _ in range(8)]
        rows = [{"tick": tick, "k": rng.choice("xyz"), "i": rng.randrange(9)} for tick in ticks]
        batches.append(Batch(rows, queries))
    return batches


def run_stream(
    folder: Path,
    batches: Sequence[Batch],
    snapshot_rounds: int = 3,
    sinks: Mapping[str, str] | None = None,
    scheduling: Scheduling | None = None,
) -> State:
    """From where the checkpoint in the folder is to the last round; answers are beside it.

    `sinks` are more of them than Parquet, by name, with their targets. With `scheduling` some answers are postponed,
    and given at the end.
    """
    openers = choose_sinks([sink(*sink_target) for sink_target in sinks.items()], None, folder) if sinks else None
    given: dict[str, Any] = {"snapshot_rounds": snapshot_rounds, "history_ticks": 15}
    with MicroBatches(folder, STREAMS, openers=openers, scheduling=scheduling, **given) as life:
        for batch in batches[life.checkpoint.last_batch + 1 :]:
            life.change(batch.queries)
            life.round({"s": batch.rows})
        life.catch_up(everything=True)
        return life.state


@contextmanager
def small_segments(read_again: int = 1) -> Iterator[None]:
    """Every set that can be is in segments, with stretches, summaries and compaction of a few slices.

    Snapshots are written beside the rounds, however small they are.
    """
    with (
        patch.multiple("windloom.state.segments", SLICES=1, COMPACTED=2, FAN_OUT=2, READ_AGAIN=read_again),
        patch("windloom.state.held.LARGE_CELLS", 0),
        patch("windloom.checkpoint.checkpoint.BESIDE_BYTES", -1),
    ):
        yield


def run_killed_in_segments(folder: Path) -> None:
    """The stream of processes that are killed, with its state in segments."""
    with small_segments():
        run_stream(folder, make_batches(7, 12))


def reported(folder: Path) -> dict[int, dict[str, list[str]]]:
    """What is in the sink, by round and query, in an order of its own."""
    return {
        round: {name: sorted(map(repr, rows)) for name, rows in sorted(found.items())}
        for round, found in answers_in(folder).items()
    }


def run_killed(folder: Path, sinks: Mapping[str, str] | None = None) -> None:
    """The stream of the processes that are killed: answers go to Parquet in the folder, and to the sinks."""
    run_stream(folder, make_batches(7, 12), sinks=sinks)
