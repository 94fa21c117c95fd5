"""What does not run in the Spark operator yet, and runs in process instead; EXPLAIN and errors say so."""

from __future__ import annotations

from windloom.answers.finish import output_kinds
from windloom.model.clauses import Emits
from windloom.model.windows import SessionWindow
from windloom.plan.plan import Plan
from windloom.plan.sharding import sharding_of


def obstacle(plan: Plan, *, is_stream: bool, all_queries: bool = False) -> tuple[str, str] | None:
    """Return the name of a query that the operator cannot answer, and why; None if it answers all of the plan.

    With `all_queries`, the answers of all queries are wanted in one frame.
    """
    sides = {place.name for join in plan.joins for place in join.sides}
    for rows in plan.rows:
        return rows.name, "its answers are rows of the stream, or are made from kept rows"
    for planned in plan.queries:
        if planned.query.relations:
            return planned.name, "it joins a table"
        if planned.query.emission.kind is not Emits.FINAL:
            return planned.name, f"it has {planned.query.emission}"
        if all_queries and output_kinds(plan.shapes[planned.shape]) is None:
            return planned.name, "it has an expression that only Spark evaluates"
    for partial_set in plan.sets:
        names = [member.name for member in partial_set.queries if member.name not in sides]
        name = names[0] if names else next(join.name for join in plan.joins)
        if partial_set.counted_by is not None:
            return name, "its windows count rows"
        if is_stream and isinstance(partial_set.window, SessionWindow):
            return name, "its windows are sessions of a stream, whose late tuples a task cannot tell"
    divided = sharding_of(plan).divided if is_stream else ()
    for number in divided:
        return plan.joins[number].name, "rows of one of its groups come from several join keys"
    return None
