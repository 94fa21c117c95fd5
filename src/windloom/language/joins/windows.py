"""The windows of a join: one for each source, all with one slide, so that they end together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windloom.errors import QueryError
from windloom.language.bracket import Pace, names_slide, parse_bracket
from windloom.language.from_sources import FromSource
from windloom.language.row_bracket import is_row_bracket
from windloom.language.session_bracket import is_session_bracket
from windloom.language.tokens import Source
from windloom.model import Window, format_duration


def read_windows(sources: Sequence[FromSource], source: Source) -> list[Window]:
    """The window of each source. One that gives only a range takes slide and ends from the first that gives more."""
    for from_source in sources:
        _JOINED.check(from_source, source)
    leader = next((source for source in sources if names_slide(source.bracket or ())), sources[0])
    first = parse_bracket(leader.bracket or (), leader.bracket_span, source)
    pace = Pace(first.slide_ticks, first.end_ticks)
    found = []
    for from_source in sources:
        window = (
            first
            if from_source is leader
            else parse_bracket(from_source.bracket or (), from_source.bracket_span, source, pace)
        )
        _check_pace(from_source, window, leader, pace, source)
        found.append(window)
    return found


@dataclass(frozen=True, slots=True)
class TimeOnly:
    """The errors for a source that has no window, or a window that is not of time."""

    missing: str  # how else it can be written
    of_rows: str
    of_sessions: str
    hint: str

    def check(self, from_source: FromSource, source: Source) -> None:
        if from_source.bracket is None:
            hint = f"write {from_source.stream.text} [RANGE 1 hour SLIDE 5 minutes]{self.missing}"
            raise source.error(f"'{from_source.name}' has no window", from_source.stream, hint)
        if is_row_bracket(from_source.bracket):
            raise source.error(self.of_rows, from_source.bracket_span, self.hint)
        if is_session_bracket(from_source.bracket):
            raise source.error(self.of_sessions, from_source.bracket_span, self.hint)


_JOINED = TimeOnly(
    "; if another source has a SLIDE, a RANGE is enough",
    "windows of rows cannot be joined: positions of two streams have no instant in common",
    "session windows cannot be joined: those of two streams do not end together",
    "join windows of time, [RANGE 1 hour SLIDE 5 minutes]",
)


def _check_pace(from_source: FromSource, window: Window, leader: FromSource, pace: Pace, source: Source) -> None:
    if window.slide_ticks != pace.slide_ticks:
        raise source.error(
            f"the windows of a join have one slide, and '{from_source.name}' has another than '{leader.name}'",
            from_source.bracket_span,
            f"write SLIDE {format_duration(pace.slide_ticks)}, or the range alone",
        )
    if window.end_ticks != pace.end_ticks:
        raise _never_together(from_source, window, leader, pace, source)


def _never_together(
    from_source: FromSource, window: Window, leader: FromSource, pace: Pace, source: Source
) -> QueryError:
    mended = (window.offset_ticks + pace.end_ticks - window.end_ticks) % pace.slide_ticks
    return source.error(
        f"the windows of '{from_source.name}' never end together with those of '{leader.name}'",
        from_source.bracket_span,
        f"write OFFSET {format_duration(mended)}, or the range alone, which then ends with them",
    )
