"""Questions while rounds run: every answer is that of a serial execution, on the driver and on executors."""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import STREAM, make_query
from support.drawing import examples
from support.micro_batches import MicroBatches
from support.postponing import RandomScheduling
from support.questions import Asker, History, in_threads, rows_of
from support.rounds import plan_of
from windloom.checkpoint.storage import FAULT_POINTS, watched
from windloom.engine.snapshots import SnapshotAnswer
from windloom.errors import WindloomError
from windloom.model import Aggregate, Expression, Query, TimeWindow

Row = dict[str, Any]
DELAY = 4
STREAMS = {"s": replace(STREAM, delay_ticks=DELAY)}

TOTAL = Aggregate("sum", Expression.of_column("i"))
#: What runs; questions are about the same sets, with other windows on the same edges.
RUNNING = {
    "a": make_query("a", TimeWindow(8, 4), [Aggregate("count"), TOTAL], ("k",)),
    "b": make_query("b", TimeWindow(12, 4), [Aggregate("count"), TOTAL]),
}
ADDED = {"c": make_query("c", TimeWindow(6, 2), [Aggregate("max", Expression.of_column("i"))], ("k",))}
ASKED = [
    make_query("q", TimeWindow(16, 4), [Aggregate("count")], ("k",)),
    make_query("q", TimeWindow(4, 4), [TOTAL], ("k",)),
    make_query("q", TimeWindow(8, 8), [Aggregate("count"), TOTAL]),
    make_query("q", TimeWindow(20, 4), [TOTAL]),
]


def rounds_of(seed: int, count: int) -> list[list[Row]]:
    """Tuples in disorder, some of them late, in many groups."""
    rng = random.Random(seed)
    return [
        [
            {"tick": number * 6 + rng.randrange(-12, 7), "k": rng.choice("uvwxyz"), "i": rng.randrange(9)}
            for _ in range(12)
        ]
        for number in range(1, count + 1)
    ]


def started(folder: Path, **more: Any) -> MicroBatches:
    """All of the past is kept, so that the oracle need not know what was dropped."""
    return MicroBatches(folder, STREAMS, history_ticks=10_000, snapshot_rounds=2, **more)


def running(number: int) -> Mapping[str, Query]:
    """Queries come and go meanwhile."""
    return RUNNING | ADDED if number % 3 == 1 else RUNNING


def run_round(life: MicroBatches, history: History, rows: Sequence[Row]) -> None:
    history.rounds.append(rows)  # before it can be committed
    life.change(running(life.loop.next_round))
    life.round({"s": rows})


def test_many_askers_beside_rounds_see_committed_rounds_only(tmp_path: Path) -> None:
    history, done = History(DELAY), threading.Event()
    batches = rounds_of(3, 9)
    with started(tmp_path) as life:
        run_round(life, history, batches[0])

        def asking(number: int) -> None:
            asker, rng = Asker(life, history, number), random.Random(number)
            while not done.is_set():
                if rng.random() < 0.3:
                    asker.ask_several(rng.sample(ASKED, 2))
                    continue
                query = rng.choice(ASKED)
                found = asker.ask(query)
                if rng.random() < 0.5:
                    asker.repair(query, found)

        with in_threads(*(lambda number=number: asking(number) for number in range(3))):
            try:
                for rows in batches[1:]:
                    run_round(life, history, rows)
            finally:
                done.set()
    history.check()
    assert len({event.found.round for event in history.events}) > 3
    assert any(event.after > event.before for event in history.events), "some question met a commit"


def test_at_every_instant_of_a_round_questions_see_the_one_before(tmp_path: Path) -> None:
    history = History(DELAY)
    asked: list[tuple[str, int]] = []
    with started(tmp_path) as life:
        asker = Asker(life, history, 0)

        def ask(point: str) -> None:
            if life.loop.committed.round >= 0 and not point.startswith(("before rename", "after rename")):
                asked.append((point, asker.ask(ASKED[len(asked) % len(ASKED)]).round))

        with watched(ask):
            for rows in rounds_of(5, 4):
                run_round(life, history, rows)
    history.check()
    assert {point for point, _ in asked} >= {"after begun", "after log", "before sink", "after sink", "before commit"}
    assert {point for point, _ in asked} <= {*FAULT_POINTS, "after pieces"}


def test_a_question_does_not_wait_for_the_round_that_runs(tmp_path: Path) -> None:
    first, second = rounds_of(6, 2)
    history, taking, asked = History(DELAY), threading.Event(), threading.Event()
    with started(tmp_path) as life:
        run_round(life, history, first)
        take_in = life.jobs.take_in

        def slowly(*given: Any) -> Any:
            taking.set()
            assert asked.wait(60), "the question waits for the round"
            return take_in(*given)

        life.jobs.take_in = slowly  # type: ignore[method-assign]
        with in_threads(lambda: run_round(life, history, second)):
            assert taking.wait(60)
            found = Asker(life, history, 0).ask(ASKED[0])
            asked.set()
        assert found.round == 0
        assert life.loop.committed.round == 1
    history.check()


@settings(max_examples=examples(20), deadline=None)
@given(
    seed=st.integers(0, 1000),
    query=st.sampled_from(ASKED),
    history_ticks=st.sampled_from([0, 8, 10_000]),
    first=st.integers(1, 4),
)
def test_a_repaired_answer_is_the_one_that_would_be_given_anew(
    seed: int, query: Query, history_ticks: int, first: int
) -> None:
    """With late tuples, with history that is dropped meanwhile, and with queries that change."""
    with tempfile.TemporaryDirectory() as name:
        history = History(DELAY)
        with MicroBatches(Path(name), STREAMS, history_ticks=history_ticks, scheduling=RandomScheduling(seed)) as life:
            batches = rounds_of(seed, 6)
            for rows in batches[:first]:
                run_round(life, history, rows)
            plan = plan_of({query.name: query})
            with life.loop.snapshot() as snapshot:
                found = answered(partial(snapshot.answer, query, plan))
            for rows in batches[first:]:
                run_round(life, history, rows)
                with life.loop.snapshot() as snapshot:
                    anew = answered(partial(snapshot.answer, query, plan))
                    if found is not None:
                        found = answered(partial(snapshot.repair, query, plan, found))
                        assert (anew is None) == (found is None)
                if anew is not None and found is not None:
                    assert told(found) == told(anew)


def answered(ask: Callable[[], SnapshotAnswer]) -> SnapshotAnswer | None:
    """None if what is kept does not suffice."""
    try:
        return ask()
    except WindloomError:
        return None


def told(found: SnapshotAnswer) -> tuple[Any, ...]:
    return found.round, found.closed, found.since, sorted(map(repr, rows_of(found)))


def test_questions_see_the_same_whether_answers_are_postponed_or_not(tmp_path: Path) -> None:
    prompt, late = History(DELAY), History(DELAY)
    batches = rounds_of(8, 6)
    with (
        started(tmp_path / "prompt") as prompt_life,
        started(tmp_path / "late", scheduling=RandomScheduling(1)) as slow_life,
    ):
        for rows in batches:
            run_round(prompt_life, prompt, rows)
            run_round(slow_life, late, rows)
            for query in ASKED:
                with prompt_life.loop.snapshot() as first, slow_life.loop.snapshot() as second:
                    left = first.answer(query, plan_of({query.name: query}))
                    right = second.answer(query, plan_of({query.name: query}))
                assert told(left)[1:] == told(right)[1:]
