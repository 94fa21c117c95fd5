"""EMIT EARLY: the queries that report provisional rows of their open windows in a round.

The largest event time of the streams that a query reads passes multiples of its EVERY, counted from the epoch as
windows are. A round in which it passes one, or several, makes one report, as of the last of them, over all tuples that
have come. The first round of a query makes one too. So a report depends only on what came before its round and in it,
and a round that is repeated makes the same report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from windloom.model.emission import Emits
from windloom.model.query import Query
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.plan.physical import Plan, Planned
from windloom.rounds.state import State


@dataclass(frozen=True, slots=True)
class EarlyTurn:
    """A query in a round: windows that end by `closed` are final; if it `is_due`, others are reported as of `as_of`."""

    closed: int
    is_due: bool
    as_of: int


def early_queries(plan: Plan) -> Iterator[Planned]:
    """Return the queries that report provisional rows; without such shapes, no query is looked at."""
    numbers = {number for number, shape in enumerate(plan.shapes) if shape.emits is Emits.EARLY}
    return (planned for planned in plan.queries if planned.shape in numbers) if numbers else iter(())


def early_turns(plan: Plan, before: State, after: State) -> dict[str, EarlyTurn]:
    """Return what a round means for each query that reports early, by name, given the states before and after it."""
    turns = {}
    for planned in early_queries(plan):
        query = planned.query
        closed, passed = after.closed_over(query.inputs), _passed(query, after.seen)
        earlier = TICK_MIN if planned.name in before.fresh else _passed(query, before.seen)
        turns[planned.name] = EarlyTurn(closed, earlier < passed and closed < TICK_MAX, passed)
    return turns


def _passed(query: Query, seen: Mapping[str, int]) -> int:
    """Return the last multiple of EVERY that the largest event time of all inputs has reached."""
    latest = max((seen[stream] for stream in query.inputs if stream in seen), default=TICK_MIN)
    return latest if latest == TICK_MIN else latest - latest % query.emission.every_ticks
