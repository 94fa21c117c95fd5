"""Several streams with delays of their own, cut into rounds at random: each answers as if it were alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import INTAKES, STREAMS, make_query
from support.compare import assert_equal_answers, assert_equal_rows
from support.drawing import examples
from support.micro_batches import CrashError, MicroBatches, answers_in, crash_after
from support.rounds import Life, Round, count_late, expected_rows
from windloom.model import Aggregate, Expression, LandmarkWindow, Query, Stream, TimeWindow
from windloom.model.time import TICK_MAX, TICK_MIN

Row = dict[str, Any]

ASKED = st.sampled_from(
    [
        Aggregate("count"),
        Aggregate("sum", Expression.of_column("i")),
        Aggregate("last", Expression.of_column("k")),
        Aggregate("count", where=Expression.of_column("b")),
    ]
)
WINDOWS = st.sampled_from(
    [TimeWindow(*ticks) for ticks in [(4, 2), (8, 4), (6, 3), (12, 4), (5, 2), (10, 1)]] + [LandmarkWindow(5)]
)


@dataclass(frozen=True)
class Case:
    """Streams with delays, their queries, and rounds of tuples by stream."""

    streams: Mapping[str, Stream]
    queries: Mapping[str, Query]
    rounds: Sequence[Mapping[str, list[Row]]]

    def of_stream(self, name: str) -> list[Round]:
        """One stream by itself, as rounds with its own watermark, and its end."""
        own = {query.name: query for query in self.queries.values() if name in query.streams}
        found, largest = [], None
        for batch in self.rounds:
            ticks = [row["tick"] for row in batch.get(name, [])]
            largest = max([*ticks, *([] if largest is None else [largest])], default=None)
            watermark = TICK_MIN if largest is None else largest - self.streams[name].delay_ticks
            found.append(Round(batch.get(name, []), watermark, own))
        return [*found, Round([], TICK_MAX, own)]


@st.composite
def cases(draw: st.DrawFn, disorder: bool) -> Case:
    """Two or three streams whose times run apart. With disorder tuples may be late; without, none is."""
    names = ["s", "t", "u"][: draw(st.integers(2, 3))]
    streams = {name: replace(STREAMS[name], delay_ticks=draw(st.integers(0, 15))) for name in names}
    queries, now = {}, {name: draw(st.integers(-40, 40)) for name in names}
    for name in names:
        for number in range(draw(st.integers(1, 2))):
            grouping = draw(st.sampled_from([(), ("k",)]))
            query = make_query(f"{name}{number}", draw(WINDOWS), [draw(ASKED)], grouping, stream=name)
            queries[query.name] = query
    rounds = []
    for _ in range(draw(st.integers(1, 6))):
        found: dict[str, list[Row]] = {}
        for name in draw(st.lists(st.sampled_from(names), unique=True)):  # the others are silent
            behind = 12 if disorder else min(6, streams[name].delay_ticks)
            steps = draw(st.lists(st.integers(-behind, 9), max_size=8))
            found[name] = []
            for step in steps:
                tick = now[name] + step
                found[name].append({"tick": tick, "k": "abc"[tick % 3], "i": tick % 5, "b": tick % 4 > 0})
                now[name] = max(now[name], tick)
        rounds.append(found)
    return Case(streams, queries, rounds)


def run(case: Case, folder: Path, intake: str, crashes: Sequence[int] = ()) -> list[dict[str, Any]]:
    """All rounds and the end, in as many lives as there are crashes and one more; late tuples, round by round."""
    for crash in crashes:
        try:
            with crash_after(crash):
                live(case, folder, intake)
        except CrashError:
            pass
    return live(case, folder, intake)


def live(case: Case, folder: Path, intake: str) -> list[dict[str, Any]]:
    options: dict[str, Any] = {"intake": intake, "snapshot_rounds": 2}
    with MicroBatches(folder, case.streams, **options) as life:
        life.change(case.queries)
        for batch in case.rounds[life.loop.next_round :]:
            life.round(batch)
        if life.loop.next_round == len(case.rounds):
            life.finish()
        return [done["late"] for done in life.checkpoint.recent_progress(99)]


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(disorder=True), intake=INTAKES)
def test_each_stream_reports_and_counts_late_tuples_as_if_it_were_alone(case: Case, intake: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        late = run(case, Path(name), intake)
        answers = answers_in(Path(name))
    first = len(case.rounds) + 1 - len(late)  # figures of older rounds are dropped with their logs
    for stream in case.streams:
        rounds = case.of_stream(stream)
        lives = [Life(query, 0, None, len(rounds) - 1) for query in rounds[0].queries.values()]
        for life in lives:
            for number, rows in expected_rows(rounds, life).items():
                arrived = [row for before in rounds[: number + 1] for row in before.rows]
                assert_equal_rows(life.query, arrived, rows, answers.get(number, {}).get(life.query.name, []))
        for number in range(first, len(rounds)):
            expected, found = count_late(rounds, number, lives), late[number - first][stream]
            assert found == {"partly": expected.partly, "dropped": expected.dropped}


@settings(max_examples=examples(25), deadline=None)
@given(
    case=cases(disorder=False),
    intake=INTAKES,
    crashes=st.lists(st.integers(0, 40), max_size=3),
)
def test_rounds_and_crashes_change_nothing_of_what_a_batch_run_reports(
    case: Case, intake: str, crashes: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        late = run(case, Path(name), intake, crashes)
        answers = answers_in(Path(name))
    assert all(late_counts == {"partly": 0, "dropped": 0} for round in late for late_counts in round.values())
    for query in case.queries.values():
        rows = [row for batch in case.rounds for row in batch.get(query.stream, [])]
        found = [row for _, reported in sorted(answers.items()) for row in reported.get(query.name, [])]
        assert_equal_answers(query, rows, found)
