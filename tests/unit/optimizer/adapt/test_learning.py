"""What rounds take, learned from rounds; forecasts; when a switch pays; work beside rounds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windloom.optimizer.adapt.candidates import Candidate, as_predicted
from windloom.optimizer.adapt.correction import Correction, Line, MeasuredRound
from windloom.optimizer.adapt.figures import Figure, Kind
from windloom.optimizer.adapt.forecast import EARLY, FAR, OLD, Forecast
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.rivals import has_rival
from windloom.optimizer.adapt.round_cost import RoundCost
from windloom.optimizer.adapt.switching import LONGEST_STAY, Prices, Stays, pays
from windloom.optimizer.adapt.work import AtOnce, Beside, Urgency
from windloom.plan.choices import Choices, TreeChoice

WOVEN, NATIVE = (Choices((), (("intake", "s", way),)) for way in ("woven", "native"))
RATE = Figure(Kind.RATE, "s")


# ---- correction -----------------------------------------------------------------------------------------------------


def a_round(predicted: float, partials: float, way: str = "woven", rest: float = 0.02) -> MeasuredRound:
    cost = RoundCost(predicted, predicted / 10, predicted / 2, held=100.0)
    seconds = {"partials": partials, "step": predicted / 10, "answers": predicted / 2, "log": rest, "waiting": 5.0}
    return MeasuredRound(cost, seconds, (("s", way),), 200.0)


def test_nothing_is_corrected_before_any_round() -> None:
    cost = RoundCost(1.0, 2.0, 3.0, 0.1, 5.0, 6.0)
    assert Correction()(cost, WOVEN) == cost


@given(st.floats(0.01, 10), st.floats(0.2, 5))
def test_after_rounds_alike_what_they_took_is_predicted(predicted: float, factor: float) -> None:
    took = predicted * factor
    found = Correction([a_round(predicted, took)] * 16)
    expected = found(RoundCost(predicted, predicted / 10, predicted / 2), WOVEN)
    assert expected.intake == pytest.approx(took, rel=0.15, abs=0.02)
    assert expected.step + expected.answers == pytest.approx(0.6 * predicted, rel=0.05, abs=0.005)
    assert expected.rest == pytest.approx(0.02)


def test_short_rounds_teach_a_constant_and_long_ones_a_factor() -> None:
    short, long = Correction([a_round(0.001, 0.1)] * 16), Correction([a_round(10.0, 15.0)] * 16)
    assert short.lines["intake"].constant == pytest.approx(0.1, rel=0.2)
    assert long.lines["intake"].factor == pytest.approx(1.5, rel=0.1)
    both = Correction([a_round(x, 0.2 + 2 * x) for x in (0.01, 0.1, 1.0, 3.0)] * 4)
    assert both.lines["intake"].constant == pytest.approx(0.2, rel=0.1)
    assert both.lines["intake"].factor == pytest.approx(2.0, rel=0.1)


def test_rounds_of_tuples_that_take_twice_as_long_as_predicted_teach_a_factor_and_not_mostly_a_constant() -> None:
    found = Correction([a_round(0.4, 0.8)] * 4)
    assert found(RoundCost(0.4), WOVEN).intake == pytest.approx(0.8, rel=0.05)
    assert found(RoundCost(0.0), WOVEN).intake < 0.12, "a round of few tuples takes little"


def test_a_way_to_take_tuples_in_that_was_tried_has_a_line_of_its_own() -> None:
    found = Correction([a_round(1.0, 3.0, "native")] * 4 + [a_round(1.0, 1.0, "woven")] * 4)
    cost = RoundCost(1.0)
    assert found(cost, NATIVE).intake == pytest.approx(3.0, rel=0.1)
    assert found(cost, WOVEN).intake == pytest.approx(1.0, rel=0.1)


def test_a_way_that_was_not_tried_takes_the_factor_of_others_and_only_part_of_their_constant() -> None:
    # Short rounds teach that Spark's aggregation has a constant of 0.4 s. The model says that kernels take a tenth.
    found = Correction([a_round(0.01, 0.4, "native")] * 16)
    assert found.lines["intake"].constant > 0.3
    native, woven = (found(RoundCost(seconds), way).intake for seconds, way in ((0.01, NATIVE), (0.001, WOVEN)))
    assert native == pytest.approx(0.4, rel=0.05)
    assert woven < 0.6 * native, "the constant is not theirs as a whole"
    assert woven > 0.1 * native, "and neither is nothing of it"
    assert found(RoundCost(0.01), WOVEN).intake == pytest.approx(native, rel=0.05), "where both predict the same"


def test_what_was_learned_of_a_way_is_not_forgotten_while_rounds_go_another_way() -> None:
    found = Correction([a_round(1.0, 3.0, "native")] * 8)
    for _ in range(8):
        found = found.after(a_round(1.0, 1.0, "woven"))
    assert found(RoundCost(1.0), NATIVE).intake == pytest.approx(3.0, rel=0.15)
    for _ in range(92):
        found = found.after(a_round(1.0, 1.0, "woven"))
    assert found(RoundCost(1.0), NATIVE).intake == pytest.approx(1.0, rel=0.1), "nor is it held to be so forever"
    assert found.rounds == 16


def test_a_stage_is_fitted_to_the_last_rounds_only() -> None:
    found = Correction([a_round(1.0, 3.0, "native")] * 8)
    for _ in range(16):
        found = found.after(a_round(1.0, 1.0, "woven"))
    assert found.lines["intake"](1.0) == pytest.approx(1.0, rel=0.01)


def test_waiting_for_a_sink_is_not_what_a_round_takes() -> None:
    assert a_round(1.0, 2.0).total == pytest.approx(2.62)
    assert a_round(1.0, 2.0).rest == pytest.approx(0.02)


def test_bytes_have_a_factor() -> None:
    assert Correction([a_round(1.0, 1.0)] * 3)(RoundCost(held=50.0), WOVEN).held == pytest.approx(100.0)


def test_while_windows_fill_up_the_step_takes_as_much_as_is_kept() -> None:
    def filling(number: int) -> MeasuredRound:
        """The model takes windows as full from the first round on; they are, with 1,000 bytes, after twenty."""
        cost, kept = RoundCost(1.0, 0.5, 0.1, held=1000.0), 50.0 * number
        return MeasuredRound(
            cost, {"partials": 1.0, "step": 2 * 0.5 * kept / 1000, "answers": 0.1}, (("s", "woven"),), kept
        )

    for newest in (4, 10, 19):
        found = Correction([filling(number) for number in range(newest, 0, -1)])
        follows = filling(newest + 1).seconds["step"]
        assert found(filling(newest).predicted, WOVEN).step == pytest.approx(follows, rel=0.3)


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), max_size=20))
def test_no_line_is_negative(pairs: list[tuple[float, float]]) -> None:
    for line in Correction([a_round(*pair) for pair in pairs]).lines.values():
        assert line.constant >= 0
        assert line.factor >= 0
        assert line(1.0) < 1e6
    assert Line(1.0, 2.0)(3.0) == 7.0


# ---- forecasts ------------------------------------------------------------------------------------------------------


def test_near_its_point_a_forecast_changes_with_powers_of_figures() -> None:
    forecast = Forecast(None, RoundCost(2.0, 1.0, 4.0), {RATE: 100.0}, {"intake": {RATE: 1.0}, "answers": {RATE: 0.5}})
    moved = forecast.at({RATE: 400.0})
    assert (moved.intake, moved.step, moved.answers) == (8.0, 1.0, 8.0)
    assert forecast.at({}).intake == 2.0
    assert forecast.at({RATE: 1e9}).intake == 16.0, "it is not extrapolated for ever"
    assert forecast.is_near({RATE: 100 * FAR * 0.999})
    assert not forecast.is_near({RATE: 100 * FAR * 1.001})
    assert not forecast.is_near({}), "nothing is known"
    late = replace(forecast, round=OLD)
    assert late.holds(None, {RATE: 100.0}, 2 * OLD - 1)  # type: ignore[arg-type]
    assert not late.holds(None, {RATE: 100.0}, 2 * OLD)  # type: ignore[arg-type]


def test_a_forecast_that_was_made_early_is_made_again_soon() -> None:
    early = Forecast(None, RoundCost(2.0), {RATE: 100.0}, {}, round=1)
    assert early.holds(None, {RATE: 100.0}, EARLY)  # type: ignore[arg-type]
    assert not early.holds(None, {RATE: 100.0}, 1 + EARLY)  # type: ignore[arg-type]
    assert not replace(early, round=6).holds(None, {RATE: 100.0}, 12)  # type: ignore[arg-type]


# ---- switching ------------------------------------------------------------------------------------------------------


def test_a_switch_pays_if_it_saves_more_than_it_costs_while_the_stream_stays() -> None:
    slow, fast = RoundCost(1.0), RoundCost(0.9)
    worth: Callable[..., bool] = lambda stay, price: pays(  # noqa: E731
        slow, fast, Objective(), stay, Prices(recompiling=price), recompiles=True
    )
    assert worth(20.0, 1.0)
    assert not worth(5.0, 1.0)
    assert not pays(slow, RoundCost(0.98), Objective(), 1e9, Prices(0.0, 0.0), recompiles=True), "hardly better"
    assert pays(slow, RoundCost(0.98), Objective(), 1e9, Prices(0.0, 0.0), recompiles=False)
    assert not pays(fast, slow, Objective(), 1e9, Prices(0.0, 0.0), recompiles=False)
    slightly = partial(pays, slow, RoundCost(0.995), Objective(), 1e9, Prices(0.0, 0.0), recompiles=False)
    assert not slightly()
    assert slightly(weighed=True), "for what the round really brings, there is no noise in it"
    assert not pays(slow, RoundCost(0.9995), Objective(), 1e9, Prices(0.0, 0.0), recompiles=False, weighed=True)


@pytest.mark.parametrize(
    ("seconds", "choices", "found"), [(1.2, NATIVE, True), (1.3, NATIVE, False), (1.0, None, False)]
)
def test_a_rival_has_other_options_and_is_nearly_as_good(seconds: float, choices: Choices | None, found: bool) -> None:
    other = choices or replace(WOVEN, trees=(TreeChoice(("q",)),))
    candidates = [Candidate(WOVEN, RoundCost(1.0)), Candidate(other, RoundCost(seconds))]
    assert has_rival(candidates, Objective(), as_predicted) is found


def test_what_switches_cost_is_learned() -> None:
    prices = Prices(1.0, 0.1).after(3.0, recompiles=True).after(-1.0, recompiles=False)
    assert (prices.of(recompiles=True), prices.of(recompiles=False)) == (2.0, 0.05)


def test_to_go_back_to_what_spark_has_compiled_has_a_price_of_its_own() -> None:
    prices = Prices(1.0, 0.1, 0.4).after(0.0, recompiles=True, again=True)
    assert (prices.of(recompiles=True, again=True), prices.of(recompiles=True)) == (0.2, 1.0)
    slow, fast = RoundCost(1.0), RoundCost(0.9)
    assert pays(slow, fast, Objective(), 3.0, prices, recompiles=True, again=True)
    assert not pays(slow, fast, Objective(), 3.0, prices, recompiles=True)


def test_stays_are_as_long_as_they_were() -> None:
    steady, erratic = Stays(), Stays()
    for _ in range(1000):
        steady, erratic = steady.after(moved=False), erratic.after(moved=True)
    assert steady.expected == LONGEST_STAY
    assert erratic.expected < 1.1


# ---- work -----------------------------------------------------------------------------------------------------------


def test_needed_tasks_come_first_and_optional_ones_when_they_may() -> None:
    worker, order, gate, done = Beside(), list[str](), threading.Event(), threading.Event()
    worker.submit("gate", lambda: gate.wait(10) and None, Urgency.NEEDED)
    worker.submit("ahead", lambda: order.append("ahead"), Urgency.AHEAD)
    worker.submit("after", lambda: order.append("after"), Urgency.AFTERWARDS)
    worker.submit("after", lambda: order.append("twice"), Urgency.AFTERWARDS)
    worker.submit("needed", lambda: order.append("needed"), Urgency.NEEDED)
    gate.set()
    worker.submit("last", done.set, Urgency.NEEDED)
    assert done.wait(10)
    assert "ahead" not in order
    worker.passed(100.0)
    wait_until(lambda: len(order) == 3)
    assert order == ["needed", "after", "ahead"]


def test_a_task_that_is_being_done_is_not_done_again() -> None:
    worker, done, begun, gate = Beside(), list[str](), threading.Event(), threading.Event()

    def draw() -> None:
        begun.set()
        gate.wait(10)
        done.append("drawn")

    worker.submit("draw", draw, Urgency.NEEDED)
    assert begun.wait(10)
    worker.submit("draw", draw, Urgency.NEEDED)  # the chart is not there yet
    gate.set()
    worker.submit("last", lambda: done.append("last"), Urgency.NEEDED)
    wait_until(lambda: "last" in done)
    worker.submit("draw", draw, Urgency.NEEDED)
    wait_until(lambda: done == ["drawn", "last", "drawn"])


def test_a_round_waits_for_a_task_and_by_no_more_than_it_says() -> None:
    worker, done, gate = Beside(), list[str](), threading.Event()

    def work() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 0.1:
            pass
        worker.pause()
        done.append("filled")

    worker.submit(("fill", "s", (0,)), work, Urgency.NEEDED)
    worker.wait(("fill", "s", (0,)), 30.0)
    assert done == ["filled"]
    worker.submit(("draw", "s"), lambda: gate.wait(30) and None, Urgency.NEEDED)
    begun = time.perf_counter()
    worker.wait(("draw", "s"), 0.05)
    assert 0.04 < time.perf_counter() - begun < 10
    gate.set()
    worker.wait(("draw", "s"), 30.0)
    worker.wait(("fill", "s", (2,)), 30.0)  # nobody has asked for it


def test_nothing_is_waited_for_if_the_last_task_of_its_kind_took_longer() -> None:
    worker, gate = Beside(), threading.Event()

    def work() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 1.0:
            pass

    worker.submit(("fill", "s", (0,)), work, Urgency.NEEDED)
    worker.wait(("fill", "s", (0,)), 60.0)
    worker.submit(("fill", "s", (1,)), lambda: gate.wait(60) and None, Urgency.NEEDED)
    begun = time.perf_counter()
    worker.wait(("fill", "s", (1,)), 0.9)
    assert time.perf_counter() - begun < 0.8
    gate.set()


def test_what_tells_of_one_round_is_done_only_if_that_is_known_to_take_little() -> None:
    worker, gate = Beside(), threading.Event()
    assert worker.affords(("look", "s"), 0.01), "it is tried once"
    assert not worker.affords(("look", "s"), 0.01, estimated=0.02)
    assert not worker.affords(("look", "s"), 0.0)

    def work() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 0.05:
            pass

    worker.submit(("look", "s"), work, Urgency.NEEDED)
    worker.wait(("look", "s"), 30.0)
    while worker._is_running:
        time.sleep(0.01)
    assert worker.affords(("look", "s"), 20.0)
    assert not worker.affords(("look", "s"), 0.04)
    worker.submit(("draw", "s"), lambda: gate.wait(30) and None, Urgency.NEEDED)
    assert not worker.affords(("look", "s"), 20.0), "another task is being done"
    gate.set()
    poor = Beside(at_once=0.0)
    assert not poor.affords(("look", "s"), 20.0)
    poor.earned(1.0)
    assert not poor.affords(("look", "s"), 20.0), "no more than may be spent at once"


def test_nothing_is_waited_for_that_is_not_going_to_be_done() -> None:
    worker = Beside(at_once=0.0)
    worker.submit("fill", lambda: pytest.fail("its budget is used up"), Urgency.NEEDED)
    begun = time.perf_counter()
    worker.wait("fill", 30.0)
    assert time.perf_counter() - begun < 10


def test_what_is_needed_waits_once_it_has_taken_more_than_a_share_of_the_rounds() -> None:
    worker, order, learned = Beside(at_once=1e-9), list[str](), threading.Event()

    def work() -> None:
        order.append("first")
        begun = time.thread_time()
        while time.thread_time() - begun < 0.01:
            pass

    worker.submit("first", work, Urgency.NEEDED)
    wait_until(lambda: order == ["first"])
    worker.submit("second", lambda: order.append("second"), Urgency.NEEDED)
    worker.submit("learning", learned.set, Urgency.LEARNING)
    assert learned.wait(10), "what rounds took is learned all the same"
    worker.passed(0.1)
    assert order == ["first"], "a hundredth of what rounds took is less than what it has taken"
    worker.passed(1000.0)
    wait_until(lambda: order == ["first", "second"])


def test_after_a_failure_nothing_more_is_done_and_it_is_told() -> None:
    worker = Beside()

    def fail() -> None:
        raise ZeroDivisionError("no")

    worker.submit("bad", fail, Urgency.NEEDED)
    wait_until(lambda: worker.failure is not None)
    assert isinstance(worker.failure, ZeroDivisionError)
    worker.submit("good", lambda: pytest.fail("it has stopped"), Urgency.NEEDED)


def test_a_closed_worker_begins_nothing() -> None:
    worker = Beside()
    worker.close()
    worker.submit("late", lambda: pytest.fail("it is closed"), Urgency.NEEDED)
    assert worker.failure is None


def test_at_once_is_at_once() -> None:
    found: list[int] = []
    AtOnce().submit("x", lambda: found.append(1), Urgency.AHEAD)
    assert found == [1]


def wait_until(holds: Callable[[], bool]) -> None:
    """Not by the clock: as long as the thread needs, and no longer than anybody would wait."""
    waiting = threading.Event()
    for _ in range(2000):
        if holds():
            return
        waiting.wait(0.005)
    raise AssertionError("nothing happened")
