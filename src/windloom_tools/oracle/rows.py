"""The oracle of row queries: for every end, nested loops over the tuples of every strand's window.

A row that is made of tuples is identified by them: it enters a window if it is in that window and was not in the one
before. All other rows are values, and those that enter or leave are differences of bags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windloom.model.query import Query
from windloom.model.rows import Body, Condition, Reports, RowInput, RowQuery, Selection, SetKind
from windloom.model.stream import JoinKind
from windloom_tools.oracle.answers import Answer, answers_of, group_key, windows_of
from windloom_tools.oracle.joins import Joined
from windloom_tools.oracle.scalar_functions import Row
from windloom_tools.oracle.scalars import scalar

#: The tuples of streams, by name.
Streams = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class StandingRow:
    """A row of one window: the ids of the tuples it is made of, if they identify it, and its values."""

    tuples: tuple[int, ...]
    values: tuple[Any, ...]
    ticks: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that is equal for equal values."""
        return tuple(group_key(value) for value in self.values)


def answer_rows(query: Query, streams: Streams, tick: str = "tick") -> list[Answer]:
    """Every row that a batch run reports; `streams` are all tuples, `tick` their column of event-time ticks."""
    rows = query.rows
    assert rows is not None
    if rows.within:
        return list(within_answers(rows, streams, tick))
    if not rows.columns:
        return answer_aggregated(query, streams, ends_of(rows, streams, tick), tick)
    found: list[Answer] = []
    before: list[StandingRow] = []
    slide, last = rows.window.slide_ticks, None
    for end in ends_of(rows, streams, tick):
        before = before if last == end - slide else []
        now = standing(rows, streams, end, tick)
        found += labelled(rows, changed(rows, now, before), end)
        before, last = now, end
    return found


def ends_of(rows: RowQuery, streams: Streams, tick: str = "tick") -> list[int]:
    """Every end at which there may be a row, or at which one may have left."""
    slide = rows.window.slide_ticks
    found = set()
    for strand in rows.strands:
        for row in streams.get(strand.stream, ()):
            ends = [start + strand.window.range_ticks for start in windows_of(strand.window, row[tick])]
            found.update([*ends, *(end + slide for end in ends)])
    return sorted(found)


def standing(rows: RowQuery, streams: Streams, end: int, tick: str = "tick") -> list[StandingRow]:
    """The rows of the window that ends at a tick."""
    return _body(rows.body, streams, end, tick)


def changed(rows: RowQuery, now: Sequence[StandingRow], before: Sequence[StandingRow]) -> list[StandingRow]:
    """The rows that are reported for a window; `before` are those of the window before it."""
    match rows.reports:
        case Reports.STANDING:
            return list(now)
        case Reports.ENTERING:
            return _more(rows, now, before)
        case Reports.LEAVING:
            return _more(rows, before, now)


def labelled(rows: RowQuery, found: Iterable[StandingRow], end: int) -> list[Answer]:
    """The rows as answers."""
    edges = {"window_start": end - rows.window.range_ticks, "window_end": end}
    names = [column.name for column in rows.columns]
    return [{**edges, **dict(zip(names, standing_row.values, strict=True))} for standing_row in found]


def _more(rows: RowQuery, these: Sequence[StandingRow], those: Sequence[StandingRow]) -> list[StandingRow]:
    if rows.has_lifetimes:
        known = {standing_row.tuples for standing_row in those}
        return [standing_row for standing_row in these if standing_row.tuples not in known]
    left = Counter(standing_row.key for standing_row in those)
    found = []
    for standing_row in these:
        if left[standing_row.key]:
            left[standing_row.key] -= 1
        else:
            found.append(standing_row)
    return found


# ---- rows of one window ---------------------------------------------------------------------------------------------


def _body(body: Body, streams: Streams, end: int, tick: str) -> list[StandingRow]:
    if isinstance(body, Selection):
        return _selection(body, streams, end, tick)
    left, right = _body(body.left, streams, end, tick), _body(body.right, streams, end, tick)
    if body.kind is SetKind.UNION_ALL:
        return [*left, *right]
    if body.kind is SetKind.UNION:
        return _distinct([*left, *right])
    is_all = body.kind in (SetKind.EXCEPT_ALL, SetKind.INTERSECT_ALL)
    keeps_matched = body.kind in (SetKind.INTERSECT, SetKind.INTERSECT_ALL)
    counts = Counter(standing_row.key for standing_row in right)
    found = []
    for standing_row in left if is_all else _distinct(left):
        is_matched = counts[standing_row.key] > 0
        counts[standing_row.key] -= is_matched and is_all
        if is_matched == keeps_matched:
            found.append(standing_row)
    return found


def _distinct(rows: Iterable[StandingRow]) -> list[StandingRow]:
    return list({standing_row.key: standing_row for standing_row in rows}.values())


