"""The adapter between two rounds: how soon it knows the best plan after a stream begins, and after it leaps."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, replace
from unittest.mock import patch

import pytest

from support.catalogs import STREAM, TYPES, make_query
from windloom.model import Aggregate, Expression, TimeWindow
from windloom.optimizer import Known, PlanOptions
from windloom.optimizer.adapt.adapter import MOST_PATIENCE, PATIENCE, Adapter
from windloom.optimizer.adapt.basin import Basin, basins_of
from windloom.optimizer.adapt.candidates import Candidate
from windloom.optimizer.adapt.chart import ChartOptions
from windloom.optimizer.adapt.correction import Correction
from windloom.optimizer.adapt.figures import Figure, Kind, value_of
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.round_cost import RoundCost
from windloom.optimizer.adapt.switches import choices_of
from windloom.optimizer.adapt.work import AtOnce, Beside, Task, Urgency
from windloom.optimizer.cost.constants import shipped_constants
from windloom.optimizer.known import with_statistics
from windloom.plan.choices import Choices
from windloom.plan.estimates import Estimates
from windloom.plan.memory import Memory, estimates_of
from windloom.plan.observed import RoundObserved, SetRound, StreamRound
from windloom.plan.statistics import Ongoing

SECOND = 1_000_000


def a_basin() -> Basin:
    total = Aggregate("sum", Expression.of_column("x"))
    query = make_query("q", TimeWindow(20 * SECOND, 10 * SECOND), [total], ("k",))
    known = Known(shipped_constants(), ongoing=Ongoing(10.0))
    (found,) = basins_of({"s": STREAM}, [query], TYPES, PlanOptions(), known)
    return found


def a_round(basin: Basin, tuples: int, groups: int) -> RoundObserved:
    (identity,) = basin.identities
    stream = StreamRound(tuples, 10.0, 10.0, {}, 1)
    return RoundObserved({"s": stream}, {identity: SetRound(tuples, min(tuples, groups), groups, groups, 1.0)})


def test_a_chart_is_there_with_its_region_after_one_round_and_again_after_a_leap() -> None:
    basin, memory = a_basin(), Memory()
    adapter = Adapter(memory, Estimates(), ChartOptions(dimensions=1), Objective(), AtOnce())
    adapter.begin(0, basin.plan(Estimates()), lambda: [basin])

    def done(tuples: int, groups: int) -> None:
        seen = a_round(basin, tuples, groups)
        memory.add(seen)
        adapter.done(seen, {"partials": 0.1, "step": 0.01, "answers": 0.01}, 1000)

    done(1000, 100)
    (followed,) = adapter.followed
    assert followed.chart is not None
    first = followed.chart
    assert len(first.regions) == 1, "no round has to ask for it"
    for _ in range(4):
        done(1000, 100)
    for _ in range(3):
        done(500_000, 50_000)
    assert followed.chart is not None
    assert followed.chart is not first, "figures that are no dimension have leapt"
    assert followed.chart.region(adapter.values(followed, followed.chart)) in followed.chart.regions


def test_a_long_round_waits_until_the_plan_for_what_it_has_shown_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windloom.optimizer.adapt.adapter.MOST_PATIENCE", 60.0)
    basin, memory = a_basin(), Memory()
    adapter = Adapter(memory, Estimates(), ChartOptions(), Objective(), Beside(at_once=60.0))
    adapter.begin(0, basin.plan(Estimates()), lambda: [basin])

    def done(tuples: int, groups: int) -> None:
        seen = a_round(basin, tuples, groups)
        memory.add(seen)
        adapter.done(seen, {"partials": 6000.0, "step": 1.0, "answers": 1.0}, 1000)
        (followed,) = adapter.followed
        assert followed.chart is not None
        assert followed.chart.region(adapter.values(followed, followed.chart)) in followed.chart.regions

    done(10_000, 100)
    done(1_000_000, 800_000)  # the next round need not run with the plan for the one before
    adapter.close()


def test_rounds_wait_by_a_small_share_of_what_they_took_which_is_saved_up() -> None:
    waits: list[float] = []

    class Idle(AtOnce):
        """Nothing is ever done, so every round asks for a chart."""

        def submit(self, key: Hashable, task: Task, urgency: Urgency) -> None: ...

        def wait(self, key: Hashable, seconds: float) -> None:
            waits.append(seconds)

    basin, memory = a_basin(), Memory()
    adapter = Adapter(memory, Estimates(), ChartOptions(), Objective(), Idle())
    adapter.begin(0, basin.plan(Estimates()), lambda: [basin])
    for seconds in (2.0, 3.0, 1000.0):
        seen = a_round(basin, 1000, 100)
        memory.add(seen)
        adapter.done(seen, {"partials": seconds}, 1000)
    assert waits == pytest.approx([2 * PATIENCE, 5 * PATIENCE, MOST_PATIENCE], rel=0.1)


def test_what_answers_take_after_a_switch_is_no_price_of_compiling() -> None:
    basin, memory = a_basin(), Memory()
    adapter = Adapter(memory, Estimates(), ChartOptions(), Objective(), AtOnce())
    plan = basin.plan(Estimates())
    adapter.begin(0, plan, lambda: [basin])

    def done(taking_in: float, answers: float) -> None:
        seen = a_round(basin, 1000, 100)
        memory.add(seen)
        adapter.done(seen, {"partials": taking_in, "step": 0.01, "answers": answers}, 1000)

    for _ in range(6):
        done(0.1, 0.01)
    before, (present,) = adapter.prices.recompiling, choices_of(plan).options_of("intake").values()
    other = choices_of(plan).with_option("intake", "s", "native" if present == "woven" else "woven")
    adapter.begin(1, basin.plan(Estimates(), other), lambda: [basin])
    done(0.1, 60.0)
    assert adapter.prices.recompiling < before


def test_a_chart_that_has_drifted_is_filled_where_the_stream_is_before_rounds_see_it() -> None:
    basin, memory = a_basin(), Memory()
    adapter = Adapter(memory, Estimates(), ChartOptions(dimensions=1), Objective(), AtOnce())
    adapter.begin(0, basin.plan(Estimates()), lambda: [basin])
    for groups in (50_000, 50_000, 150_000, 150_000, 150_000, 150_000):  # groups are no dimension, and leap by little
        seen = a_round(basin, 500_000, groups)
        memory.add(seen)
        adapter.done(seen, {"partials": 0.1, "step": 0.01, "answers": 0.01}, 1000)
        (followed,) = adapter.followed
        assert followed.chart is not None
        assert followed.region in followed.chart.regions


TAKEN = {"partials": 0.1, "step": 0.01, "answers": 0.01}
RATE, ROUND, GROUPS = Figure(Kind.RATE, "s"), Figure(Kind.ROUND, "s"), Figure(Kind.GROUPS, "s", ("k",))


def adapting(
    basin: Basin, memory: Memory, objective: Objective | None = None, options: ChartOptions | None = None
) -> Adapter:
    adapter = Adapter(memory, Estimates(), options or ChartOptions(), objective or Objective(), AtOnce())
    adapter.begin(0, basin.plan(Estimates()), lambda: [basin])
    for _ in range(4):
        seen = a_round(basin, 1000, 100)
        memory.add(seen)
        adapter.done(seen, TAKEN, 1000)
    return adapter


def test_what_is_foreseen_of_a_round_counts_instead_of_what_is_remembered() -> None:
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory)
    (followed,) = adapter.followed
    assert followed.chart is not None
    figures = [*followed.chart.figures, *followed.chart.others]
    assert RATE in figures
    before = adapter.predicted
    adapter.foresee(RoundObserved({"s": StreamRound(200_000, 20.0, 20.0)}))
    now = dict(zip(figures, adapter.values(followed, followed.chart), strict=True))
    assert now[RATE] == 10_000
    assert now.get(ROUND, 20.0) == 20.0
    assert round(now.get(GROUPS, 100.0)) == 100, "which is not foreseen"
    assert before is not None
    assert adapter.predicted is not None
    assert adapter.predicted > before


def test_a_chart_that_is_drawn_for_a_foreseen_leap_holds_in_the_round_of_the_leap() -> None:
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory, options=ChartOptions(dimensions=1))
    (followed,) = adapter.followed
    before = followed.chart
    assert before is not None
    leap = RoundObserved({"s": StreamRound(200_000, 20.0, 20.0)})
    adapter.foresee(leap)
    drawn = followed.chart
    assert drawn is not None
    assert drawn is not before
    assert value_of(RATE, basin, drawn.base) == 10_000
    adapter.foresee(leap)
    assert followed.chart is drawn


def test_after_a_round_that_was_foreseen_nothing_is_chosen_before_the_next_one_is() -> None:
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory, Objective.of({"latency": 0.4, "memory": 0.6}))
    asked: list[str] = []
    with patch.object(Adapter, "_chosen", lambda self: asked.append("chosen")):
        seen = a_round(basin, 1000, 100)
        adapter.foresee(RoundObserved(seen.streams))
        adapter.done(seen, TAKEN, 1000)
        assert len(asked) == 1
        adapter.done(seen, TAKEN, 1000)
        assert len(asked) == 2, "this one was not foreseen"


def a_preview(basin: Basin, cells: int) -> RoundObserved:
    """As `a_round` of 1,000 tuples, which make other numbers of cells than were remembered."""
    seen = a_round(basin, 1000, 100)
    return RoundObserved(seen.streams, {identity: replace(own, cells=cells) for identity, own in seen.sets.items()})


@pytest.mark.parametrize("is_close", [True, False])
def test_a_closer_look_is_taken_if_another_plan_is_nearly_as_good(
    is_close: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windloom.optimizer.adapt.adapter.has_rival", lambda *_: is_close)
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory)
    (followed,) = adapter.followed
    looked: list[int] = []
    shown = a_preview(basin, 900)

    def preview() -> RoundObserved:
        looked.append(1)
        return shown

    adapter.foresee(RoundObserved(shown.streams), preview)
    assert len(looked) == is_close
    assert (adapter.adapted.undecided, adapter.adapted.previews) == (is_close, is_close)
    assert (adapter._coming is shown) is is_close
    if not is_close:
        assert followed.weighed is None
        return
    assert followed.weighed is not None
    coming, candidates = followed.weighed
    assert coming is shown
    estimates = estimates_of(shown).before(memory.estimates())
    for candidate in candidates:
        plan = basin.plan(estimates, candidate.choices)
        cost = basin.cost(with_statistics(plan, basin.known.with_estimates(estimates)))
        assert asdict(candidate.cost) == pytest.approx(asdict(cost)), "as if it were judged afterwards"


def test_a_preview_that_shows_nothing_leaves_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windloom.optimizer.adapt.adapter.has_rival", lambda *_: True)
    basin, memory = a_basin(), Memory()
    adapter, coming = adapting(basin, memory), RoundObserved({"s": StreamRound(1000, 10.0, 10.0)})
    adapter.foresee(coming, lambda: None)
    assert adapter._coming is coming
    assert (adapter.adapted.undecided, adapter.adapted.previews) == (1, 0)


def test_a_look_that_is_over_too_late_tells_of_no_other_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windloom.optimizer.adapt.adapter.has_rival", lambda *_: True)
    late: list[Task] = []

    class Late(AtOnce):
        """Looks and weighs later."""

        def submit(self, key: Hashable, task: Task, urgency: Urgency) -> None:
            if isinstance(key, tuple) and key[0] in ("preview", "weigh"):
                late.append(task)
            else:
                task()

    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory)
    (followed,) = adapter.followed
    adapter._worker = Late()
    before = RoundObserved({"s": StreamRound(1000, 10.0, 10.0)})
    adapter.foresee(before, lambda: a_preview(basin, 900))
    for task in late:
        task()
    assert followed.weighed is not None
    coming = RoundObserved({"s": StreamRound(2000, 10.0, 10.0)})
    adapter.foresee(coming)
    assert adapter._coming is coming
    assert followed.weighed[0] is before, "which is not taken for this round"


def test_what_closer_looks_save_more_of_them_may_take() -> None:
    basin, memory = a_basin(), Memory()
    adapter = adapting(basin, memory)
    options = [Choices((), (("intake", "s", way),)) for way in ("woven", "native")]
    adapter.correction, adapter._patience = Correction(), 0.0
    best = [Candidate(options[0], RoundCost(0.1)), Candidate(options[1], RoundCost(0.125))]
    adapter._earn(options[0], best)
    assert adapter._patience == 0.0, "it was known before"
    adapter._earn(options[1], best)
    assert adapter._patience == pytest.approx(0.2 * 0.1)
    for _ in range(100):
        adapter._earn(options[1], best)
    assert adapter._patience == MOST_PATIENCE


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
