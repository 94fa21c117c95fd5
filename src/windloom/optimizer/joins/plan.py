"""The plan of one join: where its sides are answered, and how these are folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from windloom.kernels.folds.pairwise import Pairwise
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.optimizer.joins.order import elimination_order
from windloom.optimizer.joins.sizes import side_sizes
from windloom.optimizer.shapes import Types, planned_components, shape_of
from windloom.plan.choices import Choices
from windloom.plan.identity import SetIdentity
from windloom.plan.links import LinkEstimate
from windloom.plan.physical import PartialSet, PlannedJoin, Shape, SidePlace
from windloom.plan.sides import sides_of


def plan_join(
    query: Query,
    sets: Sequence[PartialSet],
    streams: Mapping[str, Stream],
    types: Types,
    shapes: dict[Shape, int],
    given: Choices | None = None,
    observed: Sequence[LinkEstimate] = (),
) -> PlannedJoin:
    """The plan of a join, still to be given a technique by `with_folds`.

    `given` replaces the choice of the order; `observed` describes the links of the join.
    """
    assert query.join is not None
    places = []
    for side in sides_of(query):
        identity = SetIdentity.of_query(side)
        partial_set = next(partial_set for partial_set in sets if partial_set.identity == identity)
        tree = next(tree for tree in partial_set.trees if any(planned.name == side.name for planned in tree.queries))
        places.append(SidePlace(partial_set.number, tree.number, side.name))
    statistics = [
        next(partial_set.statistics for partial_set in sets if partial_set.number == planned_side.set)
        for planned_side in places
    ]
    named = None if given is None else given.option("order", query.name, "")
    order = tuple(map(int, named.split())) if named else None
    shape = replace(shape_of(query, types), time=streams[query.streams[0]].window_type)
    return PlannedJoin(
        query,
        shapes.setdefault(shape, len(shapes)),
        tuple(places),
        planned_components(query.components, query, types),
        Pairwise.name,
        elimination_order(query.join, side_sizes(query.join, statistics, observed)).order if order is None else order,
        tuple(observed),
    )
