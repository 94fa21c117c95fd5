"""The plan of one join: where its sides are answered, and how these are folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from windloom.errors import WindloomError
from windloom.kernels.folds.pairwise import Pairwise
from windloom.kernels.folds.registry import FOLDS
from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.model.join import Corner, SideComponent
from windloom.model.query import Query
from windloom.model.stream import JoinKind, Stream
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.seconds import estimate_answering
from windloom.optimizer.joins.cost import FoldedJoin, matrix_amounts, row_amounts, seconds_of, side_sizes
from windloom.optimizer.joins.order import elimination_order
from windloom.plan.costs import Choices
from windloom.plan.joins import sides_of
from windloom.plan.plan import PartialSet, PlannedJoin, Shape, SidePlace, Types, planned_components, shape_of
from windloom.statistics.observations import LinkEstimate
from windloom.statistics.set_statistics import SetIdentity


def plan_join(
    query: Query,
    sets: Sequence[PartialSet],
    streams: Mapping[str, Stream],
    types: Types,
    shapes: dict[Shape, int],
    given: Choices | None = None,
    observed: Sequence[LinkEstimate] = (),
) -> PlannedJoin:
    """Return the plan of a join, still to be given a technique by `with_folds`.

    `given` replaces the choice of the order; `observed` describes the links of the join.
    """
    assert query.join is not None
    places, statistics = [], []
    for side in sides_of(query):
        identity = SetIdentity.of_query(side)
        partial_set = next(partial_set for partial_set in sets if partial_set.identity == identity)
        tree = next(tree for tree in partial_set.trees if any(planned.name == side.name for planned in tree.queries))
        places.append(SidePlace(partial_set.number, tree.number, side.name))
        statistics.append(partial_set.statistics)
    named = None if given is None else given.options_of("order").get(query.name)
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


# Early or late: which sides of joins Spark aggregates before anything leaves it, a bit for each side (source D, §5).
#
# A side is *early* if Spark groups its tuples by slice, join keys and grouping columns, so that partials leave it. It
# is *late* if its tuples leave Spark as they are, and kernels aggregate them where the step runs. Both give the same
# cells.

#: The values that `joins` may have; bits follow EAP, one for each side in the order of FROM.
JOIN_PLANS = ("auto", "LAP", "EAP", "EAP10", "EAP01", "EAP11")
_BITS = re.compile(r"EAP([01]+)")


def check_join_plan(name: str) -> None:
    if name not in JOIN_PLANS and _BITS.fullmatch(name) is None:
        raise WindloomError(
            f"unknown plan of joins '{name}'",
            "it says which sides are aggregated early: LAP is none, EAP all, EAP10 the first of two",
            "use auto, LAP, EAP, or EAP and a bit for each side",
        )


def forced_sets(name: str, joins: Iterable[PlannedJoin]) -> Mapping[int, bool]:
    """Return which sets are early and which late, by number; empty if nothing is forced.

    A set is read once, so it is early if any of the sides that it answers is.
    """
    if name == "auto":
        return {}
    early: dict[int, bool] = {}
    for join in joins:
        sides, match = len(join.sides), _BITS.fullmatch(name)
        assert match is not None or name in ("LAP", "EAP"), "names are checked when options are made"
        bits = match[1] if match is not None else ("1" if name == "EAP" else "0") * sides
        if len(bits) != sides:
            raise WindloomError(
                f"query '{join.name}' cannot be planned as {name}",
                f"it joins {sides} sources, and the plan has {len(bits)} bits",
                "give a bit for each source, or use LAP or EAP, which fit any number of them",
            )
        for side, bit in zip(join.sides, bits, strict=True):
            early[side.set] = early.get(side.set, False) or bit == "1"
    return early


# How joins are folded: the technique that was asked for, or the one that is predicted to be fastest.
#
# Joins that may share a slice matrix are decided on together: the more of them there are, the more it saves.


def with_folds(
    joins: Sequence[PlannedJoin],
    sets: Sequence[PartialSet],
    asked: str,
    constants: Constants,
    given: Choices | None = None,
) -> tuple[PlannedJoin, ...]:
    """Return the joins, each with the technique that was recorded, asked for, or is predicted to be fastest."""
    if given is not None:
        folds = given.options_of("fold")
        return tuple(replace(join, fold=folds.get(join.name, Pairwise.name)) for join in joins)
    if asked == SliceMatrix.name:
        for join in joins:
            if (obstacle := matrix_obstacle(join, sets)) is not None:
                raise WindloomError(
                    f"query '{join.name}' cannot be folded by {asked}",
                    obstacle,
                    "leave fold out, or use fold='pairwise'",
                )
    if asked != "auto":
        return tuple(replace(join, fold=asked) for join in joins)
    chosen: dict[str, str] = {}
    for together in pairings(joins).values():
        possible = [join for join in together if matrix_obstacle(join, sets) is None]
        name = _fastest(possible, sets, constants) if possible else Pairwise.name
        chosen |= {join.name: name if join in possible else Pairwise.name for join in together}
    return tuple(replace(join, fold=chosen[join.name]) for join in joins)


def possible_folds(join: PlannedJoin, sets: Sequence[PartialSet]) -> tuple[str, ...]:
    """Return all techniques that can fold a join."""
    return tuple(name for name in FOLDS if name != SliceMatrix.name or matrix_obstacle(join, sets) is None)


def pairings(joins: Sequence[PlannedJoin]) -> Mapping[object, list[PlannedJoin]]:
    """Return joins grouped by whether they may share a matrix: same sets, same keys, same grouping columns."""
    by_pairing: dict[object, list[PlannedJoin]] = {}
    for join in joins:
        by_pairing.setdefault(join.pairing, []).append(join)
    return by_pairing


def matrix_obstacle(join: PlannedJoin, sets: Sequence[PartialSet]) -> str | None:
    """Return why a slice matrix cannot fold a join; None if it can."""
    if len(join.sides) != 2:
        return f"it joins {len(join.sides)} sources"
    (link,) = join.join.links
    if link.kind is not JoinKind.INNER:
        return f"its join is {link.kind.upper()}, not INNER"
    for side in join.join.sides:
        if side.is_relation:
            return f"'{side.alias}' is a relation"
        if side.window.extent_ticks is None:
            return f"the windows of '{side.alias}' grow from a landmark"
    for folded in join.join.folded:
        if isinstance(folded, Corner):
            return "it asks for extrema of values that both sides make"
        if isinstance(folded, SideComponent):
            component = join.join.sides[folded.side].components[folded.component]
            planned = sets[join.sides[folded.side].set].components
            if any(each.component == component and each.family.is_list for each in planned):
                return f"'{component}' keeps lists"
    return None


def _fastest(joins: Sequence[PlannedJoin], sets: Sequence[PartialSet], constants: Constants) -> str:
    amounts = matrix_amounts([FoldedJoin.of(join, sets) for join in joins])
    if amounts is None:
        return Pairwise.name
    by_rows = sum(seconds_of(constants, row_amounts(FoldedJoin.of(join, sets))) for join in joins)
    for place in dict.fromkeys(side for join in joins for side in join.sides):  # answered at every end
        partial_set, tree = sets[place.set], sets[place.set].trees[place.tree]
        query = next(planned.query for planned in tree.queries if planned.name == place.name)
        answering = estimate_answering(partial_set, [[query]], [tree.edges], [tree.techniques], constants)
        by_rows += float(answering.total[0])
    return SliceMatrix.name if seconds_of(constants, amounts) < by_rows else Pairwise.name


def fold_seconds(joins: Sequence[PlannedJoin], sets: Sequence[PartialSet], constants: Constants) -> dict[str, float]:
    """Return seconds per second of event time to fold each join, by name; a matrix is divided among its joins."""
    seconds: dict[str, float] = {}
    for together in pairings(joins).values():
        sharing = [join for join in together if join.fold == SliceMatrix.name]
        amounts = matrix_amounts([FoldedJoin.of(join, sets) for join in sharing]) if sharing else None
        for join in together:
            if join in sharing and amounts is not None:
                seconds[join.name] = seconds_of(constants, amounts) / len(sharing)
            else:
                seconds[join.name] = seconds_of(constants, row_amounts(FoldedJoin.of(join, sets)))
    return seconds
