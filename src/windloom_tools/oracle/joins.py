"""The oracle of joins: for every end, nested loops over the tuples of every side's window, pair by pair.

It reads only the sides, links and grouping expressions of a join, and nothing of how a fold answers it (`folded`,
components).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from windloom.model.join import Join, KeyPair, Link, Side
from windloom.model.query import Query
from windloom.model.stream import JoinKind
from windloom.model.windows import LandmarkWindow
from windloom_tools.oracle.answers import Answer, answers_of, windows_of
from windloom_tools.oracle.scalar_functions import Row, is_equal
from windloom_tools.oracle.scalars import scalar


@dataclass(frozen=True)
class Landmarks:
    """Where landmark windows begin, by stream, and the last end that is reported.

    The defaults are those of a batch run: a landmark is the last edge at or before the first tuple of its stream, and
    the last end is the first one after the last tuple of all streams of the join.
    """

    starts: Mapping[str, int] = field(default_factory=dict)
    last_end: int | None = None


@dataclass(frozen=True)
class Tuple:
    """A tuple of one side, with the values that the side is grouped by."""

    row: Row
    tick: int
    group: tuple[Any, ...]


class Joined(Mapping[str, Any]):
    """A row of a join: a tuple of each side by alias, or None if a left join found no match.

    Its columns are read by their qualified names; those of an absent tuple are NULL.
    """

    def __init__(self, parts: Mapping[str, Row | None], window: tuple[int, int] = (0, 0)) -> None:
        self.parts = parts
        self.window = window

    def __getitem__(self, name: str) -> Any:
        alias, _, column = name.partition(".")
        part = self.parts[alias]
        return None if part is None else part[column]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and "." in name and name.partition(".")[0] in self.parts

    def __iter__(self) -> Iterator[str]:
        return (f"{alias}.{column}" for alias, part in self.parts.items() for column in part or ())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def answer_join(
    query: Query, streams: Mapping[str, Sequence[Row]], tick: str = "tick", landmarks: Landmarks | None = None
) -> list[Answer]:
    """Every row of the answer; `streams` are all tuples of each stream, `tick` their column of event-time ticks.

    Relations are given by name among the streams: all rows of the version that the windows see. Non-retroactive ones
    are given with each tuple, under `ARRIVED`: all rows of the version that it was joined with.
    """
    assert query.join is not None
    rows = joined_rows(query.join, streams, tick, landmarks)
    return answers_of(query, rows, lambda row: [row.window] if isinstance(row, Joined) else [], tick)


def joined_rows(
    join: Join, streams: Mapping[str, Sequence[Row]], tick: str = "tick", landmarks: Landmarks | None = None
) -> Iterator[Joined]:
    """The rows of the join at every end."""
    ticks = {name: [row[tick] for row in streams.get(name, ())] for name in join.streams}
    given = landmarks or Landmarks()
    tuples = [_tuples(side, streams.get(side.source.stream, ()), tick) for side in join.sides]
    for end in _ends(join, tuples, ticks, given):
        starts = [None if side.is_relation else _start(side, end, ticks, given) for side in join.sides]
        held = [
            own if side.is_relation else [tuple_ for tuple_ in own if start is not None and start <= tuple_.tick < end]
            for side, own, start in zip(join.sides, tuples, starts, strict=True)
        ]
        window = (min(start for start in starts if start is not None), end)
        for parts, _ in _rows_of(join, held, 0):
            yield Joined(parts, window)


def _tuples(side: Side, rows: Sequence[Row], tick: str) -> list[Tuple]:
    """The tuples that pass the conditions on the side alone."""
    where = None if side.where is None else scalar(side.where.sql)
    passing = [row for row in rows if where is None or where(row) is True]
    return [
        # The rows of a relation have no time.
        Tuple(
            row,
            0 if side.is_relation else row[tick],
            tuple(scalar(expression.sql)(row) for expression in side.group_by),
        )
        for row in passing
    ]


def _ends(
    join: Join, tuples: Sequence[Sequence[Tuple]], ticks: Mapping[str, Sequence[int]], given: Landmarks
) -> list[int]:
    """Every end at which there may be a row; without a tuple of the first side, there is none."""
    window = join.sides[0].window
    found = {end for own in tuples[:1] for each in own for end in _ends_holding(window, each.tick)}
    if not isinstance(join.window, LandmarkWindow):
        return sorted(found)
    last_tick = max((tick for own in ticks.values() for tick in own), default=None)
    if last_tick is None or not tuples[0]:
        return []
    slide = join.window.slide_ticks
    last_end = join.window.last_start(last_tick) + slide if given.last_end is None else given.last_end
    if isinstance(window, LandmarkWindow):
        found = set(range(min(window.last_start(tuple_.tick) for tuple_ in tuples[0]) + slide, last_end + 1, slide))
    return sorted(end for end in found if end <= last_end)


def _ends_holding(window: Any, tick: int) -> list[int]:
    """The ends of the windows of time that hold a tick."""
    if isinstance(window, LandmarkWindow):
        return []
    return [start + window.range_ticks for start in windows_of(window, tick)]


def _start(side: Side, end: int, ticks: Mapping[str, Sequence[int]], given: Landmarks) -> int | None:
    """Where the window of a side that ends at a tick begins; None if its stream has no landmark yet."""
    window, (stream,) = side.window, side.source.streams
    if not isinstance(window, LandmarkWindow):
        return end - window.range_ticks
    if stream in given.starts:
        return given.starts[stream]
    return window.last_start(min(ticks[stream])) if ticks[stream] else None


#: A row of a side and the sides below it, by alias, and the values that the side is grouped by.
_Row = tuple[dict[str, Row | None], tuple[Any, ...]]

#: The rows that a tuple was joined with when it came in, by relation, for non-retroactive relations.
ARRIVED = "__arrived__"


def _rows_of(join: Join, held: Sequence[Sequence[Tuple]], side: int) -> list[_Row]:
    """The tuples of a side, each joined with the rows of the sides below it.

    An inner link gives a row for every match. A left link also does, and gives one row with NULLs if there is no match.
    A semi link gives the row itself, once, if there is a match; an anti link does so if there is none.
    """
    return [row for tuple_ in held[side] for row in _rows_with(join, _as_it_came(join, held, tuple_), side, tuple_)]


def _rows_with(join: Join, held: Sequence[Sequence[Tuple]], side: int, tuple_: Tuple) -> list[_Row]:
    """The rows of one tuple."""
    rows: list[_Row] = [({join.sides[side].alias: tuple_.row}, tuple_.group)]
    for link in join.links:
        if link.parent == side:
            others = _rows_of(join, held, link.child)
            absent = dict.fromkeys(_aliases_below(join, link.child))
            rows = [found for row in rows for found in _matched(link, row, others, absent)]
    return rows


def _as_it_came(join: Join, held: Sequence[Sequence[Tuple]], tuple_: Tuple) -> Sequence[Sequence[Tuple]]:
    """The rows that a tuple is joined with: those in the window, but for non-retroactive relations those on arrival."""
    arrived = tuple_.row.get(ARRIVED, {})
    return [
        _tuples(side, arrived[side.source.stream], "") if side.is_relation and side.source.stream in arrived else own
        for side, own in zip(join.sides, held, strict=True)
    ]


def _matched(link: Link, row: _Row, others: Sequence[_Row], absent: Mapping[str, None]) -> list[_Row]:
    parts, group = row
    matches = [other for other, values in others if _is_match(link, group, values)]
    match link.kind:
        case JoinKind.SEMI:
            return [row] if matches else []
        case JoinKind.ANTI:
            return [] if matches else [row]
        case JoinKind.LEFT if not matches:
            return [({**parts, **absent}, group)]
    return [({**parts, **other}, group) for other in matches]


def _aliases_below(join: Join, side: int) -> list[str]:
    """The aliases in rows of a side: its own, and those of the sides below it that are joined by INNER or LEFT."""
    found = [join.sides[side].alias]
    for link in join.links:
        if link.parent == side and link.kind in (JoinKind.INNER, JoinKind.LEFT):
            found += _aliases_below(join, link.child)
    return found


def _is_match(link: Link, parent: tuple[Any, ...], child: tuple[Any, ...]) -> bool:
    if not all(_is_same(pair, parent[pair.parent], child[pair.child]) for pair in link.keys):
        return False
    if link.residual is None:
        return True
    values = {f"__p{i}": value for i, value in enumerate(parent)}
    values |= {f"__c{i}": value for i, value in enumerate(child)}
    return scalar(link.residual.sql)(values) is True


def _is_same(pair: KeyPair, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return pair.null_safe and left is right
    return is_equal(left, right)
