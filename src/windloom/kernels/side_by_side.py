"""Puts answers of many queries side by side: which pairs of a key and an instant there are, and which row each takes.

A row stands at all instants from its own on, until the next window of its query ends: from `places[row]` up to, but not
including, `next_place[places[row]]`. Pairs are those of the keys from `first` up to, but not including, `last`; those
of a key are neighbours, as its rows are.
"""

from __future__ import annotations

from windloom.kernels.compiling import compiled


@compiled
def mark_pairs(places, codes, next_place, first, last, is_present):  # type: ignore[no-untyped-def]
    """Mark the pairs that there are."""
    for row in range(len(places)):
        if first <= codes[row] < last:
            begin = (codes[row] - first) * len(next_place)
            for place in range(places[row], next_place[places[row]]):
                is_present[begin + place] = True


@compiled
def place_rows(places, codes, next_place, first, last, number_of, row_of):  # type: ignore[no-untyped-def]
    """Write the number of each row to where its pairs stand; `number_of` says that by pair."""
    for row in range(len(places)):
        if first <= codes[row] < last:
            begin = (codes[row] - first) * len(next_place)
            for place in range(places[row], next_place[places[row]]):
                row_of[number_of[begin + place]] = row
