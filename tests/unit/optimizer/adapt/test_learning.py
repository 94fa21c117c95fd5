"""What rounds take, learned from rounds; when a switch pays; work beside rounds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windloom.optimizer.adapt.chart_figures import Figure, FigureKind
from windloom.optimizer.adapt.objective import LONGEST_STAY, Objective, PlanTenure, Prices, pays
from windloom.optimizer.adapt.round_cost import Correction, Line, MeasuredRound, RoundCost
from windloom.optimizer.adapt.worker import OPTIONAL_AT_ONCE, BackgroundWorker, ImmediateWorker, TaskPriority
from windloom.plan.costs import Choices

WOVEN, NATIVE = (Choices((), (("intake", "s", way),)) for way in ("woven", "native"))
RATE = Figure(FigureKind.RATE, "s")


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
    assert not pays(slow, RoundCost(0.995), Objective(), 1e9, Prices(0.0, 0.0), recompiles=False), (
        "figures go up and down"
    )


def test_what_switches_cost_is_learned() -> None:
    prices = Prices(1.0, 0.1).after(3.0, recompiles=True).after(-1.0, recompiles=False)
    assert (prices.recompiling, prices.plain) == (2.0, 0.05)


def test_to_go_back_to_what_spark_has_compiled_has_a_price_of_its_own() -> None:
    prices = Prices(1.0, 0.1, 0.4).after(0.0, recompiles=True, again=True)
    assert (prices.again, prices.recompiling) == (0.2, 1.0)
    slow, fast = RoundCost(1.0), RoundCost(0.9)
    assert pays(slow, fast, Objective(), 3.0, prices, recompiles=True, again=True)
    assert not pays(slow, fast, Objective(), 3.0, prices, recompiles=True)


def test_stays_are_as_long_as_they_were() -> None:
    steady, erratic = PlanTenure(), PlanTenure()
    for _ in range(1000):
        steady, erratic = steady.after(moved=False), erratic.after(moved=True)
    assert steady.expected == LONGEST_STAY
    assert erratic.expected < 1.1


# ---- work -----------------------------------------------------------------------------------------------------------


def test_needed_tasks_come_first_and_optional_ones_when_they_may() -> None:
    worker, order, gate, done = BackgroundWorker(), list[str](), threading.Event(), threading.Event()

    def judge() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 1.2 * OPTIONAL_AT_ONCE:
            pass
        order.append("judge")

    worker.submit("gate", lambda: gate.wait(10) and None, TaskPriority.NEEDED)
    worker.submit("judge", judge, TaskPriority.AFTERWARDS)
    worker.submit("judge", lambda: order.append("twice"), TaskPriority.AFTERWARDS)
    worker.submit("learn", lambda: order.append("learn"), TaskPriority.LEARNING)
    worker.submit("needed", lambda: order.append("needed"), TaskPriority.NEEDED)
    gate.set()
    wait_until(lambda: len(order) == 3)
    assert order == ["learn", "needed", "judge"]
    worker.submit("judge again", lambda: order.append("again"), TaskPriority.AFTERWARDS)
    worker.submit("last", done.set, TaskPriority.NEEDED)
    assert done.wait(10)
    assert "again" not in order, "optional tasks have taken what they may"
    worker.passed(1000.0)
    wait_until(lambda: order[-1] == "again")


def test_a_task_that_is_being_done_is_not_done_again() -> None:
    worker, done, begun, gate = BackgroundWorker(), list[str](), threading.Event(), threading.Event()

    def draw() -> None:
        begun.set()
        gate.wait(10)
        done.append("drawn")

    worker.submit("draw", draw, TaskPriority.NEEDED)
    assert begun.wait(10)
    worker.submit("draw", draw, TaskPriority.NEEDED)  # the chart is not there yet
    gate.set()
    worker.submit("last", lambda: done.append("last"), TaskPriority.NEEDED)
    wait_until(lambda: "last" in done)
    worker.submit("draw", draw, TaskPriority.NEEDED)
    wait_until(lambda: done == ["drawn", "last", "drawn"])


def test_a_round_waits_for_a_task_and_by_no_more_than_it_says() -> None:
    worker, done, gate = BackgroundWorker(), list[str](), threading.Event()

    def work() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 0.1:
            pass
        worker.pause()
        done.append("filled")

    worker.submit(("fill", "s", (0,)), work, TaskPriority.NEEDED)
    worker.wait(("fill", "s", (0,)), 30.0)
    assert done == ["filled"]
    worker.submit(("draw", "s"), lambda: gate.wait(30) and None, TaskPriority.NEEDED)
    begun = time.perf_counter()
    worker.wait(("draw", "s"), 0.05)
    assert 0.04 < time.perf_counter() - begun < 10
    gate.set()
    worker.wait(("draw", "s"), 30.0)
    worker.wait(("fill", "s", (2,)), 30.0)  # nobody has asked for it


def test_nothing_is_waited_for_if_the_last_task_of_its_kind_took_longer() -> None:
    worker, gate = BackgroundWorker(), threading.Event()

    def work() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 1.0:
            pass

    worker.submit(("fill", "s", (0,)), work, TaskPriority.NEEDED)
    worker.wait(("fill", "s", (0,)), 60.0)
    worker.submit(("fill", "s", (1,)), lambda: gate.wait(60) and None, TaskPriority.NEEDED)
    begun = time.perf_counter()
    worker.wait(("fill", "s", (1,)), 0.9)
    assert time.perf_counter() - begun < 0.8
    gate.set()


def test_nothing_is_waited_for_that_is_not_going_to_be_done() -> None:
    worker = BackgroundWorker(at_once=0.0)
    worker.submit("fill", lambda: pytest.fail("its budget is used up"), TaskPriority.NEEDED)
    begun = time.perf_counter()
    worker.wait("fill", 30.0)
    assert time.perf_counter() - begun < 10


def test_what_is_needed_waits_once_it_has_taken_more_than_a_share_of_the_rounds() -> None:
    worker, order, learned = BackgroundWorker(at_once=1e-9), list[str](), threading.Event()

    def work() -> None:
        order.append("first")
        begun = time.thread_time()
        while time.thread_time() - begun < 0.01:
            pass

    worker.submit("first", work, TaskPriority.NEEDED)
    wait_until(lambda: order == ["first"])
    worker.submit("second", lambda: order.append("second"), TaskPriority.NEEDED)
    worker.submit("learning", learned.set, TaskPriority.LEARNING)
    assert learned.wait(10), "what rounds took is learned all the same"
    worker.passed(0.1)
    assert order == ["first"], "a hundredth of what rounds took is less than what it has taken"
    worker.passed(1000.0)
    wait_until(lambda: order == ["first", "second"])


def test_after_a_failure_nothing_more_is_done_and_it_is_told() -> None:
    worker = BackgroundWorker()

    def fail() -> None:
        raise ZeroDivisionError("no")

    worker.submit("bad", fail, TaskPriority.NEEDED)
    wait_until(lambda: worker.failure is not None)
    assert isinstance(worker.failure, ZeroDivisionError)
    worker.submit("good", lambda: pytest.fail("it has stopped"), TaskPriority.NEEDED)


def test_a_closed_worker_begins_nothing() -> None:
    worker = BackgroundWorker()
    worker.close()
    worker.submit("late", lambda: pytest.fail("it is closed"), TaskPriority.NEEDED)
    assert worker.failure is None


def test_at_once_is_at_once() -> None:
    found: list[int] = []
    ImmediateWorker().submit("x", lambda: found.append(1), TaskPriority.AFTERWARDS)
    assert found == [1]


def wait_until(holds: Callable[[], bool]) -> None:
    """Not by the clock: as long as the thread needs, and no longer than anybody would wait."""
    waiting = threading.Event()
    for _ in range(2000):
        if holds():
            return
        waiting.wait(0.005)
    raise AssertionError("nothing happened")
