"""The adapter between two rounds: when it plans again, how soon it knows the best plan, and what it learns."""

from __future__ import annotations

from collections.abc import Hashable
from unittest.mock import patch

import pytest

from support.catalogs import STREAM, TYPES, make_query
from windloom.model import Aggregate, Expression, TimeWindow
from windloom.optimizer.adapt.basins import Basin, basins_of
from windloom.optimizer.adapt.candidates import candidates_at, choices_of
from windloom.optimizer.adapt.chart_figures import ExpectedRound, Figure, FigureKind, value_of
from windloom.optimizer.adapt.charts import ChartLookup, ChartOptions
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.replan import EARLY, MOST_PATIENCE, PATIENCE, Adapter, AdaptOptions, Replanner
from windloom.optimizer.adapt.round_cost import Correction
from windloom.optimizer.adapt.worker import BackgroundWorker, ImmediateWorker, Task, TaskPriority
from windloom.optimizer.cost.constants import shipped_constants
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions
from windloom.statistics.estimates import Estimates, Memory
from windloom.statistics.observations import RoundObserved, StreamRound
from windloom.statistics.set_statistics import Ongoing, SetRound

SECOND = 1_000_000
TAKEN = {"partials": 0.1, "step": 0.01, "answers": 0.01}
RATE, ROUND, GROUPS = (
    Figure(FigureKind.RATE, "s"),
    Figure(FigureKind.ROUND, "s"),
    Figure(FigureKind.GROUPS, "s", ("k",)),
)
REPLANNING, CHARTS = AdaptOptions(), AdaptOptions(ChartOptions(dimensions=1))


def a_basin() -> Basin:
    total = Aggregate("sum", Expression.of_column("x"))
    query = make_query("q", TimeWindow(20 * SECOND, 10 * SECOND), [total], ("k",))
    known = PlanningFacts(shipped_constants(), ongoing=Ongoing(10.0))
    (found,) = basins_of({"s": STREAM}, [query], TYPES, PlanOptions(), known)
    return found


def a_round(basin: Basin, tuples: int, groups: int) -> RoundObserved:
    (identity,) = basin.identities
    stream = StreamRound(tuples, 10.0, 10.0, {}, 1)
    return RoundObserved({"s": stream}, {identity: SetRound(tuples, min(tuples, groups), groups, groups, 1.0)})


def adapting(
    basin: Basin, memory: Memory, objective: Objective | None = None, options: AdaptOptions = REPLANNING
) -> Adapter:
    """An adapter after four rounds alike."""
    adapter = Adapter(memory, Estimates(), options, objective or Objective(), ImmediateWorker())
    adapter.begin(0, basin.plan(Estimates()), lambda: [basin])
    for _ in range(4):
        done(adapter, memory, a_round(basin, 1000, 100))
    return adapter


def done(adapter: Adapter, memory: Memory, seen: RoundObserved) -> None:
    memory.add(seen)
    adapter.done(seen, TAKEN, 1000)


# ---- planning again -------------------------------------------------------------------------------------------------


def test_after_a_round_the_best_plan_is_that_for_the_estimates_of_the_moment() -> None:
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory, Objective.of("memory"))
    (followed,) = adapter.followed
    for tuples, groups in ((1000, 100), (500_000, 50_000), (500_000, 2)):
        for _ in range(3):  # after two rounds that are unlike all others, these are forgotten
            done(adapter, memory, a_round(basin, tuples, groups))
        expected = candidates_at(basin, memory.estimates(), adapter.objective, adapter.correction)
        assert followed.candidates[0].choices == expected[0].choices
        assert adapter.choices in [candidate.choices for candidate in followed.candidates], (
            "it is compared with the others"
        )


