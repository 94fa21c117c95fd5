"""Sets of values of an ordered domain, possibly with NULL, kept as the places where they begin and end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

#: A place in the order of a domain: `(value, 0)` just before the value, `(value, 1)` just after it.
Cut = tuple[Any, int]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of an ordered domain.

    `null`: whether NULL is in the set; `below`: whether values before the first cut are; every cut leads in or out.

    Sets are made without cuts before the first and after the last value of the domain, so equal sets are
    equal values and no stretch between two cuts is empty.
    """

    null: bool
    below: bool
    cuts: tuple[Cut, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.null or self.below or self.cuts)

    @property
    def is_full(self) -> bool:
        return self.null and self.below and not self.cuts

    @property
    def complement(self) -> ValueSet:
        return ValueSet(not self.null, not self.below, self.cuts)

    @property
    def present(self) -> ValueSet:
        """The set without NULL."""
        return ValueSet(False, self.below, self.cuts) if self.null else self

    @property
    def stretches(self) -> list[tuple[Cut | None, Cut | None]]:
        """The stretches of the set, from cut to cut; None is the end of the domain."""
        ends: list[Cut | None] = [None, *self.cuts] if self.below else [*self.cuts]
        if len(ends) % 2:
            ends.append(None)
        return list(zip(ends[::2], ends[1::2], strict=True))

    def __or__(self, other: ValueSet) -> ValueSet:
        return union((self, other))

    def __and__(self, other: ValueSet) -> ValueSet:
        return union((self.complement, other.complement)).complement

    def __le__(self, other: ValueSet) -> bool:
        """Whether it is a subset of the other."""
        return (self & other.complement).is_empty


EMPTY = ValueSet(False, False)
FULL = ValueSet(True, True)
NULL = ValueSet(True, False)
PRESENT = ValueSet(False, True)


def union(sets: Iterable[ValueSet]) -> ValueSet:
    """The values of any of the sets, in one pass over their cuts."""
    null, depth = False, 0
    steps: dict[Cut, int] = defaultdict(int)
    for each in sets:
        null |= each.null
        depth += each.below
        inside = each.below
        for cut in each.cuts:
            steps[cut] += -1 if inside else 1
            inside = not inside
    below, cuts = depth > 0, []
    for cut in sorted(steps):
        before, depth = depth, depth + steps[cut]
        if (before > 0) != (depth > 0):
            cuts.append(cut)
    return ValueSet(null, below, tuple(cuts))


def intersection(sets: Iterable[ValueSet]) -> ValueSet:
    return reduce(and_, sets, FULL)


def hull(values: ValueSet) -> ValueSet:
    """The set with its inner gaps filled."""
    stretches = values.stretches
    if not stretches:
        return values
    ends = (stretches[0][0], stretches[-1][1])
    return ValueSet(values.null, ends[0] is None, tuple(end for end in ends if end is not None))


def is_point(start: Cut | None, end: Cut | None) -> bool:
    """Whether exactly one value lies between the two."""
    if start is None or end is None:
        return False
    return bool(start[0] == end[0] or (isinstance(end[0], int) and end[0] - start[0] == 1))


def classes(sets: Sequence[ValueSet]) -> dict[int, ValueSet]:
    """Every combination of sets (bit i: set i) that holds some value, with the set of these values."""
    steps: dict[Cut, int] = defaultdict(int)
    mask, null = 0, 0
    for index, each in enumerate(sets):
        null |= each.null << index
        mask |= each.below << index
        for cut in each.cuts:
            steps[cut] ^= 1 << index
    values_of_mask = {null: NULL}
    cuts = sorted(steps)
    for start, end in zip([None, *cuts], [*cuts, None], strict=True):
        if start is not None:
            mask ^= steps[start]
        if mask not in values_of_mask:
            values_of_mask[mask] = ValueSet(False, start is None, tuple(cut for cut in (start, end) if cut is not None))
    return values_of_mask
