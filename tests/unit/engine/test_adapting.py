"""A stream whose rate and groups change by orders of magnitude, without a JVM: plans follow, and nothing else does."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from support.catalogs import make_query
from support.durable import STREAMS, reported
from support.micro_batches import PLACEMENTS, CrashError, Frames, MicroBatches, crash_after
from windloom.model import Aggregate, Expression, TimeWindow
from windloom.optimizer.adapt.adapter import Adapter
from windloom.optimizer.adapt.chart import ChartOptions
from windloom.optimizer.adapt.followed import Preview
from windloom.optimizer.adapt.switches import choices_of
from windloom.plan.choices import Choices
from windloom.plan.observed import Coming, RoundObserved, SetRound, StreamRound
from windloom.plan.physical import Plan

SECOND = 1_000_000
SUMS = [Aggregate("sum", Expression.of_column("i")), Aggregate("max", Expression.of_column("x"))]
QUERIES = {
    name: make_query(name, TimeWindow(length * SECOND, 4 * SECOND), SUMS, groups)
    for name, length, groups in (("a", 8, ("k",)), ("b", 40, ("k",)), ("c", 24, ()))
}
CHARTS = ChartOptions(8, 2)


def batches(rounds: int = 14) -> list[Frames]:
    """Rounds of four seconds: few tuples of two groups, then forty times as many of many groups, then few again."""
    draw, found = random.Random(5), []
    for number in range(rounds):
        many = rounds // 3 <= number < 2 * rounds // 3
        rows = []
        for _ in range(400 if many else 10):
            tick = (4 * number) * SECOND + draw.randrange(4 * SECOND)
            key = f"k{draw.randrange(150 if many else 2)}"
            rows.append({"tick": tick, "k": key, "i": draw.randrange(9), "x": float(draw.randrange(100))})
        found.append({"s": sorted(rows, key=lambda row: row["tick"])})
    return found


def told(round_: Frames, factor: int = 1) -> dict[str, Coming]:
    """What a source tells of a round before it begins."""
    ticks = [row["tick"] for row in round_["s"]]
    return {"s": Coming(factor * len(ticks), min(ticks), max(ticks))}


def live(
    folder: Path, rounds: list[Frames], adapt: ChartOptions | None, placement: str = "driver", *, foreseen: bool = False
) -> MicroBatches:
    with MicroBatches(folder, STREAMS, adapt=adapt, placement=placement) as life:
        life.change(QUERIES)
        if foreseen and life.loop.adapting is not None:
            life.loop.adapting.coming = lambda batch: told(rounds[batch])
        for round_ in rounds[life.loop.next_round :]:
            life.round(round_)
        return life


@pytest.fixture(autouse=True)
def _switches_are_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of a few hundred tuples take so little that no switch would pay."""
    monkeypatch.setattr("windloom.optimizer.adapt.adapter.pays", lambda now, then, *_, **__: then.seconds < now.seconds)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_plans_follow_the_data_and_rows_do_not(tmp_path: Path, placement: str) -> None:
    rounds = batches()
    fixed = live(tmp_path / "fixed", rounds, None, placement)
    life = live(tmp_path / "adapting", rounds, CHARTS, placement)
    assert reported(tmp_path / "adapting") == reported(tmp_path / "fixed")
    last = life.done[-1]
    assert last.moves >= 2
    assert last.switches >= 1
    assert last.plan_version == last.switches
    assert last.fidelity is not None
    assert 0.0 <= last.fidelity <= 1.0
    assert last.regret >= 0.0
    assert {progress.switches for progress in fixed.done} == {0}
    # A prediction is of the round that follows; the first rounds have none.
    assert fixed.done[-1].predicted is None
    assert life.done[0].predicted is None
    assert last.predicted is not None
    assert last.predicted > 0


