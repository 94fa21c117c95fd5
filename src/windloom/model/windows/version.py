"""The window of a relation: all rows of the version that a round has."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.windows.window import MAX_TICKS, Window


@dataclass(frozen=True, slots=True)
class VersionWindow(Window):
    """One window that holds every row of a relation, for each end at which a join asks for it.

    The rows of a relation have no time. All of them count as if they were at tick 0, so that one slice holds them.
    Users do not write this window: in the text of a query, a relation has none.

    >>> str(VersionWindow()), VersionWindow().last_start(0)
    ('[VERSION]', 0)
    """

    kind = "version"
    example = "a relation without a bracket"
    plural = "versions of a relation"
    tuple_phrase = "counts at every end of a window of the join"
    slices_phrase = "is one slice"
    is_version = True
    is_sliced = False
    range_ticks = slide_ticks = MAX_TICKS
    offset_ticks = 0
    extent_ticks = None
    windows_per_tuple = None
    set_identity = ("version",)
    cells_text = "one per group: a version has no slices"

    def with_slide(self, slide_ticks: int) -> VersionWindow:
        return self

    def _written(self) -> str:
        return "VERSION"

    def _short_lengths(self) -> str:
        return "version"

    def intervals_text(self) -> str:
        return "all rows of the version that a round has"