def _selection(selection: Selection, streams: Streams, end: int, tick: str) -> list[StandingRow]:
    held = [held_tuples(strand, streams, end, tick) for strand in selection.strands]
    found = []
    for parts in joined_tuples(selection, held, tick):
        row = _joined(selection, parts)
        values = tuple(scalar(column.expression.sql)(row) for column in selection.columns)
        known = [part for part in parts if part is not None]
        found.append(StandingRow(tuple(map(id, known)), values, tuple(part[tick] for part in known)))
    return _distinct(found) if selection.is_distinct else found


def held_tuples(strand: RowInput, streams: Streams, end: int, tick: str) -> list[Row]:
    """The tuples of a strand in the window that ends at a tick."""
    begin = end - strand.window.range_ticks
    return [row for row in passing(strand, streams) if begin <= row[tick] < end]


def passing(strand: RowInput, streams: Streams) -> list[Row]:
    """The tuples that satisfy the condition of a strand."""
    rows = streams.get(strand.stream, ())
    if strand.where is None:
        return list(rows)
    condition = scalar(strand.where.sql)
    return [row for row in rows if condition(row) is True]


def joined_tuples(selection: Selection, held: Sequence[Sequence[Row]], tick: str) -> Iterator[tuple[Row | None, ...]]:
    """The tuples of every strand that rows are made of; None if a LEFT join found no match."""
    found: list[tuple[Row | None, ...]] = [(row,) for row in held[0]]
    for place, attached in enumerate(selection.attached, 1):
        longer: list[tuple[Row | None, ...]] = []
        for parts in found:
            near = [row for row in held[place] if _is_near(parts, row, attached.within_ticks, tick)]
            matches = [row for row in near if _holds(selection, attached.on, (*parts, row))]
            absent = [None] if attached.kind is JoinKind.LEFT and not matches else []
            longer += [(*parts, row) for row in [*matches, *absent]]
        found = longer
    for parts in found:
        if _holds(selection, selection.conditions, parts) and _is_looked(selection, held, parts):
            yield parts


def _is_near(parts: Sequence[Row | None], row: Row, within: int | None, tick: str) -> bool:
    return within is None or all(part is None or abs(part[tick] - row[tick]) < within for part in parts)


def _is_looked(selection: Selection, held: Sequence[Sequence[Row]], parts: tuple[Row | None, ...]) -> bool:
    for looked in selection.looked:
        found: list[dict[int, Row | None]] = [dict(enumerate(parts))]
        for place in looked.strands:
            found = [{**combined, place: row} for combined in found for row in held[place]]
        every = range(len(selection.strands))
        is_found = any(_holds(selection, looked.on, tuple(combined.get(i) for i in every)) for combined in found)
        if is_found != (looked.kind is JoinKind.SEMI):
            return False
    return True


def _holds(selection: Selection, conditions: Sequence[Condition], parts: tuple[Row | None, ...]) -> bool:
    row = _joined(selection, parts)
    return all(scalar(condition.expression.sql)(row) is True for condition in conditions)


def _joined(selection: Selection, parts: tuple[Row | None, ...]) -> Row:
    if len(selection.strands) == 1:
        assert parts[0] is not None
        return parts[0]
    every = [*parts, *([None] * (len(selection.strands) - len(parts)))]
    return Joined({strand.alias: part for strand, part in zip(selection.strands, every, strict=True)})


# ---- interval joins, and aggregates ---------------------------------------------------------------------------------


def within_answers(rows: RowQuery, streams: Streams, tick: str = "tick") -> Iterator[Answer]:
    """The pairs of an interval join, without regard to windows."""
    (selection,) = rows.selections
    held = [passing(strand, streams) for strand in selection.strands]
    for parts in joined_tuples(selection, held, tick):
        yield pair_answer(rows, selection, parts, tick)


def pair_answer(rows: RowQuery, selection: Selection, parts: tuple[Row | None, ...], tick: str = "tick") -> Answer:
    row, ticks = _joined(selection, parts), [part[tick] for part in parts if part is not None]
    values = {column.name: scalar(column.expression.sql)(row) for column in rows.columns}
    return {"window_start": min(ticks), "window_end": max(ticks), **values}


def answer_aggregated(query: Query, streams: Streams, ends: Iterable[int], tick: str = "tick") -> list[Answer]:
    """Aggregates over the rows of the windows that end at some ticks."""
    rows = query.rows
    assert rows is not None
    (selection,) = rows.selections
    found: list[Row] = []
    for end in ends:
        held = [held_tuples(strand, streams, end, tick) for strand in selection.strands]
        window = (end - rows.window.range_ticks, end)
        for parts in joined_tuples(selection, held, tick):
            every = [*parts, *([None] * (len(selection.strands) - len(parts)))]
            named = {strand.alias: part for strand, part in zip(selection.strands, every, strict=True)}
            found.append(Joined(named, window))
    return answers_of(query, found, lambda row: [row.window] if isinstance(row, Joined) else [], tick)
