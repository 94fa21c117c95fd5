"""Join texts as a loom registers and plans them, without a session: types come from our own rules alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

from support.compare import rows_of
from support.join_catalogs import ATTACHED, RELATIONS, STREAMS
from support.native import taken_of_plan
from support.relations import RowVersions
from windloom.engine.registry import Registry
from windloom.errors import WindloomError
from windloom.model import Join, Query, Relation, Stream
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.joins.plan import matrix_obstacle
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.rounds.step import step
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

Row = dict[str, Any]
Rows = Mapping[str, list[Row]]


def registered(
    texts: Mapping[str, str],
    streams: Mapping[str, Stream] = STREAMS,
    relations: Mapping[str, Relation] | None = None,
) -> Registry:
    """A registry of these queries over declared streams and relations, which must never ask for a session."""

    def no_session() -> Any:
        raise AssertionError("a session was asked for")

    registry = Registry(no_session)
    registry.streams.update(streams)
    registry.relations.update({**RELATIONS, **ATTACHED} if relations is None else relations)
    for name, text in texts.items():
        registry.add_query(name, text)
    return registry


def planned(registry: Registry, options: PlanOptions | None = None) -> Plan:
    return make_plan(
        registry.sources, registry.queries.values(), registry.types(), options or PlanOptions(), PlanningFacts()
    )


def possible(intake: str, registry: Registry) -> str:
    """The intake, or the woven one where a side keeps lists, which Spark cannot aggregate."""
    return intake if _can(registry, PlanOptions(intake=intake)) else "woven"


def join_plan(bits: int, registry: Registry) -> str:
    """A plan of joins by its bits: of as many sides as all joins have, or else of all sides alike."""
    sides = {len(query.join.sides) for query in registry.queries.values() if query.join is not None}
    name = "EAP" if bits % 2 else "LAP"
    if len(sides) == 1:
        (count,) = sides
        name = "EAP" + "".join(str(bits >> side & 1) for side in range(count))
    return name if _can(registry, PlanOptions(joins=name)) else "auto"


def _can(registry: Registry, options: PlanOptions) -> bool:
    try:
        planned(registry, options)
    except WindloomError as error:
        if "has no partials that Spark can aggregate" not in str(error):
            raise
        return False
    return True


def eliminations(join: Join) -> Iterator[tuple[int, ...]]:
    """Every order of links in which what hangs on a child comes before the child."""
    for order in permutations(range(len(join.links))):
        places = {join.links[number].child: place for place, number in enumerate(order)}
        if all(places[link.child] < places.get(link.parent, len(order)) for link in join.links):
            yield order


def with_folds(plan: Plan, fold: str, order: int) -> Plan:
    """The plan with another fold, where that is possible, and the given one of all orders of eliminations."""
    joins = []
    for join in plan.joins:
        orders = list(eliminations(join.join))
        own = "pairwise" if fold == "slice_matrix" and matrix_obstacle(join, plan.sets) else fold
        joins.append(replace(join, fold=own, order=orders[order % len(orders)]))
    return replace(plan, joins=tuple(joins))


def answered(plan: Plan, rows: Rows, queries: Mapping[str, Query]) -> dict[str, list[Row]]:
    """The answers of one round with everything, as the step writes them: without HAVING. Relations are among rows."""
    ticks = {name: [row["tick"] for row in own] for name, own in rows.items() if own and name in STREAMS}
    taken = taken_of_plan(plan, RowVersions().enriched(plan, rows, rows))
    for relation in plan.relations:
        if relation.sets:
            taken = replace(
                taken, cells={**taken.cells, **RowVersions().take(plan, relation, rows[relation.name]).cells}
            )
    brought = RoundInput(
        taken,
        dict.fromkeys(STREAMS, TICK_MAX),
        seen={name: max(own) for name, own in ticks.items()},
        first={name: min(own) for name, own in ticks.items()},
    )
    _, answers, _ = step(State(), brought, plan)
    blocks = list(answers.blocks())
    return {name: rows_of(blocks, query) for name, query in queries.items()}
