"""Streams cut into rounds, and what a loom must report of them: the rules of lateness and history, by definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from support.catalogs import STREAM, TYPES
from support.compare import rows_of
from support.native import taken_of_plan
from windloom.model import LandmarkWindow, Query, Window
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows.cumulate import CumulateWindow
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.rounds.lateness import LateCount, Lateness
from windloom.rounds.step import step
from windloom.state.plan_change import migrate
from windloom.state.state import State
from windloom.testing import answer
from windloom.weave.round_input import RoundInput
from windloom_tools.oracle.answers import answer_from, cumulated, windows_of

Row = dict[str, Any]


@dataclass(frozen=True)
class Round:
    """What one round brings: tuples, the watermark behind them, and the queries that run."""

    rows: Sequence[Row]
    watermark: int
    queries: Mapping[str, Query]


@dataclass
class Life:
    """One query from the round it was added in to the one it was last part of, and what it reported."""

    query: Query
    first: int
    since: int | None
    last: int = 0
    reported: dict[int, list[Row]] = field(default_factory=dict)  # by round


@dataclass
class Run:
    """All lives of all queries, the state behind each round, and its late tuples."""

    lives: list[Life]
    states: list[State]
    late: list[Lateness]


def changed_queries(
    draw: st.DrawFn, running: Mapping[str, Query], names: Sequence[str], asking: st.SearchStrategy[Query]
) -> dict[str, Query]:
    """One or two queries are removed, added or replaced."""
    found = dict(running)
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2)):
        if name in found and draw(st.booleans()):
            del found[name]
        else:
            found[name] = renamed(draw(asking), name)
    return found


def plan_of(queries: Mapping[str, Query], options: PlanOptions | None = None) -> Plan:
    return _plan(tuple(queries.values()), options or PlanOptions())


@lru_cache(maxsize=64)
def _plan(queries: tuple[Query, ...], options: PlanOptions) -> Plan:
    return make_plan({"s": STREAM}, queries, TYPES, options, PlanningFacts())


def run_rounds(
    rounds: Sequence[Round], options: PlanOptions | None = None, history_ticks: int = 0, begun: State | None = None
) -> Run:
    """The step, folded over the rounds, carried where queries change; it begins with the state `begun`."""
    state, plan, running = begun or State(), None, {}
    run = Run([], [], [])
    seen: dict[str, int] = {}
    for number, round_ in enumerate(rounds):
        new = plan_of(round_.queries, options)
        if plan is not None and new is not plan and new != plan:
            state = migrate(state, plan, new)
        plan = new
        running = {name: life for name, life in running.items() if round_.queries.get(name) == life.query}
        for name, query in round_.queries.items():
            if name not in running:
                running[name] = Life(query, number, state.since.get(name))
                run.lives.append(running[name])
        seen = {"s": max([row["tick"] for row in round_.rows] + list(seen.values()))} if round_.rows or seen else {}
        state, answers, counts = step(
            state,
            RoundInput(
                taken_of_plan(plan, round_.rows, state), {"s": round_.watermark}, seen=seen, first=first_of(round_.rows)
            ),
            plan,
            history_ticks=history_ticks,
        )
        blocks = list(answers.blocks())
        for life in running.values():
            life.last = number
            life.reported[number] = rows_of(blocks, life.query)
        run.states.append(state)
        run.late.append(counts.late)
    return run


def first_of(rows: Sequence[Row]) -> dict[str, int]:
    """The smallest tick that a round brings, by stream."""
    return {"s": min(row["tick"] for row in rows)} if rows else {}


def landmark_of(rounds: Sequence[Round], number: int, life: Life) -> int | None:
    """Where the windows of a landmark query begin as far as it is known in a round; None before the first tuple."""
    if life.since is not None:
        return life.since
    first: int | None = None
    for place, round_ in enumerate(rounds[: number + 1]):
        settled = first is not None and first < closed_before(rounds, place)
        if round_.rows and not settled:
            smallest = min(row["tick"] for row in round_.rows)
            first = smallest if first is None else min(first, smallest)
    return None if first is None else life.query.window.last_start(first)


def closed_before(rounds: Sequence[Round], number: int) -> int:
    """Up to where windows are closed when a round starts."""
    return max([TICK_MIN, *(round_.watermark for round_ in rounds[:number])])


def expected_rows(rounds: Sequence[Round], life: Life) -> dict[int, list[Row]]:
    """By round: a window is reported in the first round of the query's life whose watermark has passed its end, of all
    tuples that have arrived by then."""
    expected = {}
    done = TICK_MIN
    for number in range(life.first, life.last + 1):
        until = closed_before(rounds, number + 1)
        arrived = [row for round_ in rounds[: number + 1] for row in round_.rows]
        expected[number] = [
            row
            for row in _all_answers(rounds, number, life, [row for row in arrived if _passes(life.query, row)], until)
            if done < row["window_end"] <= until and (life.since is None or row["window_start"] >= life.since)
        ]
        done = until
    return expected


def _all_answers(rounds: Sequence[Round], number: int, life: Life, arrived: Sequence[Row], until: int) -> list[Row]:
    window = life.query.window
    if not isinstance(window, LandmarkWindow):
        return answer(life.query, arrived)
    start = landmark_of(rounds, number, life)
    if start is None:
        return []
    if until == TICK_MAX:
        last = max(row["tick"] for round_ in rounds[: number + 1] for row in round_.rows)
        until = window.last_start(last) + window.slide_ticks
    return answer_from(life.query, arrived, start, until)


def count_late(rounds: Sequence[Round], number: int, lives: Sequence[Life]) -> LateCount:
    """Of a round, tuples that are late for the queries taken together: with a window that is closed, by whether
    another one will still be reported."""
    closed = closed_before(rounds, number)
    found = LateCount()
    for row in rounds[number].rows:
        missed = open_ = False
        for life in lives:
            if not _passes(life.query, row):
                continue
            window, is_fresh = life.query.window, life.first == number and number > 0
            if isinstance(window, LandmarkWindow):
                landmark = landmark_of(rounds, number, life)
                assert landmark is not None
                if row["tick"] >= landmark:
                    missed |= window.last_start(row["tick"]) + window.slide_ticks <= closed and not is_fresh
                    open_ |= closed < TICK_MAX
                else:
                    missed |= row["tick"] < closed and life.since is None
                continue
            for start, end in _windows_of(window, row["tick"]):
                covered = life.since is None or start >= life.since
                is_closed = end <= closed
                if is_closed and not (is_fresh and covered):
                    missed = True
                elif covered:
                    open_ = True
        found += LateCount(int(missed and open_), int(missed and not open_))
    return found


def _windows_of(window: Window, tick: int) -> list[tuple[int, int]]:
    if isinstance(window, CumulateWindow):
        return cumulated(window, tick)
    return [(start, start + window.range_ticks) for start in windows_of(window, tick)]


def _passes(query: Query, row: Row) -> bool:
    return query.where is None or row[str(query.where.column)] is True


def in_order(rows: Sequence[Row], delays: Sequence[int]) -> list[Row]:
    """Rows in an order of arrival in which none comes more than its delay behind a later one."""
    order = sorted(range(len(rows)), key=lambda i: (rows[i]["tick"] + delays[i % len(delays)], i))
    return [rows[i] for i in order]


def renamed(query: Query, name: str) -> Query:
    return replace(query, name=name)
