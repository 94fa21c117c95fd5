"""Cumulating windows in rounds: cells stay for as long as their period lasts."""

from __future__ import annotations

import numpy as np

from windloom.model.arrays import Mask
from windloom.model.time import TICK_MIN
from windloom.model.windows import Window
from windloom.model.windows.cumulate import CumulateWindow
from windloom.plan.plan import Member, PartialSet
from windloom.slicing.edges import EdgeClass
from windloom.state.frontiers import LateTuples
from windloom.state.history import kept_from, last_missing
from windloom.state.positions import Positions
from windloom.state.state import CellCoverage, State
from windloom.state.windows.lifecycle import ReportProgress
from windloom.state.windows.time import TimeLife


class CumulateLife(TimeLife):
    window = CumulateWindow

    def lost(
        self, partial_set: PartialSet, window: Window, reported: ReportProgress, entries: LateTuples, state: State
    ) -> tuple[Mask, Mask]:
        """Return the late entries with a closed window, and those with an open one.

        A window is named by the last of its stretches, and a tuple lies in those of its period from its own on.
        """
        assert isinstance(window, CumulateWindow)
        stretches = window.period_ticks // window.slide_ticks
        own_index = (entries.starts - window.offset_ticks) // window.slide_ticks
        last = own_index - own_index % stretches + stretches - 1
        closed_until = (reported.closed - window.offset_ticks - window.slide_ticks) // window.slide_ticks
        covered_from = TICK_MIN
        if reported.since is not None:
            covered_from = (window.begin_after(reported.since) - window.offset_ticks) // window.slide_ticks
        if reported.is_fresh:
            closed_until = min(closed_until, covered_from - 1)
        reported_from = max(closed_until + 1, covered_from)
        return own_index <= np.minimum(last, closed_until), np.maximum(own_index, reported_from) <= last

    def after_since(self, window: Window, since: int) -> int:
        assert isinstance(window, CumulateWindow)
        return window.begin_after(since)

    def first_exact(
        self, partial_set: PartialSet, planned: Member, history: CellCoverage, state: State, positions: Positions
    ) -> int | None:
        """Return the first beginning behind everything that is not kept, and behind each slicing that lacks an edge."""
        window, seen = planned.query.window, state.seen.get(partial_set.base)
        assert isinstance(window, CumulateWindow)
        if seen is None:
            return None
        lowest = min(kept_from(partial_set, planned, history), seen + 1)
        # A window that begins or ends at an edge which is missing is wrong; all that begin later have their edges.
        edges = EdgeClass(window.slide_ticks, window.offset_ticks)
        missing = (last_missing(edges, cut, lowest) for cut in history.cuts)
        exact_from = max([lowest, *(tick + 1 for tick in missing if tick is not None)])
        return None if exact_from == TICK_MIN else window.begin_after(exact_from)

    def last_start(self, window: Window, closed: int) -> int:
        assert isinstance(window, CumulateWindow)
        return window.begin(window.last_start(closed) - 1)