def test_for_rounds_alike_nothing_is_planned_again_until_that_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    basin, memory, planned = a_basin(), Memory(), list[int]()
    adapter = adapting(basin, memory)
    monkeypatch.setattr(
        "windloom.optimizer.adapt.replan.candidates_at",
        lambda *arguments: planned.append(1) or candidates_at(*arguments),
    )
    monkeypatch.setattr(Adapter, "_judge", lambda *_: None)
    finder = adapter.followed[0].finder
    assert isinstance(finder, Replanner)
    for _ in range(EARLY, 64):
        done(adapter, memory, a_round(basin, 1000, 100))
    assert len(planned) <= 5, "ever less often"
    before = len(planned)
    for _ in range(2):
        adapter.foresee(RoundObserved({"s": StreamRound(200_000, 20.0, 20.0)}))
        adapter.foresee(RoundObserved({"s": StreamRound(10_000, 10.0, 10.0)}))
    assert len(planned) == before + 2, "a kind of rounds that has been planned for is known"


def test_a_plan_that_comes_too_late_for_its_round_counts_once() -> None:
    basin, memory, waiting = a_basin(), Memory(), list[Task]()
    planner = Replanner(basin, Objective())
    present = choices_of(basin.plan(Estimates()))

    def look(tuples: int) -> bool:
        coming = RoundObserved({"s": StreamRound(tuples, 10.0, 10.0)})
        expected = ExpectedRound(memory, Estimates(), coming)
        found = planner.candidates(expected, Correction(), present, lambda key, task: waiting.append(task))
        return found is not None

    assert not look(1000)
    waiting.pop()()
    assert look(2000), "nothing is known of such a round, and the newest plans are for much the same"
    assert not look(4000)
    assert look(1000)


def test_a_long_round_waits_until_the_plan_for_what_it_has_shown_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windloom.optimizer.adapt.replan.MOST_PATIENCE", 60.0)
    basin, memory = a_basin(), Memory()
    adapter = Adapter(memory, Estimates(), REPLANNING, Objective(), BackgroundWorker(at_once=60.0))
    adapter.begin(0, basin.plan(Estimates()), lambda: [basin])
    for tuples, groups in ((10_000, 100), (1_000_000, 800_000)):  # the next round need not run with the plan before
        seen = a_round(basin, tuples, groups)
        memory.add(seen)
        adapter.done(seen, {"partials": 6000.0, "step": 1.0, "answers": 1.0}, 1000)
        assert adapter.predicted is not None
    adapter.close()


def test_rounds_wait_by_a_small_share_of_what_they_took_which_is_saved_up() -> None:
    waits: list[float] = []

    class Idle(ImmediateWorker):
        """Nothing is ever done, so every round asks for a plan."""

        def submit(self, key: Hashable, task: Task, priority: TaskPriority) -> None: ...

        def wait(self, key: Hashable, seconds: float) -> None:
            waits.append(seconds)

    basin, memory = a_basin(), Memory()
    adapter = Adapter(memory, Estimates(), REPLANNING, Objective(), Idle())
    adapter.begin(0, basin.plan(Estimates()), lambda: [basin])
    for seconds in (2.0, 3.0, 1000.0):
        seen = a_round(basin, 1000, 100)
        memory.add(seen)
        assert adapter.done(seen, {"partials": seconds}, 1000) is None, "the plan in force stays"
    assert waits == pytest.approx([2 * PATIENCE, 5 * PATIENCE, MOST_PATIENCE], rel=0.1)


# ---- rounds that are announced --------------------------------------------------------------------------------------


def test_what_is_announced_of_a_round_counts_instead_of_what_is_remembered() -> None:
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory)
    coming = RoundObserved({"s": StreamRound(200_000, 20.0, 20.0)})
    expected = ExpectedRound(memory, Estimates(), coming)
    assert (expected.value(RATE, basin), expected.value(ROUND, basin)) == (10_000, 20.0)
    assert round(expected.value(GROUPS, basin) or 0) == 100, "which is not announced"
    assert value_of(RATE, basin, expected.estimates(basin)) == 10_000
    before = adapter.predicted
    adapter.foresee(coming)
    assert before is not None
    assert adapter.predicted is not None
    assert adapter.predicted > before