def test_crashes_change_neither_rows_nor_the_plan_of_a_round_that_had_begun(tmp_path: Path) -> None:
    rounds = batches(9)
    live(tmp_path / "fixed", rounds, None)
    for crash in (7, 13, 22, 31, 40, 48):
        with suppress(CrashError), crash_after(crash):
            live(tmp_path / "adapting", rounds, CHARTS)
    life = live(tmp_path / "adapting", rounds, CHARTS)
    assert reported(tmp_path / "adapting") == reported(tmp_path / "fixed")
    versions = [life.checkpoint.begun(number) for number in range(9)]
    known = [record.plan_version for record in versions if record is not None]
    assert known == sorted(known)


def test_what_is_chosen_for_a_round_that_is_foreseen_is_the_plan_of_that_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = batches(9)
    live(tmp_path / "fixed", rounds, None)

    def foresee(adapter: Adapter, coming: RoundObserved, preview: object) -> Choices | None:
        way = "native" if coming.streams["s"].tuples > 100 else "woven"
        return None if not adapter.followed else adapter.choices.with_option("intake", "s", way)

    monkeypatch.setattr(Adapter, "foresee", foresee)
    monkeypatch.setattr(Adapter, "done", lambda *_, **__: None)
    ways = []
    with MicroBatches(tmp_path / "adapting", STREAMS, adapt=CHARTS) as life:
        adapting = life.loop.adapting
        assert adapting is not None
        life.change(QUERIES)
        adapting.coming = lambda batch: told(rounds[batch])
        for round_ in rounds:
            life.round(round_)
            ways.append(adapting.adapter.choices.options_of("intake")["s"])
    assert ways[1:] == ["woven"] * 2 + ["native"] * 3 + ["woven"] * 3
    assert reported(tmp_path / "adapting") == reported(tmp_path / "fixed")


def test_crashes_change_neither_rows_nor_the_plan_of_a_round_that_was_foreseen(tmp_path: Path) -> None:
    rounds = batches(9)
    live(tmp_path / "fixed", rounds, None)
    began: dict[int, int] = {}
    for crash in (7, 13, 18, 22, 31, 40, 48, 500):
        with suppress(CrashError), crash_after(crash):
            live(tmp_path / "adapting", rounds, CHARTS, foreseen=True)
        with MicroBatches(tmp_path / "adapting", STREAMS) as life:
            for number in range(9):
                record = life.checkpoint.begun(number)
                if record is not None:
                    assert began.setdefault(number, record.plan_version) == record.plan_version
    assert len(began) == 9
    assert reported(tmp_path / "adapting") == reported(tmp_path / "fixed")


def test_a_source_that_told_something_else_than_what_came_is_not_asked_again(tmp_path: Path) -> None:
    rounds = batches(6)
    with MicroBatches(tmp_path, STREAMS, adapt=CHARTS) as life:
        adapting = life.loop.adapting
        assert adapting is not None
        life.change(QUERIES)
        adapting.coming = lambda batch: told(rounds[batch], factor=2 if batch == 2 else 1)
        foreseen = []
        for round_ in rounds:
            life.round(round_)
            foreseen.append("s" not in adapting._doubtful)
    assert foreseen == [True, True, False, False, False, False]


