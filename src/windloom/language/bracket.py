"""The window of a query: `[RANGE 1 hour SLIDE 1 minute OFFSET 5 seconds]`, or the arguments of Spark's window().

Windows of rows, `[ROWS 1000 SLIDE 100]`, are read by `row_bracket`, sessions by `session_bracket`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from windloom.errors import QueryError, WindloomError
from windloom.language.tokens import Source, Span, is_word
from windloom.model import LandmarkWindow, TimeWindow, Window, format_duration, parse_duration

FORMS = (
    "write [RANGE 1 hour SLIDE 1 minute], [TUMBLE 1 hour], [LANDMARK SLIDE 1 hour], [ROWS 1000 SLIDE 100]"
    " or [SESSION GAP 5 minutes]"
)

_PARTS = ("RANGE", "WINDOW", "TUMBLE", "SLIDE", "OFFSET")
_LANDMARK_FORM = "write [LANDMARK SLIDE 1 hour], or [UNTIL NOW SLIDE 1 hour]"

#: Windows that are not supported yet: the word that introduces them, and their name.
_PLANNED = {
    "NOW": "windows of one instant (NOW)",
    "UNBOUNDED": "unbounded windows",
}


@dataclass(frozen=True, slots=True)
class Pace:
    """How often windows end, and where, modulo that time. All sources of one query have the same pace."""

    slide_ticks: int
    end_ticks: int

    def offset(self, range_ticks: int) -> int:
        """The offset with which windows of this range keep the pace."""
        return (self.end_ticks - range_ticks) % self.slide_ticks


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration as written, and its place."""

    text: str
    at: Span

    def ticks(self, source: Source) -> int:
        try:
            return parse_duration(self.text)
        except WindloomError as error:
            raise source.wrap(error, self.at) from None


def make_window(
    source: Source, length: Duration, slide: Duration | None = None, offset: Duration | None = None
) -> Window:
    """A checked window; without a slide it tumbles."""
    length_ticks = length.ticks(source)
    slide_ticks = length_ticks if slide is None else slide.ticks(source)
    offset_ticks = 0 if offset is None else offset.ticks(source)
    try:
        TimeWindow(length_ticks, length_ticks)
    except WindloomError as error:
        raise source.wrap(error, length.at) from None
    try:
        return TimeWindow(length_ticks, slide_ticks, offset_ticks)
    except WindloomError as error:
        raise source.wrap(error, slide.at if slide is not None else length.at) from None


def names_slide(tokens: Sequence[Token]) -> bool:
    """Whether a bracket gives a slide."""
    return any(is_word(token, "SLIDE", "TUMBLE") for token in tokens)


def parse_bracket(tokens: Sequence[Token], whole: Span, source: Source, pace: Pace | None = None) -> Window:
    """The window of time in the tokens between `[` and `]`; without a SLIDE it keeps the pace, if one is given."""
    if tokens and is_word(tokens[0], "LANDMARK", "UNTIL"):
        return _landmark(tokens, whole, source, pace)
    for token in tokens:
        planned = _PLANNED.get(token.text.upper())
        if planned is not None and is_word(token, *_PLANNED):
            raise source.error(f"{planned} are not supported yet", token, FORMS)
    parts = _durations(tokens, whole, source)
    if "TUMBLE" in parts:
        for other in ("RANGE", "SLIDE"):
            if other in parts:
                hint = "write [TUMBLE 1 hour], or [RANGE 1 hour SLIDE 1 minute]"
                raise source.error(f"a tumbling window has no {other}", parts[other].at, hint)
        return make_window(source, parts["TUMBLE"], None, parts.get("OFFSET"))
    if "RANGE" not in parts:
        raise source.error("the window has no RANGE", whole, FORMS)
    if "SLIDE" not in parts:
        if pace is None:
            raise _slide_missing(parts["RANGE"], whole, source)
        return _keeping_pace(source, parts["RANGE"], parts.get("OFFSET"), pace)
    return make_window(source, parts["RANGE"], parts["SLIDE"], parts.get("OFFSET"))


