"""Cumulating windows: `[CUMULATE 1 day SLIDE 1 minute OFFSET 9 hours 30 minutes]`."""

from __future__ import annotations

from windloom.language.windows.syntax import LENGTHS, Bracket, Syntax, blaming, read_durations
from windloom.model import Window
from windloom.model.windows.cumulate import CumulateWindow

_FORM = f"write {CumulateWindow.example}"


class CumulateSyntax(Syntax):
    window = CumulateWindow
    words = ("CUMULATE",)

    def read(self, bracket: Bracket) -> Window:
        source = bracket.source
        lengths = read_durations(bracket.tokens, bracket, ("CUMULATE", *LENGTHS), "1 day")
        for other in ("RANGE", "TUMBLE"):
            if other in lengths:
                raise source.error(f"a cumulating window has no {other}", lengths[other].at, _FORM)
        if "SLIDE" not in lengths:
            raise source.error("the window has no SLIDE", bracket.at, f"say how often it is reported: {_FORM}")
        period, slide, offset = lengths["CUMULATE"], lengths["SLIDE"], lengths.get("OFFSET")
        period_ticks, slide_ticks = period.ticks(source), slide.ticks(source)
        offset_ticks = 0 if offset is None else offset.ticks(source)
        with blaming(period.at, source):
            CumulateWindow(period_ticks, period_ticks)
        with blaming(slide.at, source):
            return CumulateWindow(period_ticks, slide_ticks, offset_ticks)
