"""The orders of source E (§5.3), in which a new tuple probes the windows of all other inputs of a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windloom.optimizer.joins.order import Order, Size, cheapest_order


@dataclass(frozen=True, slots=True)
class JoinedWindow:
    """An input of source E: tuples per unit of time, the length of the window, values of the join attribute in it."""

    rate: float
    length: float
    values: float

    @property
    def size(self) -> Size:
        return Size(self.rate * self.length, self.values)


def probe_cost(windows: Sequence[JoinedWindow], order: Order) -> float:
    """Comparisons per unit of time if windows are joined on one attribute by nested loops, in a global order.

    A new tuple of any input looks through the windows of all others in that order.

    >>> windows = [JoinedWindow(*one) for one in [(10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5)]]
    >>> probe_cost(windows, (0, 1, 2, 3))
    16000.0
    """
    total = 0.0
    for number in order:
        rows_so_far = Size(1.0, windows[number].values)
        for other in order:
            if other != number:
                total += windows[number].rate * rows_so_far.rows * windows[other].size.rows
                rows_so_far = rows_so_far.joined(windows[other].size)
    return total


def probe_order(windows: Sequence[JoinedWindow]) -> Order:
    """The global order of least cost; for many inputs the heuristic's: by selectivity, with fast streams moved up."""
    mean = sum(joined_window.rate for joined_window in windows) / len(windows)
    fast = sorted(
        (i for i, joined_window in enumerate(windows) if joined_window.rate > mean), key=lambda i: -windows[i].rate
    )
    return cheapest_order(len(windows), lambda order: probe_cost(windows, order), by_selectivity(windows), fast)


def by_selectivity(windows: Sequence[JoinedWindow]) -> Order:
    """Always takes next the input that gives the fewest pairs with those before it (source E, initial heuristic)."""
    sizes = [joined_window.size for joined_window in windows]
    if len(sizes) < 2:
        return tuple(range(len(sizes)))
    pairs = [(a, b) for a in range(len(sizes)) for b in range(a + 1, len(sizes))]
    first, second = min(pairs, key=lambda pair: sizes[pair[0]].joined(sizes[pair[1]]).rows)
    order, joined = [first, second], sizes[first].joined(sizes[second])
    while len(order) < len(sizes):
        left = [window for window in range(len(sizes)) if window not in order]
        following = min(left, key=lambda window: joined.joined(sizes[window]).rows)
        order, joined = [*order, following], joined.joined(sizes[following])
    return tuple(order)
