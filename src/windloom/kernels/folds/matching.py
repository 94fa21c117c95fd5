"""The input of a fold technique, two sides whose rows are to be matched, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled
from windloom.model.arrays import Ints, Positions

Flags = NDArray[np.bool_]


class UnmatchedRows(Enum):
    """The rows of the parent that become rows by themselves, with no row of the child."""

    NONE = "none"
    UNMATCHED = "unmatched"
    MATCHED = "matched"


@dataclass(frozen=True, slots=True)
class Matchable:
    """The groups of one side: rows `bounds[g] : bounds[g + 1]` ascend by `ends`, the ordinals of window ends.

    `codes` are the numbers of the groups' join keys, common to both sides; a group with -1 matches nothing. `outs` are
    the numbers, below `out_count`, of what remains of the groups in the result.
    """

    bounds: Ints
    ends: Positions
    codes: Ints
    outs: Ints
    out_count: int

    @property
    def groups(self) -> int:
        return len(self.bounds) - 1


@dataclass(frozen=True, slots=True)
class PairCondition:
    """A further condition on pairs of groups g and h: `holds[parent[g], child[h]]`.

    If that table would be too large, there is none, and `test` decides for numbers of both sides.
    """

    parent: Ints
    child: Ints
    holds: NDArray[np.bool_] | None
    test: Callable[[Ints, Ints], NDArray[np.bool_]] | None = None


@dataclass(frozen=True, slots=True)
class LinkedRows:
    """A parent and a child. Rows match if their ends and the codes of their groups are equal, and `allowed` holds.

    With `pairs`, matching rows become rows of the result, in the group (out of the parent, out of the child); rows of
    the parent that stand alone go to the group (out of the parent, `alone_out`).
    """

    parent: Matchable
    child: Matchable
    keys: int  # codes are below this number
    ends: int  # ordinals of ends are below this number
    pairs: bool
    alone: UnmatchedRows
    alone_out: int
    allowed: PairCondition | None = None


class Stretches(NamedTuple):
    """Matches of consecutive rows: for `i < length`, `parent + i` and `child + i` match and add to row `out + i`.

    If `child` is the number of rows of the child, the rows of the parent stand alone.
    """

    parent: Any
    child: Any
    out: Any
    length: Any


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The rows of the result, by group and then by end; a group may have none.

    `stretches()` gives all matches in blocks of bounded size, which are overwritten by the next one.
    """

    parent_outs: Ints  # by group
    child_outs: Ints
    bounds: Ints
    ends: Positions
    stretches: Callable[[], Iterator[Stretches]]


# Pairs of groups that have the same join key, in order of the group of the result that they belong to.

#: Pairs that are listed at a time.
BLOCK_PAIRS = 1 << 22


class GroupPairs:
    """Lists pairs (group of the parent, group of the child) block by block; each call lists the same ones.

    A row of the parent that stands alone belongs to the pair (its group, -1). Pairs of one group of the result are
    side by side. They are listed along one side; if both sides determine the group of the result, the pairs of
    what remains of the parent's group are sorted by what remains of the child's.
    """

    def __init__(self, linked: LinkedRows) -> None:
        self.linked = linked
        parent, child = linked.parent, linked.child
        by_child = linked.alone is UnmatchedRows.NONE and parent.out_count == 1 and child.out_count > 1
        self.first, self.second = (child, parent) if by_child else (parent, child)
        self.is_swapped = by_child
        self.order, self.out_bounds = in_order(self.first.outs, self.first.out_count)
        self.of_key, self.key_bounds = in_order(self.second.codes, linked.keys)
        self.is_sorted = self.second.out_count == 1 and linked.alone_out == 0
        # The largest possible number of pairs before each group, in order of listing.
        counts = np.zeros(len(self.order) + 1, np.int64)
        sizes = np.diff(self.key_bounds)
        if linked.pairs and len(sizes):
            codes = self.first.codes[self.order]
            counts[1:] = np.where(codes >= 0, sizes[codes], 0)
        if linked.alone is not UnmatchedRows.NONE:
            counts[1:] += 1
        self.totals = np.cumsum(counts)
        self._only: tuple[Positions, Positions] | None = None

    def blocks(self) -> Iterator[tuple[Positions, Positions]]:
        """Yield groups of the parent, and of the child."""
        if self._only is not None:
            yield self._only
            return
        begin, count = 0, len(self.order)
        while begin < count:
            end = self._block_end(begin)
            pairs = self._list(begin, end)
            if begin == 0 and end == count:
                self._only = pairs
            yield pairs
            begin = end

    def _block_end(self, begin: int) -> int:
        end = int(np.searchsorted(self.totals, self.totals[begin] + BLOCK_PAIRS, side="right")) - 1
        end = max(end, begin + 1)
        if self.is_sorted or end >= len(self.order):
            return min(end, len(self.order))
        # A part that is sorted is not cut; one that is larger than a block is a block of its own.
        place = int(np.searchsorted(self.out_bounds, end, side="right")) - 1
        whole = int(self.out_bounds[place])
        return whole if whole > begin else int(self.out_bounds[place + 1])

    def _list(self, begin: int, end: int) -> tuple[Positions, Positions]:
        most = int(self.totals[end] - self.totals[begin])
        first, second = np.empty(most, np.int32), np.empty(most, np.int32)
        allowed = self.linked.allowed
        if allowed is None or allowed.holds is None:
            classes = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.ones((1, 1), np.bool_))
        elif self.is_swapped:
            classes = (allowed.child, allowed.parent, allowed.holds.T.copy())
        else:
            classes = (allowed.parent, allowed.child, allowed.holds)
        groups = (self.order[begin:end], self.first.outs, self.first.codes, self.key_bounds, self.of_key)
        listed = (self.linked.pairs, self.linked.alone is not UnmatchedRows.NONE, not self.is_sorted)
        count = _list_pairs(*groups, *classes, *listed, self.second.outs, self.linked.alone_out, first, second)
        first, second = first[:count], second[:count]
        parents, children = (second, first) if self.is_swapped else (first, second)
        if allowed is None or allowed.test is None:
            return parents, children
        holds = children < 0  # and pairs for which the condition holds, which has no table
        pairs = np.flatnonzero(~holds)
        holds[pairs] = allowed.test(allowed.parent[parents[pairs]], allowed.child[children[pairs]])
        return parents[holds], children[holds]


