"""Windows of time: `[RANGE 1 hour SLIDE 1 minute OFFSET 5 seconds]`, `[TUMBLE 1 hour]`, or Spark's window()."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from windloom.language.sql.tokens import SourceText, is_word
from windloom.language.windows.syntax import (
    FORMS,
    LENGTHS,
    Arguments,
    Bracket,
    Duration,
    Syntax,
    blaming,
    duration_of,
    read_durations,
)
from windloom.model import TimeWindow, Window, format_duration

if TYPE_CHECKING:
    from windloom.language.sql.statement import Statement

#: Windows that are not supported yet: the word that introduces them, and their name.
_PLANNED = {"NOW": "windows of one instant (NOW)", "UNBOUNDED": "unbounded windows"}


class TimeSyntax(Syntax):
    window = TimeWindow
    words = LENGTHS
    arguments = Arguments(3, "one to three durations", "'1 hour', '10 minutes'")

    def read(self, bracket: Bracket) -> Window:
        """Return the window; without a SLIDE, it keeps the pace of the bracket, if there is one."""
        source = bracket.source
        for token in bracket.tokens:
            planned = _PLANNED.get(token.text.upper())
            if planned is not None and is_word(token, *_PLANNED):
                raise source.error(f"{planned} are not supported yet", token, FORMS)
        lengths = read_durations(bracket.tokens, bracket)
        if "TUMBLE" in lengths:
            for other in ("RANGE", "SLIDE"):
                if other in lengths:
                    hint = "write [TUMBLE 1 hour], or [RANGE 1 hour SLIDE 1 minute]"
                    raise source.error(f"a tumbling window has no {other}", lengths[other].at, hint)
            return _checked(source, lengths["TUMBLE"], None, lengths.get("OFFSET"))
        if "RANGE" not in lengths:
            raise source.error("the window has no RANGE", bracket.at, FORMS)
        if "SLIDE" not in lengths:
            if bracket.pace is None:
                shown = format_duration(lengths["RANGE"].ticks(source))
                hint = f"say how often it is reported, for example [RANGE {shown} SLIDE 1 minute]"
                hint += f", or write [TUMBLE {shown}]"
                raise source.error("the window has a RANGE but no SLIDE", bracket.at, hint)
            length, offset = lengths["RANGE"], lengths.get("OFFSET")
            ticks = length.ticks(source)
            offset_ticks = bracket.pace.offset(ticks) if offset is None else offset.ticks(source)
            with blaming(length.at, source):
                return TimeWindow(ticks, bracket.pace.slide_ticks, offset_ticks)
        return _checked(source, lengths["RANGE"], lengths["SLIDE"], lengths.get("OFFSET"))

    def read_call(self, arguments: Sequence[exp.Expr], statement: Statement) -> Window:
        length, *others = [duration_of(each, statement) for each in arguments]
        window = _checked(statement.source, length, *others)
        # What Spark refuses is refused here too; brackets allow it.
        bracket = f"if it is meant, write it in brackets: FROM {statement.stream.name} "
        if window.slide_ticks > window.range_ticks:
            hint = bracket + f"[RANGE {length.text} SLIDE {others[0].text}]"
            raise statement.source.error("the slide of window() is longer than its range", others[0].at, hint)
        if len(others) == 2 and abs(others[1].ticks(statement.source)) >= window.slide_ticks:
            hint = bracket + f"[RANGE {length.text} SLIDE {others[0].text} OFFSET {others[1].text}]"
            raise statement.source.error("the start of window() is not less than its slide", others[1].at, hint)
        return window


def _checked(
    source: SourceText, length: Duration, slide: Duration | None = None, offset: Duration | None = None
) -> Window:
    """Return a window; without a slide it tumbles."""
    length_ticks = length.ticks(source)
    slide_ticks = length_ticks if slide is None else slide.ticks(source)
    offset_ticks = 0 if offset is None else offset.ticks(source)
    with blaming(length.at, source):
        TimeWindow(length_ticks, length_ticks)
    with blaming(slide.at if slide is not None else length.at, source):
        return TimeWindow(length_ticks, slide_ticks, offset_ticks)
