"""The trees of a running loom: new queries are woven in, removed ones taken out (source A, section 5.2).

When the trees of a set cost too much more than a full plan is expected to cost, a full plan is made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.optimizer.auto import choose_trees
from windloom.optimizer.known import Known, set_statistics
from windloom.optimizer.relations import source_of
from windloom.optimizer.sharing.incremental import DEFAULT_TOLERANCE
from windloom.optimizer.sharing.incremental_plan import IncrementalPlan
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import find_strategy
from windloom.optimizer.stages import PlanOptions, Types, by_partial_set, sharing_problem
from windloom.plan.identity import SetIdentity
from windloom.plan.sides import with_sides
from windloom.plan.statistics import Statistics, differ


@dataclass(frozen=True, slots=True)
class _Followed:
    """The plan of a set, its queries by their numbers in it, and the statistics that its costs are predicted with."""

    plan: IncrementalPlan
    names: dict[int, str]
    statistics: Statistics

    @property
    def trees(self) -> list[list[str]]:
        return [[self.names[number] for number in tree] for tree in self.plan.trees.values()]


class LiveTrees:
    """Plans that follow queries as they come and go, by set; after a restart they start from the recorded trees."""

    def __init__(self, streams: Mapping[str, Stream], options: PlanOptions, epsilon: float = DEFAULT_TOLERANCE) -> None:
        self._streams, self.options, self._epsilon = streams, options, epsilon
        self._followed: dict[SetIdentity, _Followed] = {}

    def follow(
        self, before: Sequence[Collection[str]], queries: Iterable[Query], types: Types, known: Known
    ) -> list[list[str]]:
        """The trees of `queries`; `before` are the trees so far, some of whose queries may be gone."""
        trees: list[list[str]] = []
        followed: dict[SetIdentity, _Followed] = {}
        for members in by_partial_set(with_sides(queries)):
            identity = SetIdentity.of_query(members[0])
            followed[identity] = self._follow_set(identity, before, members, types, known)
            trees += followed[identity].trees
        self._followed = followed
        return trees

    def _follow_set(
        self,
        identity: SetIdentity,
        before: Sequence[Collection[str]],
        members: Sequence[Query],
        types: Types,
        known: Known,
    ) -> _Followed:
        stream = source_of(members[0], self._streams)
        problem = sharing_problem(stream, members, types, self.options, known)
        statistics = set_statistics(stream, members, known)
        wanted = {query.name: query for query in members}
        remaining = [[name for name in tree if name in wanted] for tree in before]
        remaining = [tree for tree in remaining if tree]
        if not remaining:
            plan = IncrementalPlan.of(problem, self._choose(problem), self._epsilon, self._choose)
            return _Followed(plan, {number: query.name for number, query in enumerate(members)}, statistics)
        followed = self._followed.get(identity)
        if followed is None or not _holds(followed, before, wanted) or differ(followed.statistics, statistics):
            followed = self._taken_up(problem, remaining, wanted, statistics)
        for number in [number for number, name in followed.names.items() if name not in wanted]:
            followed.plan.remove(number)
            del followed.names[number]
        known_names = set(followed.names.values())
        for query in members:
            if query.name not in known_names:
                followed.names[followed.plan.next_query] = query.name
                followed.plan.add(query.window)
        return followed

    def _taken_up(
        self,
        problem: SharingProblem,
        recorded_trees: list[list[str]],
        wanted: Mapping[str, Query],
        statistics: Statistics,
    ) -> _Followed:
        """A plan that continues from trees made elsewhere: before a restart, with other options or statistics."""
        names = [name for tree in recorded_trees for name in tree]
        position_of = {name: i for i, name in enumerate(names)}
        shared_problem = SharingProblem(tuple(wanted[name].window for name in names), problem.slicing, problem.model)
        trees: Trees = tuple(tuple(position_of[name] for name in tree) for tree in recorded_trees)
        plan = IncrementalPlan.of(shared_problem, trees, self._epsilon, self._choose)
        return _Followed(plan, dict(enumerate(names)), statistics)

    def _choose(self, problem: SharingProblem) -> Trees:
        if self.options.strategy == "auto":
            return choose_trees(problem)[1]
        return find_strategy(self.options.strategy).choose(problem)


def _holds(followed: _Followed, before: Sequence[Collection[str]], wanted: Mapping[str, Query]) -> bool:
    """Whether this is the plan whose trees were recorded, with the windows that the queries still have."""
    recorded = {frozenset(tree) for tree in before}
    windows = followed.plan.windows
    same = all(wanted[name].window == windows[number] for number, name in followed.names.items() if name in wanted)
    return same and all(frozenset(tree) in recorded for tree in followed.trees)