@compiled
def in_order(numbers, count):  # type: ignore[no-untyped-def]
    """Return the places of all numbers from 0 to `count` in order of number, and where those of each number begin."""
    bounds, order = np.zeros(count + 1, np.int64), np.empty(len(numbers), np.int64)
    for number in numbers:
        if number >= 0:
            bounds[number + 1] += 1
    for number in range(len(bounds) - 1):
        bounds[number + 1] += bounds[number]
    place = bounds[:-1].copy()
    for i in range(len(numbers)):
        if numbers[i] >= 0:
            order[place[numbers[i]]] = i
            place[numbers[i]] += 1
    return order[: bounds[-1]], bounds


@compiled
def runs_of(numbers, bounds):  # type: ignore[no-untyped-def]
    """Return the number of entries of its group, from each entry on, whose numbers are consecutive."""
    out = np.empty(len(numbers), np.int32)
    for group in range(len(bounds) - 1):
        last = bounds[group + 1] - 1
        for i in range(last, bounds[group] - 1, -1):
            out[i] = out[i + 1] + 1 if i < last and numbers[i + 1] == numbers[i] + 1 else 1
    return out


@compiled
def _list_pairs(  # type: ignore[no-untyped-def]
    order, outs, codes, key_bounds, of_key, classes, other_classes, holds, with_pairs, with_alone, is_sorting,
    other_outs, alone_out, first, second,
):  # fmt: skip
    count = begin = 0
    for k in range(len(order)):
        group = order[k]
        code = codes[group]
        if with_pairs and code >= 0:
            for i in range(key_bounds[code], key_bounds[code + 1]):
                other = of_key[i]
                if len(classes) > 0 and not holds[classes[group], other_classes[other]]:
                    continue
                first[count] = group
                second[count] = other
                count += 1
        if with_alone:
            first[count] = group
            second[count] = -1
            count += 1
        if is_sorting and (k + 1 == len(order) or outs[order[k + 1]] != outs[group]):
            _sort_pairs(other_outs, alone_out, first[begin:count], second[begin:count])
            begin = count
    return count


@compiled
def _sort_pairs(outs, alone_out, first, second):  # type: ignore[no-untyped-def]
    """Sort pairs stably by what remains of the second group."""
    if len(first) < 2:
        return
    numbers = np.empty(len(first), np.int64)
    is_sorted = True
    for i in range(len(first)):
        numbers[i] = outs[second[i]] if second[i] >= 0 else alone_out
        if i > 0 and numbers[i] < numbers[i - 1]:
            is_sorted = False
    if not is_sorted:
        order = np.argsort(numbers, kind="mergesort")
        first[:] = first[order]
        second[:] = second[order]


def groups_of_rows(side: Matchable) -> Ints:
    """Return the group of each row."""
    return np.repeat(np.arange(side.groups), np.diff(side.bounds))
