"""Streams in rounds with joins that come and go, without Spark: what each query reports, and what it must report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from support.compare import assert_equal_rows, rows_of
from support.compare_joins import assert_equal_join_rows
from support.join_catalogs import STREAMS, Drawing, random_row
from support.join_looms import join_plan, planned, registered
from support.native import taken_of_plan
from windloom.engine.registry import Registry
from windloom.model import Query, WindowedStream
from windloom.model.time import TICK_MIN
from windloom.optimizer.stages import PlanOptions
from windloom.plan.plan import Plan
from windloom.rounds.lateness import LateCount, Lateness
from windloom.rounds.step import step
from windloom.state.plan_change import migrate
from windloom.state.state import State
from windloom.testing import answer
from windloom.weave.round_input import RoundInput
from windloom_tools.oracle.answers import windows_of
from windloom_tools.oracle.joins import answer_join
from windloom_tools.oracle.scalars import scalar

Row = dict[str, Any]
PLAIN = [
    "SELECT k AS g0, count(*) AS o0 FROM s [RANGE 8 microseconds SLIDE 4 microseconds] GROUP BY k",
    "SELECT k AS g0, sum(i) AS o0 FROM t [RANGE 6 microseconds SLIDE 3 microseconds] GROUP BY k",
    "SELECT max(x) AS o0 FROM s [RANGE 5 microseconds SLIDE 2 microseconds]",
]


@dataclass(frozen=True)
class Round:
    """What a round brings, the frontiers behind it, and the queries that run."""

    rows: Mapping[str, list[Row]]
    frontiers: Mapping[str, int]
    texts: Mapping[str, str]
    idle: frozenset[str] = frozenset()


@dataclass
class Life:
    """One query from the round it was added in to its last one; `since` is where its first exact window begins."""

    query: Query
    first: int
    since: int | None
    last: int = 0
    reported: dict[int, list[Row]] = field(default_factory=dict)

    def is_covered(self, end: int) -> bool:
        return self.since is None or end >= self.since + self.query.window.range_ticks


@st.composite
def changing_rounds(draw: st.DrawFn) -> list[Round]:
    def choose(options: Sequence[Any]) -> Any:
        return draw(st.sampled_from(options))

    def asked() -> str:
        if choose([True, False, False, False]):
            return str(choose(PLAIN))
        return replace(Drawing(choose, landmarks=False).asked(3), having=None).cql()  # steps know no HAVING

    names, texts = ["a", "b", "c"], dict[str, str]()
    texts["a"] = asked()
    now, frontiers, rounds = dict.fromkeys(STREAMS, 0), dict.fromkeys(STREAMS, TICK_MIN), list[Round]()
    for _ in range(choose([2, 3, 4, 5, 6])):
        if rounds and choose([True, False]):
            texts = dict(texts)
            name = choose(names)
            if name in texts and len(texts) > 1 and choose([True, False]):
                del texts[name]
            else:
                texts[name] = asked()
        rows: dict[str, list[Row]] = {}
        for name in STREAMS:
            rows[name] = [
                random_row(choose, now[name] + step) for step in draw(st.lists(st.integers(-7, 6), max_size=4))
            ]
            now[name] = max([now[name], *(row["tick"] for row in rows[name])])
        frontiers = {name: max(frontiers[name], now[name] - choose([0, 2, 5])) for name in STREAMS}
        rounds.append(Round(rows, frontiers, texts))
    return rounds


@dataclass
class Run:
    lives: list[Life]
    late: list[Lateness]
    states: list[State]


def run(rounds: Sequence[Round], bits: int, history_ticks: int) -> Run:
    """Every round, with the sides of joins early or late."""
    state, running, seen = State(), dict[str, Life](), dict[str, int]()
    found = Run([], [], [])
    registry, plan = _planned(rounds[0].texts, bits)
    for number, given in enumerate(rounds):
        if number and given.texts != rounds[number - 1].texts:
            before = plan
            registry, plan = _planned(given.texts, bits)
            state = migrate(state, before, plan)
        running = {name: life for name, life in running.items() if registry.queries.get(name) == life.query}
        for name, query in registry.queries.items():
            if name not in running:
                running[name] = Life(query, number, state.since.get(name))
                found.lives.append(running[name])
        ticks = {name: [row["tick"] for row in rows] for name, rows in given.rows.items() if rows}
        seen = {name: max([*ticks.get(name, []), *([seen[name]] if name in seen else [])]) for name in {*ticks, *seen}}
        first = {name: min(own) for name, own in ticks.items()}
        brought = RoundInput(
            taken_of_plan(plan, given.rows, state), given.frontiers, seen=seen, first=first, idle=given.idle
        )
        state, answers, counts = step(state, brought, plan, history_ticks=history_ticks)
        blocks = list(answers.blocks())
        for life in running.values():
            life.last = number
            life.reported[number] = rows_of(blocks, life.query)
        found.late.append(counts.late)
        found.states.append(state)
    return found


def _planned(texts: Mapping[str, str], bits: int) -> tuple[Registry, Plan]:
    registry = registered(texts)
    return registry, planned(registry, PlanOptions(joins=join_plan(bits, registry)))


def closed(rounds: Sequence[Round], query: Query, number: int) -> int:
    """Up to where the windows of a query are closed before a round."""
    return TICK_MIN if number == 0 else min(rounds[number - 1].frontiers[name] for name in query.streams)


def arrived(rounds: Sequence[Round], number: int) -> dict[str, list[Row]]:
    return {name: [row for given in rounds[: number + 1] for row in given.rows[name]] for name in STREAMS}


def check_rows(rounds: Sequence[Round], life: Life) -> None:
    """A window is reported in the first round of a query's life in which it is closed, of all that has come by then."""
    done = TICK_MIN
    for number in range(life.first, life.last + 1):
        until, tuples = closed(rounds, life.query, number + 1), arrived(rounds, number)
        every = answer(life.query, tuples[life.query.stream]) if life.query.join is None else None
        wanted = [
            row
            for row in (answer_join(life.query, tuples) if every is None else every)
            if done < row["window_end"] <= until and life.is_covered(row["window_end"])
        ]
        if life.query.join is None:
            assert_equal_rows(life.query, tuples[life.query.stream], wanted, life.reported[number])
        else:
            assert_equal_join_rows(life.query, tuples, wanted, life.reported[number])
        done = until


def count_late(rounds: Sequence[Round], number: int, stream: str, lives: Sequence[Life]) -> LateCount:
    """Tuples of a stream that find a window closed for some query, by whether another one is open."""
    found = LateCount()
    for row in rounds[number].rows[stream]:
        missed = is_open = False
        for life in lives:
            before, is_fresh = closed(rounds, life.query, number), life.first == number and number > 0
            for source, where in _readers(life.query, stream):
                if where is not None and scalar(where)(row) is not True:
                    continue
                for start in windows_of(source.window, row["tick"]):
                    end = start + source.window.range_ticks
                    if end <= before and not (is_fresh and life.is_covered(end)):
                        missed = True
                    elif life.is_covered(end):
                        is_open = True
        found += LateCount(int(missed and is_open), int(missed and not is_open))
    return found


def _readers(query: Query, stream: str) -> list[tuple[WindowedStream, str | None]]:
    """Through which windows, and under which conditions, a query reads a stream."""
    if query.join is None:
        assert isinstance(query.source, WindowedStream)
        return [(query.source, None)] if query.stream == stream else []
    sides = [side for side in query.join.sides if side.source.stream == stream]
    return [(side.source, None if side.where is None else side.where.sql) for side in sides]
