"""The order in which the strands of a row query are joined, by the pairs that orders are expected to make.

A round joins the new tuples of each strand with the present ones of the others, in one global order, as source E does
(§5.3). A hash join touches the rows it reads and the rows it makes; without a key it touches every pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from windloom.model.join import JoinKind
from windloom.model.rows import Selection
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.joins.order import Order, Size, cheapest_order
from windloom.plan.rows import StrandRate

#: The share of pairs that a condition without a key is assumed to let through.
RESIDUAL_SHARE = 1 / 3


#: The name of the switch for these orders, and the separator between those of several selections.
ROW_ORDER, _BETWEEN = "row order", " / "


def write_orders(orders: Sequence[Order]) -> str:
    """The orders of all selections of a query as the option of a switch.

    >>> write_orders([(0, 2, 1), (0,)])
    '0 2 1 / 0'
    """
    return _BETWEEN.join(" ".join(map(str, order)) for order in orders)


def read_orders(text: str) -> list[Order]:
    """The orders that `write_orders` wrote.

    >>> read_orders("0 2 1 / 0")
    [(0, 2, 1), (0,)]
    """
    return [tuple(map(int, order.split())) for order in text.split(_BETWEEN)]


def possible_orders(selection: Selection) -> Iterator[Order]:
    """All orders that give the rows of a selection: only one if a LEFT join is among the strands."""
    every = range(selection.joined)
    is_free = all(attached.kind is JoinKind.INNER for attached in selection.attached)
    yield from permutations(every) if is_free else [tuple(every)]


def strand_sizes(selection: Selection, rates: Sequence[StrandRate]) -> list[Size]:
    """The tuples in a window of each joined strand, and the values of its keys among them."""
    sizes = []
    for strand, rate in zip(selection.strands[: selection.joined], rates, strict=False):
        rows = rate.rate * strand.window.range_ticks / TICKS_PER_SECOND
        sizes.append(Size(rows, max(1.0, min(rate.values, rows))))
    return sizes


def join_order(selection: Selection, rates: Sequence[StrandRate]) -> Order:
    """The cheapest global order; if a LEFT join is among the strands, the order in which they are written."""
    every = tuple(range(selection.joined))
    if selection.joined < 3 or any(attached.kind is not JoinKind.INNER for attached in selection.attached):
        return every
    sizes = strand_sizes(selection, rates)
    cost = order_cost(selection, rates)
    mean = sum(rate.rate for rate in rates[: selection.joined]) / selection.joined
    fast = sorted((i for i in every if rates[i].rate > mean), key=lambda i: -rates[i].rate)
    return cheapest_order(selection.joined, cost, _first(selection, sizes), fast)


def order_cost(selection: Selection, rates: Sequence[StrandRate]) -> Callable[[Order], float]:
    """The rows that are touched per second if new tuples of each strand look up the others in a global order."""
    sizes = strand_sizes(selection, rates)

    def cost(order: Order) -> float:
        total = 0.0
        for number in order:
            done, rows_so_far = {number}, Size(1.0, sizes[number].values)
            for other in order:
                if other == number:
                    continue
                joined_rows = joined(selection, done, rows_so_far, other, sizes[other])
                is_keyed = links(selection, done, other)[0] > 0
                touched = rows_so_far.rows + joined_rows.rows if is_keyed else rows_so_far.rows * sizes[other].rows
                total += rates[number].rate * touched
                done, rows_so_far = done | {other}, joined_rows
        return total

    return cost


def joined(selection: Selection, done: set[int], found: Size, other: int, size: Size) -> Size:
    """The rows after one more strand, by the keys and conditions that link it to those before."""
    keys, conditions = links(selection, done, other)
    if not keys:
        both = Size(found.rows * size.rows, max(found.values, size.values))
    else:
        both = found.joined(size)
        # Further keys are taken to divide as the first does, but never below one row per pair of equal keys.
        for _ in range(keys - 1):
            both = Size(both.rows / max(1.0, min(found.values, size.values) ** 0.5), both.values)
    share = RESIDUAL_SHARE**conditions
    return Size(both.rows * share, both.values)


def links(selection: Selection, done: set[int], other: int) -> tuple[int, int]:
    """How many keys, and how many other conditions, are decided when a strand is joined to those before it."""
    left_join = selection.attached[other - 1].on if other else ()  # of a LEFT join
    decided = [
        condition
        for condition in (*selection.conditions, *left_join)
        if other in condition.strands and set(condition.strands) <= done | {other} and len(condition.strands) > 1
    ]
    keys = sum(condition.is_key for condition in decided)
    return keys, len(decided) - keys


def expected_rows(selection: Selection, rates: Sequence[StrandRate], order: Order) -> tuple[float, float]:
    """The rows of one window, and the pairs that must be looked at without a key to find them."""
    sizes = strand_sizes(selection, rates)
    done, rows_so_far, compared = {order[0]}, sizes[order[0]], 0.0
    for other in order[1:]:
        if not links(selection, done, other)[0]:
            compared += rows_so_far.rows * sizes[other].rows
        rows_so_far = joined(selection, done, rows_so_far, other, sizes[other])
        done |= {other}
    return rows_so_far.rows, compared


def _first(selection: Selection, sizes: Sequence[Size]) -> Order:
    """The order that next takes the strand with the fewest rows after joining (source E, initial heuristic)."""
    order, left = [0], set(range(1, len(sizes)))
    rows_so_far = sizes[0]
    while left:
        done = set(order)
        following = min(
            left, key=lambda strand: (joined(selection, done, rows_so_far, strand, sizes[strand]).rows, strand)
        )
        rows_so_far = joined(selection, done, rows_so_far, following, sizes[following])
        order.append(following)
        left.remove(following)
    return tuple(order)
