"""Landmarks: where the windows of landmark queries begin, how far they are reported, and how their cells are folded.

A landmark query begins at the last edge of its slide at or before the first tuple of its stream. That is settled when
the frontier of the stream passes that tuple: before, an earlier tuple may still come. A query that is added later,
when earlier tuples are no longer kept, begins where it is exact (`since`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from windloom.model.arrays import Mask
from windloom.model.clauses import Emits
from windloom.model.stream import Stream
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import LandmarkWindow, Window
from windloom.plan.plan import Member, PartialSet, Plan
from windloom.state.frontiers import Inputs, LateTuples
from windloom.state.state import State
from windloom.state.windows.lifecycle import Landmark, ReportProgress
from windloom.state.windows.time import TimeLife, reported_until


class LandmarkLife(TimeLife):
    window = LandmarkWindow

    def lost(
        self, partial_set: PartialSet, window: Window, reported: ReportProgress, entries: LateTuples, state: State
    ) -> tuple[Mask, Mask]:
        # A tuple is in every window that ends after it; a tuple before a settled landmark would have moved the
        # landmark.
        assert reported.landmark is not None
        starts = entries.starts
        closed_until, _ = reported_until(window, reported)
        is_held = starts >= reported.landmark.start
        own_index = (starts - window.offset_ticks) // window.slide_ticks
        missed = np.where(is_held, own_index <= closed_until, reported.since is None)
        return missed, is_held & (reported.closed < TICK_MAX)

    def holds_back(self, window: Window, since: int, closed: int) -> bool:
        return True  # the landmark of a query that was added later is where it is exact, permanently


def landmarks_of(
    plan: Plan,
    since: Mapping[str, int],
    first: Mapping[str, int],
    seen: Mapping[str, int],
    until: Mapping[Inputs, int],
) -> dict[str, Landmark]:
    """Return the landmarks of all landmark queries, by name.

    `first` and `seen` are the smallest and largest tick, by stream. `until` says, by inputs of queries, up to where
    windows are closed. If that is +∞, the last end is the first one after the last tuple of all inputs.
    """
    landmarks = {}
    for partial_set in plan.sets:
        for planned in landmark_queries(partial_set):
            window, stream, closed = planned.query.window, partial_set.base, until[planned.query.inputs]
            latest = max((seen[each] for each in planned.query.inputs if each in seen), default=None)
            if latest is None:
                landmarks[planned.name] = Landmark()
                continue
            start = since.get(planned.name, window.last_start(first[stream])) if stream in first else TICK_MIN
            last_end = window.last_start(latest) + window.slide_ticks
            landmarks[planned.name] = Landmark(start, last_end if closed >= TICK_MAX else closed)
    return landmarks


def first_ticks(
    state_first: Mapping[str, int], smallest: Mapping[str, int], frontiers: Mapping[str, int]
) -> dict[str, int]:
    """Return the first tick of each stream after a round with ticks `smallest`; behind the frontier, it is settled."""
    ticks = dict(state_first)
    for stream, tick in smallest.items():
        known = ticks.get(stream)
        if known is None or known >= frontiers.get(stream, TICK_MIN):
            ticks[stream] = tick if known is None else min(tick, known)
    return ticks


def landmark_queries(partial_set: PartialSet) -> Iterable[Member]:
    return (planned for planned in partial_set.queries if isinstance(planned.query.window, LandmarkWindow))


def timed_streams(plan: Plan) -> list[Stream]:
    """Return the streams whose first and last tick a batch run must know."""
    asking = [planned.query for partial_set in plan.sets for planned in landmark_queries(partial_set)]
    asking += [planned.query for planned in plan.queries if planned.query.emission.kind in (Emits.CHANGES, Emits.EMPTY)]
    names = {stream for query in asking for stream in query.inputs}
    return [stream for stream in plan.streams if stream.name in names]
