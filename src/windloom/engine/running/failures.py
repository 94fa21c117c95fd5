"""What a round that has failed leaves out when it runs again: queries that have been changed since it failed."""

from __future__ import annotations

from collections.abc import Callable

from windloom.durable.journal import Journal
from windloom.durable.records import PlanRecord
from windloom.durable.storage import StorageError
from windloom.engine.running.delivery import RoundStoppedError, SinkGivenUpError
from windloom.plan.physical import Plan
from windloom.rounds.carry import is_same

#: Failures for which no query is to blame; some sinks may already have the answers of the round.
BLAMELESS = (RoundStoppedError, SinkGivenUpError, StorageError)


def set_aside(journal: Journal, round: int, plan: Plan, plan_of: Callable[[PlanRecord], Plan]) -> frozenset[str]:
    """The queries that the newest plan lacks, or has others instead of, if the round was logged and has failed.

    A logged round keeps its plan, because a sink may have rows of it. But if one query could not be answered, that
    round would fail for ever: so the change that the failure calls for takes effect in it. All other queries report
    what they would have reported.
    """
    newest = journal.newest_plan() if journal.has_failed(round) else None
    if newest is None:
        return frozenset()
    kept = {planned.name: planned.query for planned in plan_of(newest).queries}
    return frozenset(
        planned.name
        for planned in plan.queries
        if planned.name not in kept or not is_same(kept[planned.name], planned.query)
    )
