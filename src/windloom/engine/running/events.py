"""Counts the tuples of streams that several partial sets read."""

from __future__ import annotations

from collections.abc import Mapping

from windloom.plan.physical import Plan


def events_of(plan: Plan, tuples: Mapping[int, int]) -> int:
    """Tuples of each stream, counted in the set that took most of them: sets of one stream read the same tuples.

    Sets of positions take a tuple when its position is final, which may be rounds later: they count only where a
    stream has no others.
    """
    timed = {one.stream for one in plan.sets if one.counted_by is None}
    most: dict[str, int] = {}
    for one in plan.sets:
        if one.counted_by is None or one.stream not in timed:
            most[one.stream] = max(most.get(one.stream, 0), tuples.get(one.number, 0))
    return sum(most.values())
