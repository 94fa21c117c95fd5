"""Landmark windows: `[LANDMARK SLIDE 1 hour]`, `[UNTIL NOW SLIDE 1 hour OFFSET 5 minutes]`."""

from __future__ import annotations

from windloom.language.sql.tokens import is_word
from windloom.language.windows.syntax import LENGTHS, Bracket, Syntax, blaming, read_durations
from windloom.model import LandmarkWindow, Window

_FORM = "write [LANDMARK SLIDE 1 hour], or [UNTIL NOW SLIDE 1 hour]"


class LandmarkSyntax(Syntax):
    window = LandmarkWindow
    words = ("LANDMARK", "UNTIL")

    def read(self, bracket: Bracket) -> Window:
        """Return the window; without a SLIDE, it keeps the pace of the bracket, if there is one."""
        source, pace = bracket.source, bracket.pace
        first, rest = bracket.tokens[0], bracket.tokens[1:]
        if is_word(first, "UNTIL"):
            if not rest or not is_word(rest[0], "NOW"):
                raise source.error("NOW is missing after UNTIL", first, _FORM)
            rest = rest[1:]
        if rest and not is_word(rest[0], *LENGTHS):
            message = f"a landmark window begins with the stream, not at '{source.raw(rest[0])}'"
            raise source.error(message, rest[0], f"{_FORM}; to leave out what came earlier, use WHERE")
        lengths = read_durations(rest, bracket) if rest else {}
        for other in ("RANGE", "TUMBLE"):
            if other in lengths:
                raise source.error(f"a landmark window has no {other}", lengths[other].at, _FORM)
        offset = lengths.get("OFFSET")
        if "SLIDE" not in lengths:
            if pace is None:
                raise source.error("the window has no SLIDE", bracket.at, f"say how often it is reported: {_FORM}")
            return LandmarkWindow(pace.slide_ticks, pace.offset(0) if offset is None else offset.ticks(source))
        slide = lengths["SLIDE"]
        offset_ticks = 0 if offset is None else offset.ticks(source)
        slide_ticks = slide.ticks(source)
        with blaming(slide.at, source):
            return LandmarkWindow(slide_ticks, offset_ticks)
