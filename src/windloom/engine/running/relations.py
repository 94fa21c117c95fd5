"""Relations in rounds: which version a round has, and what it takes of it.

A retroactive relation is looked at in rounds that close a window of a query which reads it. Where it has changed, the
cells of its new version are part of what the round takes in, and so of its log: a round that is repeated has the
version that it had. A relation that has not changed costs a look at its plan and files, and no job.

With a relation that is not retroactive, the tuples of a round are joined as they come in. What is logged are tuples,
or cells, that have been joined already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from windloom.durable.cells import write_cells
from windloom.engine.running.placement import Round, Stopwatch
from windloom.model.relation import Version
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import Window
from windloom.plan.physical import Plan, PlannedJoin
from windloom.plan.relations import PlannedRelation
from windloom.rounds.cells import Cells
from windloom.rounds.round_input import RoundInput
from windloom.rounds.state import State
from windloom.rounds.step import moved
from windloom.spark.relations.take import TakenVersion

#: The frames of a round by stream: Spark's, or in tests rows.
Frames = Mapping[str, Any]


class SeenVersion(Protocol):
    """A frame that gave a version."""

    def is_same(self, frame: Any, /) -> bool:
        """Whether another frame certainly gives the same rows."""
        ...


class RelationJobs(Protocol):
    """What is done with the rows of relations: by Spark, or in tests by plain Python."""

    def seen(self, frame: Any) -> SeenVersion: ...

    def size(self, frame: Any, seen: Any) -> tuple[int | None, int | None]:
        """Rows of a version, if counting them is worth it, and about how many bytes they take, if that is known."""
        ...

    def take(self, plan: Plan, planned: PlannedRelation, frame: Any) -> TakenVersion: ...

    def enriched(self, plan: Plan, frames: Frames, versions: Mapping[str, Any]) -> Frames:
        """The frames, and those of streams that are enriched with these versions."""
        ...

    def release(self) -> None:
        """Enriched frames are no longer needed."""
        ...


@dataclass(frozen=True, slots=True)
class _Seen:
    number: int
    seen: SeenVersion


class Relations:
    """`sources` give the current frame of each relation, by name. One object goes with one run."""

    def __init__(self, sources: Mapping[str, Callable[[], Any]], jobs: RelationJobs | None = None) -> None:
        self._sources, self._jobs = sources, jobs
        self._seen: dict[str, _Seen] = {}
        self.read: dict[str, Any] = {}  # the frames that gave the versions of the last round, by relation

    def enriched(self, round: Round, frames: Frames) -> tuple[Frames, dict[str, Version]]:
        """The frames of a round, with those of enriched streams, and the versions that are new."""
        planned = [
            planned_relation
            for planned_relation in round.plan.relations
            if not planned_relation.relation.is_retroactive
        ]
        if not planned or not frames:
            return frames, {}
        assert self._jobs is not None
        current, new = {}, {}
        for planned_relation in planned:
            frame = current[planned_relation.name] = self._current(planned_relation.name)
            before = self._known(planned_relation.name, round.state)
            if before is None or not before.is_same(frame):
                seen, version = self._jobs.seen(frame), self._next(planned_relation.name, round)
                rows, nbytes = self._jobs.size(frame, seen)
                new[planned_relation.name] = replace(version, rows=rows, nbytes=nbytes)
                self._seen[planned_relation.name] = _Seen(version.number, seen)
        return self._jobs.enriched(round.plan, frames, current), new

    def release(self) -> None:
        """What the round has taken in has been read."""
        if self._jobs is not None:
            self._jobs.release()

    def with_versions(
        self, round: Round, given: RoundInput, watch: Stopwatch, new: Mapping[str, Version] | None = None
    ) -> RoundInput:
        """The input of a round with the versions that it has, where they differ from those of the state."""
        versions = dict(new or {})
        cells: dict[int, Cells] = {}
        for planned_relation in round.plan.relations:
            if planned_relation.sets and _is_asked(round.plan, planned_relation, round.state, given):
                with watch("relations"):
                    found = self._taken(round, planned_relation)
                if found is not None:
                    versions[planned_relation.name], taken = found
                    cells |= taken.cells
        if not versions:
            return given
        return replace(given, taken=replace(given.taken, cells={**given.taken.cells, **cells}), versions=versions)

    def taken_now(self, plan: Plan, planned: PlannedRelation) -> dict[int, Cells]:
        """The cells of a version for a plan that no round runs with: that of a question, which is asked once.

        It is the version that the last round has seen, if any round has.
        """
        assert self._jobs is not None
        name = planned.name
        frame = self.read[name] if name in self.read else self._sources[name]()
        return self._jobs.take(plan, planned, frame).cells

    def _taken(self, round: Round, planned: PlannedRelation) -> tuple[Version, TakenVersion] | None:
        """What a round takes of a relation, all of its sets at once; None if the state has it already."""
        assert self._jobs is not None
        name, held = planned.name, round.state.cells
        frame = self._current(name)
        before, version = self._known(name, round.state), round.state.versions.get(name)
        is_held = version is not None and all(number in held for number in planned.sets)
        is_same = before is not None and before.is_same(frame)
        if is_held and is_same:
            return None
        found = self._jobs.take(round.plan, planned, frame)
        is_same = is_same or (
            is_held and all(_equal(found.cells[partial_set], held[partial_set]) for partial_set in planned.sets)
        )
        if version is None or not is_same:
            version = self._next(name, round)
        self._seen[name] = _Seen(version.number, self._jobs.seen(frame))
        is_new = not is_held or not is_same
        return (replace(version, rows=found.rows, nbytes=found.nbytes), found) if is_new else None

    def _current(self, name: str) -> Any:
        self.read[name] = self._sources[name]()
        return self.read[name]

    def _known(self, name: str, state: State) -> SeenVersion | None:
        """What gave the version that a state has; None if that was another process, or another version."""
        version, seen = state.versions.get(name), self._seen.get(name)
        return None if seen is None or version is None or seen.number != version.number else seen.seen

    def _next(self, name: str, round: Round) -> Version:
        before = round.state.versions.get(name)
        return Version(1 if before is None else before.number + 1, round.number)


def _is_asked(plan: Plan, planned: PlannedRelation, state: State, given: RoundInput) -> bool:
    """Does a round report windows of queries that read the relation?"""
    after = moved(state, given, plan)
    for join in plan.joins:
        if any(place.set in planned.sets for place in join.sides):
            closed = state.closed_over(join.query.inputs), after.closed_over(join.query.inputs)
            if join.name in state.fresh or _ends_within(_first_window(join), *closed):
                return True
    return False


def _first_window(join: PlannedJoin) -> Window:
    return join.join.sides[0].window


def _ends_within(window: Window, after: int, until: int) -> bool:
    """Does a window end in `(after, until]`?"""
    if after >= until:
        return False
    if after <= TICK_MIN or until >= TICK_MAX:
        return True
    return (until - window.end_ticks) // window.slide_ticks > (after - window.end_ticks) // window.slide_ticks


def _equal(held: Cells, other: Cells) -> bool:
    told, blob = write_cells({0: held})
    other_told, other_blob = write_cells({0: other})
    return told == other_told and bool(blob.equals(other_blob))
