"""Orders of joins: source E's tables 5.3 to 5.6 as corrected, its heuristic, and eliminations against all orders."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations

import pytest
from experiments.probe_orders import JoinedWindow, by_selectivity, probe_cost, probe_order

from windloom.model import Expression, Join, JoinKind, Link, Side, TimeWindow
from windloom.model.join import KeyPair, WindowedStream
from windloom.optimizer.joins.cost import side_sizes
from windloom.optimizer.joins.order import SideSize, Size, cheapest_order, elimination_order
from windloom.statistics.set_statistics import Statistics

INITIAL = [JoinedWindow(10, 100, 500), JoinedWindow(1, 100, 50), JoinedWindow(1, 200, 40), JoinedWindow(3, 100, 5)]
AUGMENTED = [JoinedWindow(10, 100, 40), JoinedWindow(1, 100, 100), JoinedWindow(1, 100, 8), JoinedWindow(1, 100, 5)]
TWO_FAST = [JoinedWindow(11, 100, 200), JoinedWindow(10, 100, 100), JoinedWindow(1, 100, 65), JoinedWindow(1, 100, 20)]


def cost(windows: list[JoinedWindow], order: str) -> int:
    return round(probe_cost(windows, tuple(int(digit) - 1 for digit in order)))


def all_costs(windows: list[JoinedWindow]) -> dict[tuple[int, ...], float]:
    return {order: probe_cost(windows, order) for order in permutations(range(len(windows)))}


def test_table_5_4_sizes_of_intermediate_results() -> None:
    first, second, third, fourth = (window.size for window in INITIAL)
    pairs = [
        first.joined(second),
        first.joined(third),
        first.joined(fourth),
        second.joined(third),
        second.joined(fourth),
        third.joined(fourth),
    ]
    assert [pair.rows for pair in pairs] == [200, 400, 600, 400, 600, 1500]
    assert first.joined(second).joined(third) == Size(800, 40)
    assert first.joined(second).joined(fourth).rows == 1200


def test_table_5_3_the_first_order_and_the_worst() -> None:
    assert cost(INITIAL, "1234") == 16000
    assert max(all_costs(INITIAL).values()) == 86850


def test_table_5_5_a_fast_stream_is_moved_up_but_not_to_the_top() -> None:
    assert [cost(AUGMENTED, order) for order in ("2134", "2341", "1234")] == [16200, 42600, 21000]
    costs = all_costs(AUGMENTED)
    assert min(costs.values()) == 16200
    assert max(costs.values()) == 135150


def test_table_5_6_two_fast_streams() -> None:
    orders = ("3142", "3412", "3124", "1234", "2134")
    assert [cost(TWO_FAST, order) for order in orders] == [47977, 49542, 51954, 68200, 79000]
    costs = all_costs(TWO_FAST)
    assert round(min(costs.values())) == 47977
    assert round(sum(costs.values()) / len(costs)) == 63362


@pytest.mark.parametrize(
    ("windows", "by_pairs", "best"),
    [(INITIAL, "1234", None), (AUGMENTED, "2341", "2134"), (TWO_FAST, "3412", "3142")],
)
def test_selectivity_alone_and_the_best_order(windows: list[JoinedWindow], by_pairs: str, best: str | None) -> None:
    assert "".join(str(place + 1) for place in by_selectivity(windows)) == by_pairs
    found = probe_order(windows)
    assert probe_cost(windows, found) == min(all_costs(windows).values())
    if best is not None:
        assert "".join(str(place + 1) for place in found) == best


@pytest.mark.parametrize("windows", [INITIAL, AUGMENTED, TWO_FAST])
def test_the_heuristic_alone_is_close_to_the_best_order(
    windows: list[JoinedWindow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windloom.optimizer.joins.order.MOST_COMPARED", 1)
    best = min(all_costs(windows).values())
    assert probe_cost(windows, probe_order(windows)) <= 1.2 * best


def test_ten_streams_are_ordered_without_comparing_all_orders() -> None:
    rng = random.Random(1)
    windows = [JoinedWindow(rng.choice([1, 1, 10]), 100, rng.choice([5, 40, 300])) for _ in range(10)]
    compared: list[tuple[int, ...]] = []

    def noted(order: tuple[int, ...]) -> float:
        compared.append(order)
        return probe_cost(windows, order)

    found = cheapest_order(10, noted, by_selectivity(windows), [0, 1, 2])
    assert len(compared) <= 100
    assert sorted(found) == list(range(10))
    assert probe_cost(windows, found) <= probe_cost(windows, by_selectivity(windows))


# ---- eliminations ---------------------------------------------------------------------------------------------------


def join_of(links: list[tuple[int, int, JoinKind]], residual: int | None = None) -> Join:
    """Every side is joined on column 0 of its own and column i + 1 of its parent."""
    count = len(links) + 1
    side = Side(WindowedStream("s", TimeWindow(10, 5), "s"), None, None, (Expression.of_column("k"),), ())
    made = [
        Link(parent, child, kind, (KeyPair(number + 1, 0),), Expression("TRUE") if number == residual else None)
        for number, (parent, child, kind) in enumerate(links)
    ]
    return Join((side,) * count, tuple(made), (), ())


INNER, LEFT, SEMI, ANTI = JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI


def test_a_child_comes_before_what_it_hangs_on() -> None:
    join = join_of([(0, 1, INNER), (1, 2, INNER), (2, 3, LEFT), (0, 4, SEMI)])
    found = elimination_order(join, [SideSize(100)] * 5)
    assert sorted(found.order) == [0, 1, 2, 3]
    assert found.order.index(2) < found.order.index(1) < found.order.index(0)


def test_what_shrinks_the_parent_goes_first_and_what_multiplies_it_last() -> None:
    join = join_of([(0, 1, INNER), (0, 2, SEMI), (0, 3, LEFT)])
    sizes = [
        SideSize(1000, {0: 1000, 1: 1000, 2: 1000}),
        SideSize(5000, {0: 1000}, groups=5),  # a row for each of five groups
        SideSize(10, {1: 10}),  # one in a hundred matches
        SideSize(1000, {2: 1000}),
    ]
    found = elimination_order(join, sizes)
    assert found.order == (1, 2, 0)
    # Read 10 rows, look up 1,000, write 10; read 1,000, look up 10, write 10; read 5,000, look up 10, write 50.
    assert found.rows == 10 + 1000 + 10 + 1000 + 10 + 10 + 5000 + 10 + 50


def test_groups_that_nobody_reports_do_not_multiply_rows_but_residuals_do() -> None:
    sizes = [SideSize(100, {0: 100}), SideSize(1000, {0: 100})]
    assert elimination_order(join_of([(0, 1, INNER)]), sizes).rows == 1000 + 100 + 100
    assert elimination_order(join_of([(0, 1, INNER)], residual=0), sizes).rows == 1000 + 100 + 1000
    grouped = [sizes[0], SideSize(1000, {0: 100}, groups=4)]
    assert elimination_order(join_of([(0, 1, INNER)]), grouped).rows == 1000 + 100 + 400
    assert elimination_order(join_of([(0, 1, ANTI)]), grouped).rows == 1000 + 100


def test_the_sizes_of_sides_follow_from_rates_and_groups() -> None:
    join = join_of([(0, 1, INNER)])
    sides = (replace(join.sides[0], group_by=tuple(map(Expression.of_column, "abk"))), join.sides[1])
    join = replace(join, sides=sides, groups=((0, 0),))
    busy, rare = side_sizes(join, [Statistics(1e10, groups=1000.0), Statistics(1.0, groups=50.0)])
    assert busy.rows == pytest.approx(1000)
    assert busy.keys == {0: pytest.approx(10)}, "one of three columns"
    assert busy.groups == pytest.approx(10)
    assert rare.rows == pytest.approx(1e-5, rel=1e-3), "a window of ten ticks holds hardly a tuple"
    assert rare.keys[0] == pytest.approx(rare.rows)


def test_sides_without_rows_are_no_mistake() -> None:
    found = elimination_order(join_of([(0, 1, INNER), (0, 2, LEFT)]), [SideSize(0, {0: 0}), SideSize(0), SideSize(3)])
    assert sorted(found.order) == [0, 1]


def test_eight_children_are_ordered_by_the_heuristic() -> None:
    rng = random.Random(2)
    join = join_of([(0, child, INNER) for child in range(1, 9)])
    keys = dict.fromkeys(range(8), 1000.0)
    sizes = [SideSize(1000, keys)]
    for number in range(8):
        values = float(rng.choice([10, 300, 1000]))
        sizes.append(SideSize(values * 4, {number: values}, groups=rng.choice([1.0, 4.0])))
    found = elimination_order(join, sizes)
    assert sorted(found.order) == list(range(8))
    assert found.order[0] == min(range(8), key=lambda number: sizes[number + 1].keys[number] * sizes[number + 1].groups)
