"""Landmarks: where the windows of landmark queries begin, how far they are reported, and cells folded behind them.

A landmark query begins at the last edge of its slide at or before the first tuple of its stream. That is settled when
the frontier of the stream passes that tuple: before, an earlier tuple may still come. A query that is added later,
when earlier tuples are no longer kept, begins where it is exact (`since`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from windloom.model.stream import Stream
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.plan.physical import PartialSet, Plan, PlannedQuery
from windloom.rounds.cells import Cells, keep_from, move_cells


@dataclass(frozen=True, slots=True)
class Landmark:
    """Windows of one query from `start` to every end up to `until`."""

    start: int = TICK_MIN
    until: int = TICK_MIN  # no tuple yet: nothing to report


def landmarks_of(
    plan: Plan,
    since: Mapping[str, int],
    first: Mapping[str, int],
    seen: Mapping[str, int],
    until: Mapping[int, int],
) -> dict[str, Landmark]:
    """Of every landmark query, by name; `first` and `seen` are the smallest and largest tick of each stream.

    `until` says, by number of the set, up to where windows are closed. Where that is +∞ the last end is the first one
    behind the stream's last tuple.
    """
    found = {}
    for one in plan.sets:
        closed = until[one.number]
        for planned in landmark_queries(one):
            window, stream = planned.query.window, one.stream
            found[planned.name] = Landmark()
            if stream in first and stream in seen:
                start = since.get(planned.name, window.last_start(first[stream]))
                last_end = window.last_start(seen[stream]) + window.slide_ticks
                found[planned.name] = Landmark(start, last_end if closed >= TICK_MAX else closed)
    return found


def first_ticks(
    state_first: Mapping[str, int], smallest: Mapping[str, int], frontiers: Mapping[str, int]
) -> dict[str, int]:
    """The first tick of each stream when a round has brought `smallest`; behind its frontier it is settled."""
    found = dict(state_first)
    for stream, tick in smallest.items():
        known = found.get(stream)
        if known is None or known >= frontiers.get(stream, TICK_MIN):
            found[stream] = tick if known is None else min(tick, known)
    return found


def landmark_queries(one: PartialSet) -> Iterable[PlannedQuery]:
    return (planned for planned in one.queries if planned.query.window.is_landmark)


def landmark_streams(plan: Plan) -> list[Stream]:
    """Streams whose first and last tick a batch run must know."""
    landmarks = (planned.query for planned in plan.queries if planned.query.window.is_landmark)
    names = {stream for query in landmarks for stream in query.streams}
    return [stream for stream in plan.streams if stream.name in names]


def fold_behind(cells: Cells, tick: int, starts: Iterable[int]) -> Cells:
    """Cells before `tick` become one cell a group from each landmark to the next; those before every one are dropped.

    Every open window of a landmark query covers all cells behind the watermark, from its landmark on. So they need not
    be told apart, and the state does not grow with the stream.
    """
    edges = np.unique(np.array(list(starts), np.int64))
    folded = cells.starts < tick
    place = np.searchsorted(edges, cells.starts, side="right") - 1
    moved = np.where(folded & (place >= 0), edges[place], cells.starts)
    kept = cells if (moved == cells.starts).all() else move_cells(cells, moved)
    return keep_from(kept, min(int(edges[0]), tick))
