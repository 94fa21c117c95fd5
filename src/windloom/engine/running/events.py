"""Counts the tuples of streams that several partial sets read."""

from __future__ import annotations

from collections.abc import Mapping

from windloom.plan.physical import Plan


def events_of(plan: Plan, tuples: Mapping[int, int]) -> int:
    """Tuples of each stream, counted in the set that took most of them: sets of one stream read the same tuples.

    Sets of positions take a tuple when its position is final, which may be rounds later, and what was joined with
    relations has a tuple as often as it matches: they count only where a stream has no others.
    """
    sets = [one for one in plan.sets if not one.is_relation]
    plain = {one.stream for one in sets if one.counted_by is None}
    most: dict[str, int] = {}
    for one in sets:
        if (one.counted_by is None and one.stream == one.base) or one.base not in plain:
            most[one.base] = max(most.get(one.base, 0), tuples.get(one.number, 0))
    return sum(most.values())
