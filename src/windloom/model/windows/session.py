"""Session windows: `[SESSION GAP 5 minutes]`, for each group the tuples between two pauses."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.aggregate import Component
from windloom.model.clauses import Emits
from windloom.model.formatting import short_duration
from windloom.model.time import format_duration
from windloom.model.windows.window import Window

#: The tick of the latest tuple of a session, which determines where it ends.
LAST_TICK = Component("last_tick")


@dataclass(frozen=True, slots=True)
class SessionWindow(Window):
    """Windows `[first, last + gap)` of a group's tuples, each of which comes at most the gap after the one before it.

    For slicings and costs, a session is a stretch as long as the gap, its least length. Its cells are not cut at
    edges: a cell is a session, or the part of it that has come so far.

    >>> SessionWindow(300_000_000).short, str(SessionWindow(300_000_000))
    ('session / 5 min', '[SESSION GAP 5 minutes]')
    """

    gap_ticks: int

    kind = "session"
    listed_at = 4
    example = "[SESSION GAP 5 minutes]"
    plural = "session windows"
    tuple_phrase = "lies in exactly one window"
    slices_phrase = "is one cell, which grows with every tuple"
    function = "session_window"
    join_obstacle = "those of two streams do not end together"
    reports_rows = False
    keeps_slices = False
    is_sliced = False
    rolls_up = False  # a pause of one group need not be a pause of all groups together
    native_obstacle = "has session windows, which are not cut at edges that Spark could group by"
    wide_obstacle = "its sessions end at another tick in every group"
    offset_ticks = 0
    components = (LAST_TICK,)
    emission_obstacles = {  # noqa: RUF012 - a constant
        Emits.EARLY: "every tuple moves the end of an open session, so a row reported early is of no window in the end",
        **dict.fromkeys(
            (Emits.CHANGES, Emits.EMPTY),
            "the sessions of different groups end at different times, and none follows another at a known one",
        ),
    }

    def __post_init__(self) -> None:
        self._check([("gap", self.gap_ticks)])

    @property
    def range_ticks(self) -> int:
        return self.gap_ticks

    @property
    def slide_ticks(self) -> int:
        return self.gap_ticks

    def with_slide(self, slide_ticks: int) -> SessionWindow:
        return SessionWindow(slide_ticks)

    @property
    def set_identity(self) -> tuple[str, ...]:
        return ("session", format_duration(self.gap_ticks))

    @property
    def set_text(self) -> str:
        return str(self)

    def _written(self) -> str:
        return f"SESSION GAP {format_duration(self.gap_ticks)}"

    def _short_lengths(self) -> str:
        return f"session / {short_duration(self.gap_ticks)}"

    def intervals_text(self) -> str:
        gap = short_duration(self.gap_ticks)
        return f"[first, last + {gap}) of tuples of a group that come at most {gap} after each other"

    @property
    def cells_text(self) -> str:
        return f"a cell is a session of a group, which ends when no tuple comes for {format_duration(self.gap_ticks)}"
