"""What rounds observed, as decayed means: against the formula, and where rounds are not like each other."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windloom.statistics.estimates import LEAP, Estimates, Memory, estimates_of
from windloom.statistics.observations import RoundObserved, StreamRound
from windloom.statistics.set_statistics import SetIdentity, SetRound, spread_of

ALL, SOME = SetIdentity("s", grouping=("k",)), SetIdentity("s", "b", ("k",))


def a_round(
    tuples: int, seconds: float = 1.0, some: int = 0, groups: int = 5, cells: int = 5, span: float | None = None
) -> RoundObserved:
    return RoundObserved(
        {"s": StreamRound(tuples, seconds, seconds if span is None else span, {"b": some})},
        {ALL: SetRound(tuples, cells, groups, cells, seconds), SOME: SetRound(some, cells, groups, cells, seconds)},
    )


def remembered(*rounds: RoundObserved, d: int = 16, a: float = 0.25, leap: float | None = LEAP) -> Estimates:
    memory = Memory(d, a, leap)
    for round_ in rounds:
        memory.add(round_)
    return memory.estimates(trends=True)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30), st.integers(1, 20), st.floats(0, 2))
def test_with_rounds_of_equal_length_a_rate_is_the_mean_of_the_papers(counts: list[int], d: int, a: float) -> None:
    found = remembered(*(a_round(count) for count in counts), d=d, a=a, leap=None)
    newest = counts[::-1][:d]
    weights = [math.exp(-a * r) for r in range(len(newest))]
    expected = sum(w * value for w, value in zip(weights, newest, strict=True)) / sum(weights)
    assert found.streams["s"].rate.value == pytest.approx(expected)
    assert found.streams["s"].rate.rounds == len(newest)


def test_rounds_in_disorder_that_advance_time_by_little_are_no_bursts() -> None:
    tenths = [a_round(100, 3600.0), *(a_round(100, 1.0, span=3600.0) for _ in range(9))] * 2
    assert remembered(*tenths, d=20, a=0.0).streams["s"].rate.value == pytest.approx(1000 / 3600, rel=0.01)


def test_a_backlog_weighs_as_a_round_of_four_times_the_usual_length() -> None:
    rounds = [a_round(5_000_000, 500_000.0), *(a_round(1_000, 10.0) for _ in range(8))]
    found = remembered(*rounds, leap=None).streams["s"]
    assert found.rate.value == pytest.approx(100, rel=0.5), "and not the 10 per second of the backlog"
    assert found.round is not None
    assert 10 <= found.round.value < 25
    assert remembered(*rounds).streams["s"].rate.rounds == 8, "it is forgotten after two rounds of another rate"


@pytest.mark.parametrize("factor", [100, 0.01])
def test_after_a_leap_older_rounds_are_forgotten(factor: float) -> None:
    before = [a_round(10_000, groups=500) for _ in range(8)]
    after = [a_round(round(10_000 * factor), groups=round(500 * factor)) for _ in range(3)]
    once, twice = remembered(*before, *after[:1]), remembered(*before, *after[:2])
    assert once.streams["s"].rate.rounds == 9, "one round may be a burst"
    assert (twice.streams["s"].rate.value, twice.streams["s"].rate.rounds) == (pytest.approx(10_000 * factor), 2)
    assert (twice.sets[ALL].groups.value, twice.sets[SOME].groups.rounds) == (pytest.approx(500 * factor), 2)
    assert remembered(*before, *after).streams["s"].rate.rounds == 3


def test_a_burst_and_a_round_in_disorder_are_no_leaps() -> None:
    steady = [a_round(100) for _ in range(8)]
    burst = remembered(*steady, a_round(10_000), a_round(100), a_round(90))
    assert burst.streams["s"].rate.rounds == 11
    tenths = [a_round(100, 1.0), a_round(100, 0.01, span=1.0), a_round(100, 0.01, span=1.0)]
    assert remembered(*steady, *tenths).streams["s"].rate.rounds == 11


@pytest.mark.parametrize("length", [60.0, 0.5])
def test_rounds_may_leap_in_length_while_the_rate_stays(length: float) -> None:
    usual, after = [a_round(600, 6.0)] * 8, a_round(round(100 * length), length)
    once, twice = (remembered(*usual, *[after] * count).streams["s"] for count in (1, 2))
    assert once.rate.rounds == 9, "one round may be a backlog"
    assert once.round is not None
    assert (once.round.value, once.round.rounds) == (pytest.approx(length), 1), "the length itself is no noise"
    assert twice.round is not None
    assert (twice.round.value, twice.round.rounds) == (pytest.approx(length), 2)
    assert twice.rate.value == pytest.approx(100)


def test_a_single_long_round_is_forgotten_with_the_next_one_and_disorder_changes_no_length() -> None:
    steady = [a_round(600, 6.0)] * 8
    found = remembered(*steady, a_round(60_000, 600.0), a_round(600, 6.0)).streams["s"]
    assert found.round is not None
    assert found.round.value == pytest.approx(6.0)
    one = remembered(*steady, a_round(600, 0.01, span=6.0)).streams["s"]
    assert one.round is not None
    assert one.round.rounds == 9, "tuples lie in as long a time as ever"


def test_groups_may_leap_while_the_rate_stays() -> None:
    found = remembered(*[a_round(1000, groups=5)] * 6, *[a_round(1000, groups=900)] * 2)
    assert found.streams["s"].rate.rounds == 8
    assert (found.sets[ALL].groups.value, found.sets[ALL].groups.rounds) == (pytest.approx(900), 2)


def test_a_round_in_which_no_time_passes_shows_no_rate_but_groups() -> None:
    found = remembered(a_round(3, 0.0))
    assert not found.streams
    assert found.sets[ALL].groups.value == 5


def test_the_selectivity_of_a_predicate_is_known_for_other_groupings_too() -> None:
    found = remembered(a_round(100, some=25), a_round(100, some=25))
    assert found.selectivity(SOME) == found.sets[SOME].selectivity
    other = found.selectivity(SetIdentity("s", "b", ("x",)))
    assert other is not None
    assert other.value == 0.25
    assert found.selectivity(SetIdentity("s", "c")) is None


def test_the_groups_of_a_grouping_are_known_for_other_predicates_too() -> None:
    found = remembered(a_round(100, groups=7))
    shown = found.groups(SetIdentity("s", "c", ("k",)))
    assert shown is not None
    assert shown.value == 7
    assert found.groups(SetIdentity("s", "", ("x",))) is None


def test_a_stream_that_falls_silent_keeps_its_rate() -> None:
    silent = RoundObserved({"s": StreamRound(0, 0.0, 0.0)}, {ALL: SetRound(0, 0, 5, 5, 0.0)})
    found = remembered(a_round(100), *[silent] * 40)
    assert found.streams["s"].rate.value == 100
    assert found.sets[ALL].groups.value == 5


def test_sets_that_are_gone_are_forgotten() -> None:
    without = RoundObserved({"s": StreamRound(10, 1.0, 1.0)}, {ALL: SetRound(10, 5, 5, 5, 1.0)})
    assert remembered(a_round(10), without).sets.keys() == {ALL}


@pytest.mark.parametrize("growth", [1.1, 0.8])
def test_a_trend_is_told_where_it_is_certain(growth: float) -> None:
    rates = [round(10_000 * growth**i) for i in range(12)]
    assert remembered(*map(a_round, rates)).streams["s"].rate.trend == pytest.approx(growth - 1, rel=0.05)
    noisy = [1000, 1400, 700, 1200, 800, 1300, 900, 1100]
    assert remembered(*map(a_round, noisy)).streams["s"].rate.trend == 0.0
    assert remembered(*map(a_round, rates[:3])).streams["s"].rate.trend == 0.0


@given(st.integers(1, 100), st.floats(0.5, 5000), st.floats(1, 50))
def test_as_many_groups_as_it_takes_to_make_the_cells(groups: int, mean: float, slices: float) -> None:
    cells = slices * groups * -math.expm1(-mean / groups)
    more = groups * 3.0
    assert spread_of(mean * slices, cells, more, slices) == pytest.approx(1 / 3, rel=0.02) or cells < 1.05 * slices
    assert spread_of(mean * slices, cells, float(groups), slices) == 1.0


def test_one_round_shows_what_it_saw() -> None:
    found = estimates_of(a_round(120, 60.0, some=30))
    assert found.streams["s"].rate.value == 2.0
    assert found.sets[SOME].selectivity.value == 0.25
    assert found.without_rounds().streams["s"].round is None
    later = estimates_of(RoundObserved({"t": StreamRound(10, 1.0, 1.0)}, {})).before(found)
    assert later.streams.keys() == {"s", "t"}
    assert later.sets == found.sets


def test_what_is_shown_of_a_stream_keeps_shares_of_conditions_that_it_tells_nothing_of() -> None:
    earlier = estimates_of(RoundObserved({"s": StreamRound(100, 10.0, 10.0, {"a": 50, "b": 20}, 4)}))
    counted = estimates_of(RoundObserved({"s": StreamRound(300, 10.0, 10.0)})).before(earlier).streams["s"]
    assert (counted.rate.value, counted.conditions, counted.signatures) == (30.0, {"a": 0.5, "b": 0.2}, 4.0)
    looked = estimates_of(RoundObserved({"s": StreamRound(300, 10.0, 10.0, {"a": 30}, 2)})).before(earlier).streams["s"]
    assert (looked.conditions, looked.signatures) == ({"a": 0.1, "b": 0.2}, 2.0)
