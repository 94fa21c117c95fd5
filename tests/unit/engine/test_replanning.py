"""A stream whose rate and groups change by orders of magnitude, without a JVM: plans follow, and nothing else does."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from support.catalogs import make_query
from support.durable import STREAMS, reported
from support.micro_batches import CrashError, Frames, MicroBatches, crash_after
from windloom.model import Aggregate, Expression, TimeWindow
from windloom.optimizer.adapt.candidates import choices_of
from windloom.optimizer.adapt.charts import ChartOptions
from windloom.optimizer.adapt.replan import Adapter, AdaptOptions
from windloom.plan.costs import Choices
from windloom.statistics.observations import ExpectedInput, RoundObserved

SECOND = 1_000_000
SUMS = [Aggregate("sum", Expression.of_column("i")), Aggregate("max", Expression.of_column("x"))]
QUERIES = {
    name: make_query(name, TimeWindow(length * SECOND, 4 * SECOND), SUMS, groups)
    for name, length, groups in (("a", 8, ("k",)), ("b", 40, ("k",)), ("c", 24, ()))
}
REPLANNING, CHARTS = AdaptOptions(), AdaptOptions(ChartOptions(8, 2))


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


def told(round_: Frames, factor: int = 1) -> dict[str, ExpectedInput]:
    """What a source tells of a round before it begins."""
    ticks = [row["tick"] for row in round_["s"]]
    return {"s": ExpectedInput(factor * len(ticks), min(ticks), max(ticks))}


def live(folder: Path, rounds: list[Frames], adapt: AdaptOptions | None, *, foreseen: bool = False) -> MicroBatches:
    with MicroBatches(folder, STREAMS, adapt=adapt) as life:
        life.change(QUERIES)
        if foreseen and life.loop.adapting is not None:
            life.loop.adapting.coming = lambda batch: told(rounds[batch])
        for round_ in rounds[life.loop.next_round :]:
            life.round(round_)
        return life


@pytest.fixture(autouse=True)
def _switches_are_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of a few hundred tuples take so little that no switch would pay."""
    monkeypatch.setattr("windloom.optimizer.adapt.replan.pays", lambda now, then, *_, **__: then.seconds < now.seconds)


@pytest.mark.parametrize("adapt", [REPLANNING, CHARTS])
def test_plans_follow_the_data_and_rows_do_not(tmp_path: Path, adapt: AdaptOptions) -> None:
    rounds = batches()
    fixed = live(tmp_path / "fixed", rounds, None)
    life = live(tmp_path / "adapting", rounds, adapt)
    assert reported(tmp_path / "adapting") == reported(tmp_path / "fixed")
    last = life.done[-1]
    assert last.moves >= 2 if adapt.charts else last.moves == 0
    assert last.previews == 0
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
            live(tmp_path / "adapting", rounds, REPLANNING)
    life = live(tmp_path / "adapting", rounds, REPLANNING)
    assert reported(tmp_path / "adapting") == reported(tmp_path / "fixed")
    versions = [life.checkpoint.begun(number) for number in range(9)]
    known = [record.plan_version for record in versions if record is not None]
    assert known == sorted(known)


def test_what_is_chosen_for_a_round_that_is_foreseen_is_the_plan_of_that_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = batches(9)
    live(tmp_path / "fixed", rounds, None)

    def foresee(adapter: Adapter, coming: RoundObserved) -> Choices | None:
        way = "native" if coming.streams["s"].tuples > 100 else "woven"
        return None if not adapter.followed else adapter.choices.with_option("intake", "s", way)

    monkeypatch.setattr(Adapter, "foresee", foresee)
    monkeypatch.setattr(Adapter, "done", lambda *_, **__: None)
    ways = []
    with MicroBatches(tmp_path / "adapting", STREAMS, adapt=REPLANNING) as life:
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
            live(tmp_path / "adapting", rounds, REPLANNING, foreseen=True)
        with MicroBatches(tmp_path / "adapting", STREAMS) as life:
            for number in range(9):
                record = life.checkpoint.begun(number)
                if record is not None:
                    assert began.setdefault(number, record.plan_version) == record.plan_version
    assert len(began) == 9
    assert reported(tmp_path / "adapting") == reported(tmp_path / "fixed")


def test_a_source_that_told_something_else_than_what_came_is_not_asked_again(tmp_path: Path) -> None:
    rounds = batches(6)
    with MicroBatches(tmp_path, STREAMS, adapt=REPLANNING) as life:
        adapting = life.loop.adapting
        assert adapting is not None
        life.change(QUERIES)
        adapting.coming = lambda batch: told(rounds[batch], factor=2 if batch == 2 else 1)
        foreseen = []
        for round_ in rounds:
            life.round(round_)
            foreseen.append("s" not in adapting._doubtful)
    assert foreseen == [True, True, False, False, False, False]


def test_a_round_whose_times_are_not_told_is_taken_to_be_as_long_as_others(tmp_path: Path) -> None:
    life = live(tmp_path, batches(3), REPLANNING)
    assert life.loop.adapting is not None
    usual = life.loop.memory.round_of("s")
    assert usual is not None
    found = life.loop.adapting._round_of("s", ExpectedInput(100), {})
    assert found is not None
    assert (found.tuples, found.seconds) == (100, usual)
    assert life.loop.adapting._round_of("never", ExpectedInput(100), {}) is None


def test_a_stream_that_no_query_reads_is_foreseen_and_compared_with_nothing(tmp_path: Path) -> None:
    rounds = batches(3)
    with MicroBatches(tmp_path, STREAMS, adapt=REPLANNING) as life:
        adapting = life.loop.adapting
        assert adapting is not None
        life.change(QUERIES)
        adapting.coming = lambda batch: {**told(rounds[batch]), "unread": ExpectedInput(7, 0, 10)}
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
    life = live(tmp_path, batches(9), REPLANNING)
    with MicroBatches(tmp_path, STREAMS, adapt=REPLANNING) as again:
        for record in again.checkpoint.plans()[1:]:
            plan = again._queries.plan_of(record)
            assert choices_of(plan) == record.choices
    assert life.done[-1].switches > 0


def test_queries_that_change_are_planned_for_themselves(tmp_path: Path) -> None:
    rounds = batches(9)
    with MicroBatches(tmp_path, STREAMS, adapt=REPLANNING) as life:
        life.change(QUERIES)
        for round_ in rounds[:4]:
            life.round(round_)
        assert life.loop.adapting is not None
        before = life.loop.adapting.adapter.followed[0]
        life.change({"a": QUERIES["a"]})
        for round_ in rounds[4:]:
            life.round(round_)
        after = life.loop.adapting.adapter.followed[0]
        assert after is not before
        assert after.candidates
        assert [query.name for query in after.basin.queries] == ["a"]
