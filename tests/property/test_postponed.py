"""Answers that are left to later rounds: the same rows, once each, and otherwise the same state."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import make_query
from support.compare import rows_of
from support.compare_joins import assert_equal_join_rows
from support.drawing import examples
from support.durable import make_batches, reported, run_stream
from support.join_catalogs import ATTACHED, RELATIONS
from support.join_looms import registered
from support.join_rounds import JoinRounds, join_rounds
from support.micro_batches import CrashError, MicroBatches, answers_in, crash_after
from support.native import taken_of_plan
from support.postponing import RandomScheduling
from support.relations import Versions
from support.rounds import Round, changed_queries, first_of, plan_of, renamed, run_rounds
from support.row_rounds import QUERIES as ROW_QUERIES
from support.row_rounds import STREAMS as ROW_STREAMS
from support.row_rounds import TYPES as ROW_TYPES
from support.row_rounds import RowRounds, row_rounds
from windloom.checkpoint.state_codec import decode, encode
from windloom.model import Aggregate, Expression, LandmarkWindow, Query, SessionWindow, TimeWindow
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows.cumulate import CumulateWindow
from windloom.optimizer.sharing.registry import STRATEGIES
from windloom.optimizer.stages import PlanOptions
from windloom.plan.plan import Plan
from windloom.rounds.step import step
from windloom.slicing.slicings import SLICINGS
from windloom.state.plan_change import leaving, migrate
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

Row = dict[str, Any]

ASKED = [
    Aggregate("count"),
    Aggregate("sum", Expression.of_column("i")),
    Aggregate("max", Expression.of_column("i")),
    Aggregate("min_by", Expression.of_column("i"), Expression.of_column("k")),
    Aggregate("count_distinct", Expression.of_column("i")),
]
ASKING = st.builds(
    lambda window, aggregate, grouping, where: make_query("q", window, [aggregate], grouping, where),
    st.sampled_from(
        [TimeWindow(*ticks) for ticks in [(4, 2), (8, 4), (6, 3), (12, 4), (5, 2), (9, 8, 1), (3, 6), (10, 1)]]
        + [LandmarkWindow(*ticks) for ticks in [(4,), (6, 1), (5,)]]
        + [CumulateWindow(12, 4), CumulateWindow(10, 2, 3)]
        + [SessionWindow(2), SessionWindow(4)]
    ),
    st.sampled_from(ASKED),
    st.sampled_from([(), (), (), ("k",)]),
    st.sampled_from([None, None, None, "b"]),
)
OPTIONS = st.builds(
    PlanOptions,
    st.sampled_from(sorted(STRATEGIES)),
    st.sampled_from(sorted(SLICINGS)),
    st.just("auto"),
    st.just("woven"),
)


@st.composite
def streams(draw: st.DrawFn, changes: bool = True) -> list[Round]:
    """Tuples in disorder, many of them late, and queries that come, go and are replaced."""
    names = ["a", "b", "c", "d"]
    running = {name: renamed(draw(ASKING), name) for name in names[: draw(st.integers(1, 4))]}
    rounds: list[Round] = []
    now, watermark = 0, TICK_MIN
    for _ in range(draw(st.integers(2, 9))):
        if changes and rounds and draw(st.integers(0, 3)) == 0:
            running = changed_queries(draw, running, names, ASKING)
        ticks = draw(st.lists(st.integers(-14, 10), max_size=10))
        rows = [{"tick": now + tick, "k": "abc"[tick % 3], "i": tick % 5, "b": tick % 4 > 0} for tick in ticks]
        now = max([now, *(row["tick"] for row in rows)])
        watermark = max(watermark, now - draw(st.integers(0, 8)))
        rounds.append(Round(rows, watermark, running))
    return rounds


class Postponing:
    """A stream of which every round leaves some answers to later ones, at random."""

    def __init__(self, rng: random.Random, options: PlanOptions, history_ticks: int) -> None:
        self.rng, self.options, self.history_ticks = rng, options, history_ticks
        self.state = State()
        self.plan: Plan | None = None
        self.seen: dict[str, int] = {}
        self.rows: dict[Query, list[list[Row]]] = {}
        self.states: list[State] = []

    def run(self, rounds: list[Round]) -> None:
        for round_ in rounds:
            new = plan_of(round_.queries, self.options)
            if self.plan is not None and new != self.plan:
                self.settle(leaving(self.plan, new))
                self.state = migrate(self.state, self.plan, new)
            self.plan = new
            ticks = [row["tick"] for row in round_.rows]
            self.seen = {"s": max(ticks + list(self.seen.values()))} if ticks or self.seen else {}
            taken = taken_of_plan(new, round_.rows, self.state)
            given = RoundInput(taken, {"s": round_.watermark}, seen=self.seen, first=first_of(round_.rows))
            self.step(replace(given, postponed=self.postponed(new, round_.watermark)))
            self.states.append(self.state)
            if self.rng.random() < 0.3:  # a round that only answers
                self.step(RoundInput(postponed=self.postponed(new, round_.watermark)))
        self.settle(set(self.state.answered))

    def settle(self, names: set[str]) -> None:
        """Answer what some queries owe, and leave the others where they are."""
        left = {name: tick for name, tick in self.state.answered.items() if name not in names}
        if names & set(self.state.answered):
            self.step(RoundInput(postponed=left))
            assert self.state.answered == left

    def postponed(self, plan: Plan, watermark: int) -> Mapping[str, int]:
        found = {}
        for planned in plan.queries:
            if self.rng.random() < 0.6:
                cut = watermark - self.rng.randrange(30) if watermark > TICK_MIN else TICK_MIN
                found[planned.name] = self.rng.choice([TICK_MIN, TICK_MIN, cut])
        return found

    def step(self, given: RoundInput) -> None:
        assert self.plan is not None
        before = self.state
        self.state, answers, _ = step(before, given, self.plan, history_ticks=self.history_ticks)
        self.state = decode(encode(self.state)) if self.rng.random() < 0.3 else self.state
        blocks = list(answers.blocks())
        for planned in self.plan.queries:
            self.rows.setdefault(planned.query, []).append(rows_of(blocks, planned.query))


@settings(max_examples=examples(100), deadline=None)
@given(
    rounds=streams(), options=OPTIONS, history_ticks=st.sampled_from([0, 0, 10, 1000]), seed=st.integers(0, 2**32 - 1)
)
def test_postponed_answers_are_the_rows_of_a_run_that_postpones_nothing(
    rounds: list[Round], options: PlanOptions, history_ticks: int, seed: int
) -> None:
    prompt = run_rounds(rounds, options, history_ticks)
    late = Postponing(random.Random(seed), options, history_ticks)
    late.run(rounds)
    expected: dict[Query, list[str]] = {}
    for life in prompt.lives:
        expected.setdefault(life.query, []).extend(repr(row) for part in life.reported.values() for row in part)
    for query, rows in expected.items():
        assert sorted(repr(row) for part in late.rows[query] for row in part) == sorted(rows), query
    for found, wanted in zip(late.states, prompt.states, strict=True):
        assert encode(replace(found, answered={}, owed={}, since={})) == encode(replace(wanted, since={}))
    assert not late.state.owed
    assert not late.state.answered


@settings(max_examples=examples(30), deadline=None)
@given(rounds=streams(changes=False), options=OPTIONS, seed=st.integers(0, 2**32 - 1))
def test_the_end_of_a_stream_answers_all_that_was_postponed(
    rounds: list[Round], options: PlanOptions, seed: int
) -> None:
    rounds = [*rounds, Round([], TICK_MAX, rounds[-1].queries)]
    prompt = run_rounds(rounds, options)
    late = Postponing(random.Random(seed), options, 0)
    late.run(rounds)
    for life in prompt.lives:
        wanted = [repr(row) for part in life.reported.values() for row in part]
        assert sorted(repr(row) for part in late.rows[life.query] for row in part) == sorted(wanted)
    assert not late.states[-1].answered
    assert not late.states[-1].owed


ROUNDS = 12
#: Rounds between two snapshots: more than there are, so that logged tuples go as far back whatever rounds only answer.
ALL_LOGS = 1000


def rows_by_query(folder: Path) -> dict[str, list[str]]:
    """What the sink holds of each query, of all rounds together."""
    found: dict[str, list[str]] = {}
    for answers in reported(folder).values():
        for name, rows in answers.items():
            found.setdefault(name, []).extend(rows)
    return {name: sorted(rows) for name, rows in found.items()}


@lru_cache(maxsize=32)
def undisturbed(seed: int) -> tuple[dict[str, list[str]], bytes]:
    with tempfile.TemporaryDirectory() as folder:
        state = run_stream(Path(folder), make_batches(seed, ROUNDS), ALL_LOGS)
        return rows_by_query(Path(folder)), encode(state)


@settings(max_examples=examples(12), deadline=None)
@given(
    seed=st.integers(0, 9),
    chance=st.integers(0, 2**32 - 1),
    crashes=st.lists(st.integers(0, 80), max_size=6),
)
def test_postponing_crashes_and_changes_of_queries_lose_and_double_no_row(
    seed: int, chance: int, crashes: list[int]
) -> None:
    batches = make_batches(seed, ROUNDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for life, crash in enumerate(crashes):
            try:
                with crash_after(crash):
                    run_stream(folder, batches, ALL_LOGS, scheduling=RandomScheduling(chance + life))
            except CrashError:
                pass
        state = run_stream(folder, batches, ALL_LOGS, scheduling=RandomScheduling(chance))
        rows, bytes_ = undisturbed(seed)
        assert rows_by_query(folder) == rows
        assert encode(replace(state, since={})) == encode(replace(decode(bytes_), since={}))


@settings(max_examples=examples(40), deadline=None)
@given(case=join_rounds(), seed=st.integers(0, 2**32 - 1))
def test_joins_that_are_postponed_see_the_tuples_that_had_come_when_their_windows_closed(
    case: JoinRounds, seed: int
) -> None:
    registry = registered({name: asked.cql() for name, asked in case.asked.items()}, case.streams)
    with tempfile.TemporaryDirectory() as name:
        scheduling = RandomScheduling(seed)
        with MicroBatches(Path(name), case.streams, types=registry.types(), scheduling=scheduling) as life:
            life.change(registry.queries)
            for round_ in case.rounds:
                life.round(round_)
            life.finish()
            assert not life.state.owed
        answers = answers_in(Path(name))
    for query_name, asked in case.asked.items():
        query = asked.query(query_name)
        found = [row for rows in answers.values() for row in rows.get(query_name, [])]
        closed = TICK_MIN
        for number, wanted in case.expected(query).items():
            until = case.closed(query, number + 1)
            rows = [row for row in found if closed < row["window_end"] <= until]
            assert_equal_join_rows(query, case.arrived(number + 1), wanted, rows, case.landmarks(query, number))
            closed = until


@settings(max_examples=examples(20), deadline=None)
@given(
    case=join_rounds(relations=[*RELATIONS, *ATTACHED]),
    seed=st.integers(0, 2**32 - 1),
)
def test_joins_with_relations_see_the_versions_that_they_see_without_a_budget(case: JoinRounds, seed: int) -> None:
    """Those whose windows see a version are answered at once; those whose tuples were joined with one may wait."""
    registry = registered({name: asked.cql() for name, asked in case.asked.items()}, case.streams)
    with tempfile.TemporaryDirectory() as name:
        with MicroBatches(
            Path(name),
            case.streams,
            types=registry.types(),
            scheduling=RandomScheduling(seed),
            relations={**RELATIONS, **ATTACHED},
            versions=Versions(case.versions),
        ) as life:
            life.change(registry.queries)
            for round_ in case.rounds:
                life.round(round_)
            life.finish()
        answers = answers_in(Path(name))
    for query_name, asked in case.asked.items():
        query = asked.query(query_name)
        found = [row for rows in answers.values() for row in rows.get(query_name, [])]
        closed = TICK_MIN
        for number, wanted in case.expected(query).items():
            until = case.closed(query, number + 1)
            rows = [row for row in found if closed < row["window_end"] <= until]
            assert_equal_join_rows(query, case.seen(number), wanted, rows, case.landmarks(query, number))
            closed = until


#: Queries of windows that share the stream of row queries, and may wait.
PLAIN = registered(
    {
        "counted": "SELECT k, count(*) AS n FROM s [RANGE 8 us SLIDE 4 us] GROUP BY k",
        "summed": "SELECT sum(i) AS total FROM t [RANGE 9 us SLIDE 3 us]",
    },
    ROW_STREAMS,
)


@settings(max_examples=examples(15), deadline=None)
@given(
    asked=row_rounds(),
    names=st.lists(st.sampled_from(sorted(ROW_QUERIES)), min_size=1, max_size=3, unique=True),
    seed=st.integers(0, 2**32 - 1),
    crashes=st.lists(st.integers(0, 40), max_size=2),
)
def test_row_queries_never_wait_beside_queries_that_do(
    asked: RowRounds, names: list[str], seed: int, crashes: list[int]
) -> None:
    queries = {**{name: ROW_QUERIES[name] for name in names}, **PLAIN.queries}
    types = {**ROW_TYPES, **PLAIN.types()}

    def run(folder: Path, scheduling: RandomScheduling | None) -> None:
        with MicroBatches(folder, ROW_STREAMS, types=types, snapshot_rounds=2, scheduling=scheduling) as life:
            for batch in asked.rounds[life.loop.next_round :]:
                life.change(queries)
                life.round(batch)
            if life.loop.next_round == len(asked.rounds):
                life.finish()

    with tempfile.TemporaryDirectory() as name:
        prompt, late = Path(name) / "prompt", Path(name) / "late"
        run(prompt, None)
        for life, crash in enumerate(crashes):
            try:
                with crash_after(crash):
                    run(late, RandomScheduling(seed + life))
            except CrashError:
                pass
        run(late, RandomScheduling(seed))
        wanted, found = answers_in(prompt), answers_in(late)
    for query in names:
        assert _by_round(found, query) == _by_round(wanted, query)
    for query in PLAIN.queries:
        assert sum(_by_round(found, query).values(), Counter()) == sum(_by_round(wanted, query).values(), Counter())


def _by_round(answers: Mapping[int, Mapping[str, list[Row]]], query: str) -> dict[int, Counter[str]]:
    return {number: Counter(map(repr, own[query])) for number, own in answers.items() if own.get(query)}
