"""The windows of a join: one for each source, all with one slide, so that they end together."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.language.from_sources import FromSource
from windloom.language.tokens import Source
from windloom.language.windows.registry import read_bracket, syntax_of
from windloom.language.windows.syntax import Bracket, Pace
from windloom.language.windows.time import names_slide
from windloom.model import Window, format_duration


def read_windows(sources: Sequence[FromSource], source: Source) -> list[Window]:
    """Return the window of each source. One that gives only a range takes slide and ends from the first that gives
    more.
    """
    for from_source in sources:
        kind = kind_of(from_source, source, "; if another source has a SLIDE, a RANGE is enough")
        if kind.join_obstacle is not None:
            message = f"{kind.plural} cannot be joined: {kind.join_obstacle}"
            hint = "join windows of time, [RANGE 1 hour SLIDE 5 minutes]"
            raise source.error(message, from_source.bracket_span, hint)
    leader = next((source for source in sources if names_slide(source.bracket or ())), sources[0])
    first = read_bracket(Bracket(leader.bracket or (), leader.bracket_span, source))
    pace = Pace(first.slide_ticks, first.end_ticks)
    windows = []
    for from_source in sources:
        window = (
            first
            if from_source is leader
            else read_bracket(Bracket(from_source.bracket or (), from_source.bracket_span, source, pace=pace))
        )
        if window.slide_ticks != pace.slide_ticks:
            raise source.error(
                f"the windows of a query have one slide, and '{from_source.name}' has another than '{leader.name}'",
                from_source.bracket_span,
                f"write SLIDE {format_duration(pace.slide_ticks)}, or the range alone",
            )
        if window.end_ticks != pace.end_ticks:
            mended = (window.offset_ticks + pace.end_ticks - window.end_ticks) % pace.slide_ticks
            raise source.error(
                f"the windows of '{from_source.name}' never end together with those of '{leader.name}'",
                from_source.bracket_span,
                f"write OFFSET {format_duration(mended)}, or the range alone, which then ends with them",
            )
        windows.append(window)
    return windows


def kind_of(from_source: FromSource, source: Source, otherwise: str) -> type[Window]:
    """Return the kind of a source's window; `otherwise` says how else a source without a window can be written."""
    if from_source.bracket is None:
        hint = f"write {from_source.stream.text} [RANGE 1 hour SLIDE 5 minutes]{otherwise}"
        raise source.error(f"'{from_source.name}' has no window", from_source.stream, hint)
    return syntax_of(from_source.bracket).window