def _keeping_pace(source: Source, length: Duration, offset: Duration | None, pace: Pace) -> Window:
    ticks = length.ticks(source)
    given = pace.offset(ticks) if offset is None else offset.ticks(source)
    try:
        return TimeWindow(ticks, pace.slide_ticks, given)
    except WindloomError as error:
        raise source.wrap(error, length.at) from None


def _landmark(tokens: Sequence[Token], whole: Span, source: Source, pace: Pace | None) -> Window:
    """`LANDMARK SLIDE 1 hour`, `UNTIL NOW SLIDE 1 hour`, perhaps with an OFFSET."""
    first, rest = tokens[0], tokens[1:]
    if is_word(first, "UNTIL"):
        if not rest or not is_word(rest[0], "NOW"):
            raise source.error("NOW is missing after UNTIL", first, _LANDMARK_FORM)
        rest = rest[1:]
    if rest and not is_word(rest[0], *_PARTS):
        raise source.error(
            f"a landmark window begins with the stream, not at '{source.raw(rest[0])}'",
            rest[0],
            f"{_LANDMARK_FORM}; to leave out what came earlier, use WHERE",
        )
    parts = _durations(rest, whole, source) if rest else {}
    for other in ("RANGE", "TUMBLE"):
        if other in parts:
            raise source.error(f"a landmark window has no {other}", parts[other].at, _LANDMARK_FORM)
    offset = parts.get("OFFSET")
    if "SLIDE" not in parts:
        if pace is None:
            raise source.error("the window has no SLIDE", whole, f"say how often it is reported: {_LANDMARK_FORM}")
        return LandmarkWindow(pace.slide_ticks, pace.offset(0) if offset is None else offset.ticks(source))
    slide = parts["SLIDE"]
    offset_ticks = 0 if offset is None else offset.ticks(source)
    slide_ticks = slide.ticks(source)
    try:
        return LandmarkWindow(slide_ticks, offset_ticks)
    except WindloomError as error:
        raise source.wrap(error, slide.at) from None


def _slide_missing(length: Duration, whole: Span, source: Source) -> QueryError:
    shown = format_duration(length.ticks(source))
    return source.error(
        "the window has a RANGE but no SLIDE",
        whole,
        f"say how often it is reported, for example [RANGE {shown} SLIDE 1 minute], or write [TUMBLE {shown}]",
    )


def _durations(tokens: Sequence[Token], whole: Span, source: Source) -> dict[str, Duration]:
    parts = split_parts(tokens, _PARTS, whole, source, "a duration is missing", "for example 10 minutes")
    return {name: read_duration(each, source) for name, each in parts.items()}


def split_parts(
    tokens: Sequence[Token], words: Collection[str], whole: Span, source: Source, missing: str, example: str
) -> dict[str, Sequence[Token]]:
    """The tokens that follow each of the words, by word; `WINDOW` is another word for `RANGE`."""
    if not tokens:
        raise source.error("the window is empty", whole, FORMS)
    if not is_word(tokens[0], *words):
        raise source.error(f"a window cannot begin with '{source.raw(tokens[0])}'", tokens[0], FORMS)
    parts: dict[str, Sequence[Token]] = {}
    start = 0
    while start < len(tokens):
        word = tokens[start]
        name = "RANGE" if is_word(word, "WINDOW") else word.text.upper()
        stop = start + 1
        while stop < len(tokens) and not is_word(tokens[stop], *words):
            stop += 1
        if name in parts:
            raise source.error(f"{name} is given twice", word, FORMS)
        if stop == start + 1:
            raise source.error(f"{missing} after {word.text.upper()}", word, example)
        parts[name] = tokens[start + 1 : stop]
        start = stop
    return parts


def read_duration(tokens: Sequence[Token], source: Source) -> Duration:
    """The duration in these tokens: `1 hour 30 minutes`, `'10 minutes'`, `-5 s`."""
    text = ""
    last_start = -1
    for token in tokens:
        if token.start == last_start:
            continue  # sqlglot reads the s of `10s` as a type suffix: three tokens at one place
        last_start = token.start
        piece = token.text if token.token_type is TokenType.STRING else source.raw(token)
        text += piece if not text or text[-1] in "+-" else f" {piece}"
    return Duration(text, Span.of(tokens))
