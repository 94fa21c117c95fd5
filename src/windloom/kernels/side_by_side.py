"""Puts answers of many queries side by side: where stretches of rows begin, which pairs of key and instant there are.

A stretch is rows of one key whose windows follow each other. A row stands at all instants from its own on, until the
next window of its query ends: from `place` up to, but not including, `next_place[place]`. So a stretch stands at
neighbouring instants.
"""

from __future__ import annotations

from windloom.kernels.compiling import compiled


@compiled
def mark_turns(values, step, is_turn):  # type: ignore[no-untyped-def]
    """Mark the rows whose value is not that of the row before it plus `step`."""
    for row in range(1, len(values)):
        is_turn[row] = is_turn[row] | (values[row] != values[row - 1] + step)


@compiled
def mark_instants(first, last, step, is_used):  # type: ignore[no-untyped-def]
    """Mark every `step`-th instant of each stretch, from the first to the last."""
    for stretch in range(len(first)):
        for instant in range(first[stretch], last[stretch] + 1, step):
            is_used[instant] = True


@compiled
def mark_pairs(first, stop, is_present):  # type: ignore[no-untyped-def]
    """Mark the pairs of each stretch; its pairs are neighbours."""
    for stretch in range(len(first)):
        for pair in range(first[stretch], stop[stretch]):
            is_present[pair] = True


@compiled
def spread_rows(values, begin, places, targets, counts, next_place, spread):  # type: ignore[no-untyped-def]
    """Write the value of each row to all rows of the table in which it stands.

    A stretch has the rows between neighbouring bounds in `begin`, stands from its place and its target on, and in so
    many rows of the table.
    """
    for stretch in range(len(places)):
        row, place, target = begin[stretch], places[stretch], targets[stretch]
        stop = target + counts[stretch]
        while target < stop:
            until = target + next_place[place] - place
            place = next_place[place]
            while target < until:
                spread[target] = values[row]
                target += 1
            row += 1