def test_after_a_preview_of_other_tuples_than_sets_got_a_stream_is_counted_and_no_longer_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where most tuples are late, or where the frame computes a column that its files have by the same name."""
    monkeypatch.setattr(Adapter, "_is_undecided", lambda adapter, followed: True)
    rounds, looked = batches(6), list[tuple[int, bool]]()
    with MicroBatches(tmp_path, STREAMS, adapt=CHARTS) as life:
        adapting = life.loop.adapting
        assert adapting is not None
        life.change(QUERIES)
        adapting.coming = lambda batch: told(rounds[batch])

        def preview(plan: Plan, coming: Mapping[str, Coming], known: Mapping[str, StreamRound]) -> Preview:
            number = life.loop.next_round
            looked.append((number, "s" in coming))
            shown = {each.identity: SetRound(9_999 if number == 3 else 0, 1, 1, 1, 1.0) for each in plan.sets}
            return lambda: RoundObserved(known, shown if number == 3 else {})

        adapting.preview = preview
        for round_ in rounds:
            life.round(round_)
        assert adapting._doubtful == set()
    assert looked == [(1, True), (2, True), (3, True), (4, False), (5, False)], "before the first one, there is no plan"


def test_a_preview_that_is_over_too_late_is_compared_with_no_other_round(tmp_path: Path) -> None:
    life = live(tmp_path, batches(2), CHARTS)
    adapting, seen = life.loop.adapting, RoundObserved({"s": StreamRound(10, 4.0, 4.0)})
    assert adapting is not None
    assert life.loop.plan is not None
    identity = life.loop.plan.sets[0].identity
    seen = replace(seen, sets={identity: SetRound(10, 2, 2, 2, 1.0)})
    shown = replace(seen, sets={identity: SetRound(5, 2, 2, 2, 1.0)})
    adapting._foreseen, adapting._shown = seen.streams, (dict(seen.streams), shown)
    adapting._doubt(seen)
    assert adapting._unlike == set()
    adapting._foreseen, adapting._shown = seen.streams, (seen.streams, shown)
    adapting._doubt(seen)
    assert adapting._unlike == {"s"}


def test_a_round_whose_times_are_not_told_is_taken_to_be_as_long_as_others(tmp_path: Path) -> None:
    life = live(tmp_path, batches(3), CHARTS)
    assert life.loop.adapting is not None
    usual = life.loop.memory.round_of("s")
    assert usual is not None
    found = life.loop.adapting._round_of("s", Coming(100), {})
    assert found is not None
    assert (found.tuples, found.seconds) == (100, usual)
    assert life.loop.adapting._round_of("never", Coming(100), {}) is None


def test_a_stream_that_no_query_reads_is_foreseen_and_compared_with_nothing(tmp_path: Path) -> None:
    rounds = batches(3)
    with MicroBatches(tmp_path, STREAMS, adapt=CHARTS) as life:
        adapting = life.loop.adapting
        assert adapting is not None
        life.change(QUERIES)
        adapting.coming = lambda batch: {**told(rounds[batch]), "unread": Coming(7, 0, 10)}
        for round_ in rounds:
            life.round(round_)
        assert adapting._doubtful == set()


def test_a_restart_goes_on_with_what_was_counted_and_learned(tmp_path: Path) -> None:
    rounds = batches(12)
    first = live(tmp_path, rounds[:9], CHARTS)
    assert first.loop.adapting is not None
    before = first.loop.adapting.adapter
    again = live(tmp_path, rounds, CHARTS)
    assert again.loop.adapting is not None
    after = again.loop.adapting.adapter
    assert [progress.round for progress in again.done] == [9, 10, 11]
    assert again.done[0].moves >= first.done[-1].moves > 0
    assert again.done[0].switches >= first.done[-1].switches > 0
    assert before.correction.rounds > 0
    assert after.correction.rounds >= before.correction.rounds


def test_a_record_names_the_choices_of_the_plan_that_ran(tmp_path: Path) -> None:
    life = live(tmp_path, batches(9), CHARTS)
    with MicroBatches(tmp_path, STREAMS, adapt=CHARTS) as again:
        for record in again.checkpoint.plans()[1:]:
            plan = again._queries.plan_of(record)
            assert choices_of(plan) == record.choices
    assert life.done[-1].switches > 0


def test_queries_that_change_get_charts_of_their_own(tmp_path: Path) -> None:
    rounds = batches(9)
    with MicroBatches(tmp_path, STREAMS, adapt=CHARTS) as life:
        life.change(QUERIES)
        for round_ in rounds[:4]:
            life.round(round_)
        assert life.loop.adapting is not None
        chart = life.loop.adapting.adapter.followed[0].chart
        life.change({"a": QUERIES["a"]})
        for round_ in rounds[4:]:
            life.round(round_)
        after = life.loop.adapting.adapter.followed[0].chart
        assert after is not None
        assert after is not chart
        assert [query.name for query in after.basin.queries] == ["a"]
