"""What the Spark operator does not answer yet, so that it runs in process; EXPLAIN and errors say so."""

from __future__ import annotations

from windloom.model.clauses import Emits
from windloom.model.windows import SessionWindow
from windloom.plan.division import division_of
from windloom.plan.outputs import why_spark
from windloom.plan.plan import Plan, Planned, PlannedJoin
from windloom.plan.rows import PlannedRows


def run_obstacle(planned: Planned) -> str | None:
    """Return why the operator cannot answer a query of a batch run, which it hands to the driver; None if it can."""
    if isinstance(planned, PlannedRows):
        return "its answers are rows of the stream, or are made from kept rows"
    return None


def obstacle(plan: Plan, planned: Planned, *, is_stream: bool) -> str | None:
    """Return why a frame of answers cannot have those of a query, streaming or not; None if it can."""
    query, window = planned.query, planned.query.window
    why = run_obstacle(planned)
    if why is not None:
        return why
    if query.relations:
        return "it joins a table"
    if query.emission.kind is not Emits.FINAL:
        return f"it has {query.emission}"
    if is_stream and window.counted_by is not None:
        return "its windows count rows"
    if is_stream and isinstance(window, SessionWindow):
        return "its windows are sessions of a stream, whose late tuples a task cannot tell"
    if is_stream and isinstance(planned, PlannedJoin) and plan.joins.index(planned) in division_of(plan).divided:
        return "rows of one of its groups come from several join keys"
    return None


def obstacle_beside_others(plan: Plan, planned: Planned) -> str | None:
    """Return why the answers of a query cannot be in one frame with those of other queries; None if they can."""
    why = why_spark(plan.shapes[planned.shape])
    return None if why is None else f"only Spark evaluates {why}"
