"""The plan of one join: where its sides are answered, and how these are folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from windloom.kernels.folds.pairwise import Pairwise
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.optimizer.joins.order import elimination_order
from windloom.optimizer.joins.sizes import side_sizes
from windloom.optimizer.shapes import Types, shape_of
from windloom.plan.choices import Choices
from windloom.plan.identity import SetIdentity
from windloom.plan.links import LinkEstimate
from windloom.plan.physical import PartialSet, PlannedComponent, PlannedJoin, Shape, SidePlace
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
    """`given` replaces the choice of the order; `observed` describes its links. `with_folds` chooses techniques."""
    assert query.join is not None
    places = tuple(_place(side, sets) for side in sides_of(query))
    statistics = [
        next(partial_set.statistics for partial_set in sets if partial_set.number == place.set) for place in places
    ]
    named = None if given is None else given.option("order", query.name, "")
    order = tuple(map(int, named.split())) if named else None
    shape = replace(shape_of(query, types), time=streams[query.streams[0]].window_type)
    return PlannedJoin(
        query,
        shapes.setdefault(shape, len(shapes)),
        places,
        tuple(
            PlannedComponent(component, None if component.argument is None else types[query.key_of(component.argument)])
            for component in query.components
        ),
        Pairwise.name,
        elimination_order(query.join, side_sizes(query.join, statistics, observed)).order if order is None else order,
        tuple(observed),
    )


def _place(side: Query, sets: Sequence[PartialSet]) -> SidePlace:
    identity = SetIdentity.of_query(side)
    partial_set = next(partial_set for partial_set in sets if partial_set.identity == identity)
    tree = next(tree for tree in partial_set.trees if any(planned.name == side.name for planned in tree.queries))
    return SidePlace(partial_set.number, tree.number, side.name)
