"""Relations in rounds: which version a round reads, and the cells of that version.

A retroactive relation is looked at in rounds that close a window of a query that reads it. If it has changed, the cells
of its new version are part of the round's input, and so of its log: a repeated round has the version that it had
before. A relation that has not changed costs a look at its plan and files, and no job.

With a non-retroactive relation, the tuples of a round are joined as they come in. The log holds the joined tuples, or
their cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from windloom.answers.blocks import Stopwatch
from windloom.checkpoint.frames import write_cells
from windloom.engine.round import Round
from windloom.model.stream import Version
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.plan.plan import Plan, PlannedRelation
from windloom.rounds.step import moved
from windloom.spark.relations import TakenVersion
from windloom.state.cells import Cells
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

#: The frames of a round, by stream: Spark's frames, or in tests rows.
Frames = Mapping[str, Any]


class SeenVersion(Protocol):
    """A frame from which a version was read."""

    def is_same(self, frame: Any, /) -> bool:
        """Return whether another frame certainly gives the same rows."""
        ...


class RelationJobs(Protocol):
    """The jobs over the rows of relations: by Spark, or in tests by plain Python."""

    def seen(self, frame: Any) -> SeenVersion: ...

    def size(self, frame: Any, seen: Any) -> tuple[int | None, int | None]:
        """Return the rows of a version, if it is worth counting them, and about how many bytes they take, if known."""
        ...

    def take(self, plan: Plan, planned: PlannedRelation, frame: Any) -> TakenVersion: ...

    def enriched(self, plan: Plan, frames: Frames, versions: Mapping[str, Any]) -> Frames:
        """Return the frames, and the frames of streams that are enriched with these versions."""
        ...

    def release(self) -> None:
        """Free enriched frames, which are no longer needed."""
        ...


class Relations:
    """`sources` return the current frame of each relation, by name. There is one object per run."""

    def __init__(self, sources: Mapping[str, Callable[[], Any]], jobs: RelationJobs | None = None) -> None:
        self._sources, self._jobs = sources, jobs
        self._seen: dict[str, tuple[int, SeenVersion]] = {}  # the number of the version, and its frame
        self.read: dict[str, Any] = {}  # the frames of the versions that the last round had, by relation

    def enriched(self, round: Round, frames: Frames) -> tuple[Frames, dict[str, Version]]:
        """Return the frames of a round, with those of enriched streams, and the versions that are new."""
        planned = [each for each in round.plan.relations if not each.relation.is_retroactive]
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
                self._seen[planned_relation.name] = version.number, seen
        return self._jobs.enriched(round.plan, frames, current), new

    def release(self) -> None:
        """Free what was held for reading the round's tuples."""
        if self._jobs is not None:
            self._jobs.release()

    def with_versions(
        self, round: Round, given: RoundInput, watch: Stopwatch, new: Mapping[str, Version] | None = None
    ) -> RoundInput:
        """Return the input of a round, with its versions that differ from those of the state."""
        versions = dict(new or {})
        cells: dict[int, Cells] = {}
        for planned_relation in round.plan.relations:
            if planned_relation.sets and _is_read(round.plan, planned_relation, round.state, given):
                with watch("relations"):
                    new_version = self._taken(round, planned_relation)
                if new_version is not None:
                    versions[planned_relation.name], taken = new_version
                    cells |= taken.cells
        if not versions:
            return given
        return replace(given, taken=replace(given.taken, cells={**given.taken.cells, **cells}), versions=versions)

    def taken_now(self, plan: Plan, planned: PlannedRelation) -> dict[int, Cells]:
        """Return the cells of a version for a plan that no round runs with: the plan of a question.

        It is the version that the last round has seen, or else the current one.
        """
        assert self._jobs is not None
        name = planned.name
        frame = self.read[name] if name in self.read else self._sources[name]()
        return self._jobs.take(plan, planned, frame).cells

    def _taken(self, round: Round, planned: PlannedRelation) -> tuple[Version, TakenVersion] | None:
        """Return a version and its cells, for all sets of the relation; None if the state has them already."""
        assert self._jobs is not None
        name, held = planned.name, round.state.cells
        frame = self._current(name)
        before, version = self._known(name, round.state), round.state.versions.get(name)
        is_held = version is not None and all(number in held for number in planned.sets)
        is_same = before is not None and before.is_same(frame)
        if is_held and is_same:
            return None
        taken = self._jobs.take(round.plan, planned, frame)
        if is_held and not is_same:
            (about, blob), (held_about, held_blob) = (
                write_cells({number: cells[number] for number in planned.sets}) for cells in (taken.cells, held)
            )
            is_same = about == held_about and bool(blob.equals(held_blob))
        if version is None or not is_same:
            version = self._next(name, round)
        self._seen[name] = version.number, self._jobs.seen(frame)
        is_new = not is_held or not is_same
        return (replace(version, rows=taken.rows, nbytes=taken.nbytes), taken) if is_new else None

    def _current(self, name: str) -> Any:
        self.read[name] = self._sources[name]()
        return self.read[name]

    def _known(self, name: str, state: State) -> SeenVersion | None:
        """Return the frame that the version of a state was read from; None if it is not known in this process."""
        version, (number, seen) = state.versions.get(name), self._seen.get(name, (0, None))
        return seen if version is not None and number == version.number else None

    def _next(self, name: str, round: Round) -> Version:
        before = round.state.versions.get(name)
        return Version(1 if before is None else before.number + 1, round.number)


def _is_read(plan: Plan, planned: PlannedRelation, state: State, given: RoundInput) -> bool:
    """Return whether a round reports windows of queries that read the relation."""
    state_after = moved(state, given, plan)
    for join in plan.joins:
        if all(place.set not in planned.sets for place in join.sides):
            continue
        after, until = state.closed_over(join.query.inputs), state_after.closed_over(join.query.inputs)
        window = join.join.sides[0].window
        if join.name in state.fresh or (after < until and (after <= TICK_MIN or until >= TICK_MAX)):
            return True
        if (until - window.end_ticks) // window.slide_ticks > (after - window.end_ticks) // window.slide_ticks:
            return True
    return False
