"""The order in which joins are worked through, by source E's cost (§5.3): sizes multiply, common values divide.

A pipeline starts with rows of one input and looks up the others, one after the other. Each look-up multiplies the rows
by those that match: `n·m / max(v, w)` of n rows with v values and m rows with w values, of which `min(v, w)` remain. So
inputs that shrink the rows, or let them grow little, should come early. The inputs of source E are windows of tuples;
here they are the rows of sides at the end of a window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product

from windloom.model.join import Join
from windloom.model.stream import JoinKind

#: Up to this many inputs all orders are compared; beyond, those that the heuristic of source E considers.
MOST_COMPARED = 6
#: The most inputs that the heuristic moves independently; each multiplies the orders it compares.
_MOST_MOVED = 2

#: An order of inputs, by number.
Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Size:
    """Rows, and how many different values they have in the column they are joined on."""

    rows: float
    values: float

    def joined(self, other: Size) -> Size:
        """Return the pairs that match, if the side with fewer values has only values of the other (source E, φ)."""
        values = max(self.values, other.values)
        rows = self.rows * other.rows / values if values else 0.0
        return Size(rows, min(self.values, other.values))


def cheapest_order(count: int, cost: Callable[[Order], float], first: Order, fast: Sequence[int] = ()) -> Order:
    """Return the cheapest of all orders for up to 6 inputs; beyond that, the cheapest of those near a first one.

    The heuristic takes the first order and those in which the fast inputs are moved up, independently of each other.
    """
    if count <= MOST_COMPARED:
        return min(permutations(range(count)), key=lambda order: (cost(order), order))
    moved, orders = fast[:_MOST_MOVED], list[Order]()
    for positions in product(*(range(first.index(input_) + 1) for input_ in moved)):
        order = [input_ for input_ in first if input_ not in moved]
        for input_, position in sorted(zip(moved, positions, strict=True), key=lambda pair: pair[1]):
            order.insert(position, input_)
        orders.append(tuple(order))
    return min(orders, key=lambda order: (cost(order), order))


@dataclass(frozen=True, slots=True)
class SideSize:
    """The size of a side at the end of a window: its groups, and how many values these have in the columns that matter.

    `keys` are the values of the keys of its links, by number of the link; `groups` those of the grouping columns that
    the query reports of it, 1 if it reports none. `matching` is the share of the parent's rows that have a match, by
    link, where rounds have shown it.
    """

    rows: float
    keys: Mapping[int, float] = field(default_factory=dict)
    groups: float = 1.0
    matching: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Elimination:
    """A side with all children that have been folded into it, by number of the link and in that order.

    `rows` counts the rows that are touched in all, at every end; `matches` the pairs of rows that meet, before they are
    added up.
    """

    size: SideSize
    order: Order = ()
    rows: float = 0.0
    matches: float = 0.0


def elimination_of(join: Join, sizes: Sequence[SideSize], order: Order) -> Elimination:
    """Return the elimination in a given order, in which every child is complete before it is folded."""
    folded = {side: Elimination(size) for side, size in enumerate(sizes)}
    for number in order:
        link = join.links[number]
        folded[link.parent] = _fold(join, number, folded[link.parent], folded[link.child])
    return replace(folded[0], order=order)


def elimination_order(join: Join, sizes: Sequence[SideSize], side: int = 0) -> Elimination:
    """Return the order that touches the fewest rows below a side, among all in which children are complete when folded.

    Only the order among the children of one parent matters, so each parent is ordered by itself.
    """
    numbers = [number for number, link in enumerate(join.links) if link.parent == side]
    children = [elimination_order(join, sizes, join.links[number].child) for number in numbers]

    def fold(order: Order) -> Elimination:
        folded = Elimination(sizes[side])
        for child in order:
            folded = _fold(join, numbers[child], folded, children[child])
        return folded

    if not children:
        return Elimination(sizes[side])
    alone = [fold((place,)) for place in range(len(children))]
    first = tuple(sorted(range(len(children)), key=lambda place: (alone[place].size.rows, place)))
    mean = sum(folded.size.rows for folded in children) / len(children)
    fast = [place for place in first if children[place].size.rows > mean]
    return fold(cheapest_order(len(children), lambda order: fold(order).rows, first, fast))


def _fold(join: Join, number: int, parent: Elimination, child: Elimination) -> Elimination:
    """Return the parent after a fold: the child is read, parent rows look up their keys, results are written."""
    link, before, other = join.links[number], parent.size, child.size
    keys = Size(before.rows, before.keys.get(number, before.rows)), Size(other.rows, other.keys.get(number, other.rows))
    matching = min(1.0, keys[1].values / keys[0].values) if keys[0].values else 0.0
    matching = before.matching.get(number, matching)
    # A child is added up: it has one row per key and group that is reported. A residual is tested on every row instead.
    per_key = other.rows / other.keys.get(number, other.rows) if other.keys.get(number, other.rows) else 0.0
    per_key = per_key if link.residual is not None else min(per_key, other.groups)
    rows = {
        JoinKind.INNER: before.rows * matching * per_key,
        JoinKind.LEFT: before.rows * (matching * per_key + 1.0 - matching),
        JoinKind.SEMI: before.rows * matching,
        JoinKind.ANTI: before.rows * (1.0 - matching),
    }[link.kind]
    is_kept = link.kind in (JoinKind.INNER, JoinKind.LEFT)
    left = {known_link: min(values, rows) for known_link, values in before.keys.items()}
    if link.kind in (JoinKind.INNER, JoinKind.SEMI):
        left[number] = min(keys[0].values, keys[1].values)
        parents = {key.parent for key in link.keys}
        for other_number in left:  # links that look up the same columns of one parent
            other_link = join.links[other_number]
            if other_link.parent == link.parent and {key.parent for key in other_link.keys} == parents:
                left[other_number] = min(left[other_number], left[number])
    size = replace(before, rows=rows, keys=left, groups=before.groups * (other.groups if is_kept else 1.0))
    touched = parent.rows + child.rows + other.rows + before.rows + rows
    met = before.rows * matching * (other.rows / keys[1].values if keys[1].values else 0.0)
    matches = parent.matches + child.matches + met
    return Elimination(size, (*parent.order, *child.order, number), touched, matches)
