"""Counts the tuples of streams that several partial sets read."""

from __future__ import annotations

from collections.abc import Mapping

from windloom.plan.physical import Plan


def events_of(plan: Plan, tuples: Mapping[int, int]) -> int:
    """The number of tuples of all streams; each stream counts by the set that took most, as its sets read the same.

    Sets of positions take a tuple when its position is final, which may be rounds later, and an enriched stream has a
    tuple as often as it matches. Such sets count only if a stream has no others.
    """
    sets = [partial_set for partial_set in plan.sets if not partial_set.is_relation]
    plain = {partial_set.stream for partial_set in sets if partial_set.counted_by is None}
    most: dict[str, int] = {}
    for partial_set in sets:
        if (partial_set.counted_by is None and partial_set.stream == partial_set.base) or partial_set.base not in plain:
            most[partial_set.base] = max(most.get(partial_set.base, 0), tuples.get(partial_set.number, 0))
    return sum(most.values())
