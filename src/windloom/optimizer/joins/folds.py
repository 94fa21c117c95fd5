"""How joins are folded: the technique that was asked for, or the one that is predicted to be fastest.

Joins that may share a slice matrix are decided on together: the more of them there are, the more it saves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from windloom.errors import WindloomError
from windloom.kernels.folds.pairwise import Pairwise
from windloom.kernels.folds.registry import FOLDS
from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.model.join import Carried, Corner, JoinKind
from windloom.optimizer.answering import estimate_answering
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.joins.cost import FoldedJoin, matrix_amounts, row_amounts, seconds_of
from windloom.plan.choices import Choices
from windloom.plan.physical import PartialSet, PlannedJoin, SidePlace


def with_folds(
    joins: Sequence[PlannedJoin],
    sets: Sequence[PartialSet],
    asked: str,
    constants: Constants,
    given: Choices | None = None,
) -> tuple[PlannedJoin, ...]:
    """The joins, each with the technique that was recorded, or else asked for, or else is predicted to be fastest."""
    if given is not None:
        return tuple(replace(join, fold=given.option("fold", join.name, Pairwise.name)) for join in joins)
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
    """All techniques that can fold a join."""
    return tuple(name for name in FOLDS if name != SliceMatrix.name or matrix_obstacle(join, sets) is None)


def pairings(joins: Sequence[PlannedJoin]) -> Mapping[object, list[PlannedJoin]]:
    """Joins grouped by whether they may share a matrix: same sets, same keys, same grouping columns."""
    by_pairing: dict[object, list[PlannedJoin]] = {}
    for join in joins:
        by_pairing.setdefault(join.pairing, []).append(join)
    return by_pairing


def matrix_obstacle(join: PlannedJoin, sets: Sequence[PartialSet]) -> str | None:
    """Why a slice matrix cannot fold a join; None if it can."""
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
        if isinstance(folded, Carried):
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
    places = dict.fromkeys(side for join in joins for side in join.sides)
    by_rows += sum(side_seconds(side, sets, constants) for side in places)
    return SliceMatrix.name if seconds_of(constants, amounts) < by_rows else Pairwise.name


def side_seconds(place: SidePlace, sets: Sequence[PartialSet], constants: Constants) -> float:
    """Seconds per second of event time to answer a side at every end."""
    partial_set = sets[place.set]
    tree = partial_set.trees[place.tree]
    member = next(planned for planned in tree.queries if planned.name == place.name)
    return float(estimate_answering(partial_set, [[member.query]], [tree.edges], [tree.techniques], constants).total[0])


def fold_seconds(joins: Sequence[PlannedJoin], sets: Sequence[PartialSet], constants: Constants) -> dict[str, float]:
    """Seconds per second of event time to fold each join, by name; joins that share a matrix have equal parts of it."""
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
