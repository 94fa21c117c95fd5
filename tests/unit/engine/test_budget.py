"""Rounds with a budget, without a JVM: a clock and costs of the test's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.catalogs import STREAM, make_query
from support.micro_batches import CrashError, Frames, ManualClock, MicroBatches, answers_in, crash_at
from support.postponing import flat_costs
from windloom.engine.budget import AnswerTimes, MeasuredAnswers, Scheduling
from windloom.model import Aggregate, Emission, Emits, Query, RowsWindow, TimeWindow, Urgency
from windloom.model.time import TICKS_PER_SECOND
from windloom.rounds.schedules import SCHEDULES

STREAMS = {"s": STREAM}
SECOND = TICKS_PER_SECOND


def counting(name: str, slide: int, grouping: tuple[str, ...], urgency: Urgency | None = None) -> Query:
    """Windows of twice the slide, in seconds; queries of different groupings are in different trees."""
    window = TimeWindow(2 * slide * SECOND, slide * SECOND)
    return replace(make_query(name, window, [Aggregate("count")], grouping), urgency=urgency or Urgency())


#: Three trees; `first` comes before all others.
QUERIES = {
    "usual": counting("usual", 10, ("k",)),
    "first": counting("first", 10, (), Urgency(12 * SECOND, 1)),
    "last": counting("last", 5, ("i",), Urgency(priority=9)),
}


def seconds(*ticks: int) -> Frames:
    return {"s": [{"tick": tick * SECOND, "k": "ab"[tick % 2], "i": tick % 3} for tick in ticks]}


def ends(folder: Path) -> dict[int, dict[str, list[int]]]:
    """By round and query, the seconds at which the windows that were reported end."""
    return {
        round: {name: sorted({row["window_end"] // SECOND for row in rows}) for name, rows in found.items()}
        for round, found in answers_in(folder).items()
    }


def life_of(folder: Path, budget: float | None = 3.0, **more: Any) -> MicroBatches:
    """A pass over a tree takes a second, and so does every window; taking in takes none."""
    schedule = more.pop("schedule", "edf")
    scheduling = Scheduling(flat_costs(1.0, 1.0), budget, schedule, lambda: 10.0)
    # What kernels really take on this machine is not part of the test.
    scheduling.learned = _Unlearned()
    clock = more.pop("clock", None) or ManualClock()
    return MicroBatches(folder, STREAMS, scheduling=scheduling, round_clock=clock, **more)


class _Unlearned(AnswerTimes):
    def add(self, measured: MeasuredAnswers) -> None: ...


def test_what_does_not_fit_is_answered_later_and_told(tmp_path: Path) -> None:
    with life_of(tmp_path) as life:
        life.change(QUERIES)
        life.round(seconds(0, 4))
        second = life.round(seconds(21))
        assert second.postponed == {"usual": 2, "last": 4}
        third = life.round(seconds(33))
        assert third.postponed == {"usual": 3, "last": 6}
        while life.catch_up():
            pass
        assert life.done[-1].postponed == {}
        assert life.done[-1].batch is None
    found = ends(tmp_path)
    assert found[1] == {"first": [10, 20]}
    assert found[2] == {"first": [30]}
    with life_of(tmp_path / "plain", budget=None) as life:
        life.change(QUERIES)
        for batch in (seconds(0, 4), seconds(21), seconds(33)):
            assert life.round(batch).postponed == {}
    assert rows_of(tmp_path) == rows_of(tmp_path / "plain")


def rows_of(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for answers in answers_in(folder).values():
        for name, rows in answers.items():
            found.setdefault(name, []).extend(map(repr, rows))
    return {name: sorted(rows) for name, rows in found.items()}


def test_a_task_that_does_not_fit_answers_its_oldest_windows_first(tmp_path: Path) -> None:
    with life_of(tmp_path, budget=6.0) as life:
        life.change({"last": QUERIES["last"], "usual": QUERIES["usual"]})
        life.round(seconds(0, 4))
        life.round(seconds(41))
        # A pass and four windows of the one fit; a pass and a window of the other would not.
        assert life.done[-1].postponed == {"last": 8}
        life.catch_up()
        assert life.done[-1].postponed == {"last": 3}
        life.catch_up()
    assert ends(tmp_path) == {1: {"usual": [10, 20]}, 2: {"last": [5, 10]}}


def test_the_time_that_taking_in_has_taken_is_spent(tmp_path: Path) -> None:
    clock = ManualClock()
    with life_of(tmp_path, budget=7.0, clock=clock) as life:
        take_in = life.jobs.take_in

        def slowly(*given: Any) -> Any:
            clock.now += 5.0
            return take_in(*given)

        life.change(QUERIES)
        life.round(seconds(0, 4))
        assert life.round(seconds(21)).postponed == {"last": 4}
        life.jobs.take_in = slowly  # type: ignore[method-assign]
        assert set(life.round(seconds(31)).postponed) == {"usual", "last"}


@pytest.mark.parametrize("point", ["after log", "after sink", "before commit"])
def test_a_repeated_round_answers_what_it_had_decided(tmp_path: Path, point: str) -> None:
    with life_of(tmp_path) as life:
        life.change(QUERIES)
        life.round(seconds(0, 4))
        with pytest.raises(CrashError), crash_at(point):
            life.round(seconds(21))
    # The next life has all the time there is.
    with life_of(tmp_path, budget=None) as life:
        repeated = life.round(seconds(21))
        assert repeated.postponed == {"usual": 2, "last": 4}
        assert ends(tmp_path)[1] == {"first": [10, 20]}
        assert life.round(seconds(22)).postponed == {}
    assert ends(tmp_path)[2] == {"usual": [10, 20], "last": [5, 10]}


def test_a_query_that_leaves_is_answered_before(tmp_path: Path) -> None:
    with life_of(tmp_path) as life:
        life.change(QUERIES)
        life.round(seconds(0, 4))
        life.round(seconds(21))
        life.change({"first": QUERIES["first"], "usual": QUERIES["usual"]})
        life.round(seconds(22))
        assert [done.batch for done in life.done] == [0, 1, None, 2]
    assert ends(tmp_path)[2]["last"] == [5, 10]


@pytest.mark.parametrize("point", ["after begun", "after log", "after commit"])
def test_a_crash_while_a_leaving_query_is_answered_loses_nothing(tmp_path: Path, point: str) -> None:
    with life_of(tmp_path) as life:
        life.change(QUERIES)
        life.round(seconds(0, 4))
        life.round(seconds(21))
        life.change({"first": QUERIES["first"], "usual": QUERIES["usual"]})
        with pytest.raises(CrashError), crash_at(point):
            life.round(seconds(22))
    with life_of(tmp_path) as life:
        life.round(seconds(22))
        life.catch_up(everything=True)
    with life_of(tmp_path / "plain", budget=None) as life:
        life.change(QUERIES)
        life.round(seconds(0, 4))
        life.round(seconds(21))
        life.change({"first": QUERIES["first"], "usual": QUERIES["usual"]})
        life.round(seconds(22))
    assert rows_of(tmp_path) == rows_of(tmp_path / "plain")


def test_the_end_of_a_stream_answers_everything(tmp_path: Path) -> None:
    with life_of(tmp_path) as life:
        life.change(QUERIES)
        life.round(seconds(0, 4))
        life.round(seconds(21))
        finished = life.finish()
        assert finished.postponed == {}
        assert not life.state.owed
        assert not life.catch_up()


def test_lateness_against_deadlines_is_counted(tmp_path: Path) -> None:
    clock = ManualClock()
    with life_of(tmp_path, budget=4.0, clock=clock) as life:
        life.change(QUERIES)
        life.round(seconds(0, 4))
        second = life.round(seconds(21))  # 10 and 20 close; both are what this stream begins with
        assert (second.answered_windows, second.late_windows) == (2, 0)
        third = life.round(seconds(52))  # 30, 40 and 50 close; 30 is 22 seconds ago, and wanted within 12
        assert third.late_answers == {"first": {"windows": 1, "seconds": 10.0}}
        assert (third.answered_windows, third.late_windows) == (3, 1)
        while life.catch_up():
            pass
        kept = life.loop.scheduling.kept
        assert (kept["first"].windows, kept["first"].late) == (5, 1)
        assert kept["usual"].windows == 5


def test_windows_of_rows_never_wait(tmp_path: Path) -> None:
    rows = make_query("rows", RowsWindow(2, 1), [Aggregate("count")])
    with life_of(tmp_path, budget=0.001) as life:
        life.change({**QUERIES, "rows": rows})
        life.round(seconds(0, 4))
        done = life.round(seconds(21, 22))
        assert "rows" not in done.postponed
        assert set(done.postponed) >= {"usual", "last"}


def test_queries_with_early_rows_never_wait_and_others_of_their_tree_do(tmp_path: Path) -> None:
    early = replace(QUERIES["usual"], name="early", emission=Emission(Emits.EARLY, 5 * SECOND))
    for number, queries in enumerate(({"early": early, **QUERIES}, {**QUERIES, "early": early})):
        with life_of(tmp_path / str(number), budget=0.001) as life:
            life.change(queries)
            life.round(seconds(0, 4))
            done = life.round(seconds(21, 22))
            assert {"usual", "early"} & set(done.postponed) == {"usual"}
            late = life.round(seconds(9, 23))  # what is early sees the late tuple, in windows that are open
            assert {"usual", "early"} & set(late.postponed) == {"usual"}
        found = answers_in(tmp_path / str(number))
        final = [
            [row["window_end"] // SECOND for row in own.get("early", []) if row["report"] == "final"]
            for own in found.values()
        ]
        assert sorted(end for own in final for end in own) == [10, 20]


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_every_schedule_answers_everything_in_the_end(tmp_path: Path, schedule: str) -> None:
    with life_of(tmp_path, budget=5.0, schedule=schedule) as life:
        life.change(QUERIES)
        for second in range(0, 120, 10):
            life.round(seconds(second + 1, second + 4))
        left = sum(life.done[-1].postponed.values())
        rounds = 0
        while life.catch_up():
            rounds += 1
            assert rounds <= left
    with life_of(tmp_path / "plain", budget=None) as life:
        life.change(QUERIES)
        for second in range(0, 120, 10):
            life.round(seconds(second + 1, second + 4))
    assert rows_of(tmp_path) == rows_of(tmp_path / "plain")


def test_units_are_learned_by_name_and_unknown_ones_take_what_all_take() -> None:
    learned = AnswerTimes()
    assert learned.ratios(["a", "b"]) == [1.0, 1.0]
    learned.add(MeasuredAnswers({"a": (1.0, 3.0), "b": (1.0, 1.0)}, answers=2.0, rest=0.5))
    assert learned.ratios(["a", "b", "c"]) == [3.0, 1.0, 2.0]
    assert learned.share() == 0.5
    assert (learned.rest, learned.length) == (0.5, 2.5)
    for _ in range(40):
        learned.add(MeasuredAnswers({"a": (1.0, 5.0)}, answers=5.0, rest=1.0))
    assert learned.ratios(["a"])[0] == pytest.approx(5.0)
    again = MeasuredAnswers.from_json(MeasuredAnswers({"a": (1.0, 5.0)}, 5.0, 1.0).to_json())
    assert again == MeasuredAnswers({"a": (1.0, 5.0)}, 5.0, 1.0)


def test_what_was_learned_is_in_the_checkpoint(tmp_path: Path) -> None:
    scheduling = Scheduling(flat_costs(1.0, 1.0), 100.0)
    with MicroBatches(tmp_path, STREAMS, scheduling=scheduling) as life:
        life.change(QUERIES)
        life.round(seconds(0, 4))
        life.round(seconds(21))
        found: Mapping[str, Any] = life.checkpoint.recent_progress(1)[0]["answering"]
        assert set(MeasuredAnswers.from_json(found).units) == set(QUERIES)
        assert scheduling.learned.length > 0