def test_after_a_round_that_was_announced_nothing_is_chosen_before_the_next_one_is() -> None:
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory, Objective.of({"latency": 0.4, "memory": 0.6}))
    asked: list[str] = []
    with patch.object(Adapter, "_choose", lambda self, expected: asked.append("chosen")):
        seen = a_round(basin, 1000, 100)
        adapter.foresee(RoundObserved(seen.streams))
        adapter.done(seen, TAKEN, 1000)
        assert len(asked) == 1
        adapter.done(seen, TAKEN, 1000)
        assert len(asked) == 2, "this one was not announced"


# ---- charts ---------------------------------------------------------------------------------------------------------


def test_a_chart_is_there_with_its_region_after_one_round_and_again_after_a_leap() -> None:
    basin, memory = a_basin(), Memory()
    adapter = Adapter(memory, Estimates(), CHARTS, Objective(), ImmediateWorker())
    adapter.begin(0, basin.plan(Estimates()), lambda: [basin])
    done(adapter, memory, a_round(basin, 1000, 100))
    finder = adapter.followed[0].finder
    assert isinstance(finder, ChartLookup)
    assert finder.chart is not None
    first = finder.chart
    assert len(first.regions) == 1, "no round has to ask for it"
    for _ in range(4):
        done(adapter, memory, a_round(basin, 1000, 100))
    assert finder.chart is first
    for _ in range(3):
        done(adapter, memory, a_round(basin, 500_000, 50_000))
    assert finder.chart is not None
    assert finder.chart is not first, "figures that are no dimension have leapt"
    assert finder.region in finder.chart.regions
    assert adapter.moves > 0


def test_a_chart_that_is_drawn_for_an_announced_leap_holds_in_the_round_of_the_leap() -> None:
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory, options=CHARTS)
    finder = adapter.followed[0].finder
    assert isinstance(finder, ChartLookup)
    before = finder.chart
    leap = RoundObserved({"s": StreamRound(200_000, 20.0, 20.0)})
    adapter.foresee(leap)
    drawn = finder.chart
    assert drawn is not None
    assert drawn is not before
    assert value_of(RATE, basin, drawn.base) == 10_000
    adapter.foresee(leap)
    assert finder.chart is drawn


# ---- learning -------------------------------------------------------------------------------------------------------


def test_what_answers_take_after_a_switch_is_no_price_of_compiling() -> None:
    basin, memory = a_basin(), Memory()
    adapter = Adapter(memory, Estimates(), REPLANNING, Objective(), ImmediateWorker())
    plan = basin.plan(Estimates())
    adapter.begin(0, plan, lambda: [basin])
    for _ in range(6):
        done(adapter, memory, a_round(basin, 1000, 100))
    before, (present,) = adapter.prices.recompiling, choices_of(plan).options_of("intake").values()
    other = choices_of(plan).with_option("intake", "s", "native" if present == "woven" else "woven")
    adapter.begin(1, basin.plan(Estimates(), other), lambda: [basin])
    seen = a_round(basin, 1000, 100)
    memory.add(seen)
    adapter.done(seen, {"partials": 0.1, "step": 0.01, "answers": 60.0}, 1000)
    assert adapter.prices.recompiling < before


def test_a_round_is_judged_by_what_was_known_of_the_machine_when_its_plan_was_chosen() -> None:
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory)
    known, judged = adapter.correction, []
    with patch.object(Adapter, "_judged", lambda self, choices, seen, corrected: judged.append(corrected)):
        seen = a_round(basin, 1000, 100)
        memory.add(seen)
        adapter.done(seen, {"partials": 9.0, "step": 1.0, "answers": 1.0}, 1000)
    assert judged == [known]
    assert adapter.correction is not known


def test_spark_has_compiled_for_options_that_have_run_in_whatever_plan() -> None:
    adapter = adapting(a_basin(), Memory())
    (way,) = adapter.choices.options_of("intake").items()
    assert ("intake", *way) in adapter._compiled
