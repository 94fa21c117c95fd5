"""The questions that stored tuples can answer: since which tick they hold all that a set, or a row query, reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from windloom.model.time import TICK_MIN
from windloom.plan.physical import PartialSet
from windloom.plan.rows import PlannedRows
from windloom.rounds.rows.kept import Kept
from windloom.rounds.rows.spans import NO_ROUND, AskedRows, row_span
from windloom.rounds.state import History
from windloom.rounds.windows.registry import life_of


def columns_of(partial_set: PartialSet) -> tuple[str, ...]:
    """Return the columns of its stream that a set is made from."""
    read = [
        *partial_set.group_by,
        *(expression for planned in partial_set.components for expression in planned.component.expressions),
    ]
    read += [] if partial_set.predicate is None else [partial_set.predicate.expression]
    return tuple(sorted({column for expression in read for column in expression.columns}))


def set_since(partial_set: PartialSet, kept: Kept) -> int | None:
    """Return the tick from which kept tuples hold all that a set needs; None if they do not hold it."""
    if partial_set.stream not in kept or partial_set.counted_by is not None:
        return None
    return kept[partial_set.stream].since(
        columns_of(partial_set), None if partial_set.predicate is None else partial_set.predicate.sql
    )


def history_from(since: int) -> History:
    return History() if since == TICK_MIN else History(since)


def sets_since(sets: Iterable[PartialSet], kept: Kept) -> Mapping[str, int] | None:
    """Return the tick, by stream, from which kept tuples hold all that the sets need; None if one lacks something."""
    ticks_by_stream: dict[str, int] = {}
    for partial_set in sets:
        since = set_since(partial_set, kept)
        if since is None or not life_of(partial_set.window).weaves_again:
            return None
        ticks_by_stream[partial_set.stream] = max(since, ticks_by_stream.get(partial_set.stream, since))
    return ticks_by_stream


def rows_question(planned: PlannedRows, kept: Kept, closed: int) -> tuple[AskedRows | None, int | None] | None:
    """Return every complete window of a row query that kept tuples cover, and the start of the first of them.

    Returns None if tuples that it reads are not kept, and no windows to ask for if none is complete.
    """
    after = TICK_MIN
    for strand in planned.rows.strands:
        tuples, condition = kept.get(strand.stream), strand.condition
        since = None if tuples is None else tuples.since(strand.columns, None if condition is None else condition.sql)
        if since is None:
            return None
        if since != TICK_MIN:
            after = max(after, life_of(strand.window).after_since(strand.window, since))
    span = row_span(planned.query.window, after, closed, NO_ROUND)
    first = None if after == TICK_MIN else after - planned.query.window.range_ticks + 1
    return (None if span is None else AskedRows(planned, span)), first
