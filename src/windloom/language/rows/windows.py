"""The windows of row queries: those in brackets, which end together, or those that WITHIN stands for."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token

from windloom.errors import WindloomError
from windloom.language.from_sources import FromSource, Joined
from windloom.language.joins.windows import kind_of, read_windows
from windloom.language.statement import Statement
from windloom.language.tokens import Source, Span
from windloom.language.windows.durations import Duration
from windloom.model import TimeWindow, Window

_BOUND = "say how far apart the tuples of a pair may lie: JOIN clicks c WITHIN 30 minutes ON …"


def row_windows(sources: Sequence[FromSource], source: Source) -> list[Window]:
    """Return the window of every source of a query; without brackets, windows of the distances that WITHIN names."""
    if is_interval_join(sources):
        return _intervals(sources, source)
    for from_source in sources:
        kind = kind_of(from_source, source, ", or join it WITHIN a duration")
        if not kind.reports_rows:
            hint = "use windows of time, [RANGE 1 hour SLIDE 5 minutes]"
            raise source.error(f"rows are not reported for {kind.plural}", from_source.bracket_span, hint)
    windows = read_windows(sources, source)
    for from_source, window in zip(sources, windows, strict=True):
        if window.extent_ticks is None:
            hint = "rows are kept as long as a window needs them; give it a range, [RANGE 1 hour SLIDE 5 minutes]"
            raise source.error("rows of a landmark window are never dropped", from_source.bracket_span, hint)
    return windows


def is_interval_join(sources: Sequence[FromSource]) -> bool:
    """Return whether pairs are found by WITHIN alone, without windows."""
    return all(source.bracket is None for source in sources) and any(distance(source) for source in sources)


def distance(source: FromSource) -> tuple[Token, ...]:
    """Return the tokens of a source's WITHIN; none if it has no WITHIN."""
    return () if source.joined is None else source.joined.within


def distance_ticks(joined: Joined | None, source: Source) -> int | None:
    """Return how far apart the tuples of a pair may lie; None if there is no WITHIN."""
    tokens = () if joined is None else joined.within
    if not tokens:
        return None
    written = Duration(source.text[tokens[0].start : tokens[-1].end + 1].strip("'\""), Span.of(tokens))
    ticks = written.ticks(source)
    try:
        TimeWindow(ticks, 1)
    except WindloomError:
        hint = "for example WITHIN 30 minutes"
        raise source.error(f"WITHIN needs a positive duration, not {written.text}", written.at, hint) from None
    return ticks


def _intervals(sources: Sequence[FromSource], source: Source) -> list[Window]:
    """Return windows that end at every tick; each is as long as the largest distance that concerns its stream."""
    reach = [0] * len(sources)
    for index, from_source in enumerate(sources[1:], 1):
        ticks = distance_ticks(from_source.joined, source)
        if ticks is None:
            message = f"'{from_source.name}' is joined without a bound: its tuples would have to be kept for ever"
            raise source.error(message, from_source.stream, _BOUND)
        for other in range(index + 1):
            reach[other] = max(reach[other], ticks)
    return [TimeWindow(ticks, 1) for ticks in reach]


def has_distances(statement: Statement) -> bool:
    """Return whether any source has a WITHIN."""
    return any(distance(source) for source in statement.clause.sources)
