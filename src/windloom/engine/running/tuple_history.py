"""Questions and new queries answered from kept tuples, as of one committed round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from windloom.durable.tuples import TupleFolder
from windloom.errors import WindloomError
from windloom.plan.physical import PartialSet, Plan
from windloom.rounds import Block, State
from windloom.rounds.answers import Answers
from windloom.rounds.ask import ask
from windloom.rounds.cells import Cells
from windloom.rounds.rows.kept import Kept, files_of
from windloom.rounds.rows.questions import history_from, rows_question, set_since, sets_since
from windloom.rounds.rows.spans import AskedRows
from windloom.rounds.state import History


class HistoryJobs(Protocol):
    """The jobs that make cells and rows from kept tuples: by Spark, or in tests by plain Python."""

    def cells(self, plan: Plan, kept: Kept, since: Mapping[str, int]) -> dict[int, Cells]: ...

    def blocks(self, plan: Plan, asked: AskedRows, kept: Kept) -> Iterator[Block]: ...


@dataclass(frozen=True, slots=True)
class TupleHistory:
    """Answers questions that cells cannot answer, from the tuples that a stream keeps."""

    jobs: HistoryJobs
    folder: TupleFolder

    def pinned(self, state: State) -> AbstractContextManager[None]:
        """Keeps the files of a state, whatever rounds are committed meanwhile."""
        return self.folder.pinned(files_of(state.kept))

    def past(self, plan: Plan, partial_set: PartialSet, state: State) -> tuple[Cells | None, History] | None:
        """Return the cells of a set, and the time since which they are complete; None if its tuples are not kept."""
        kept = self.folder.readable(state.kept)
        since = set_since(partial_set, kept)
        if since is None:
            return None
        alone = replace(plan, sets=(replace(partial_set, number=0),))
        with self.folder.naming_damage(kept):
            return self.jobs.cells(alone, kept, {partial_set.stream: since}).get(0), history_from(since)

    def answer(
        self, alone: Plan, state: State, than: int | None = None, versions: Mapping[int, Cells] | None = None
    ) -> tuple[list[Block], int | None] | None:
        """The blocks of the only query of a plan, and the start of its first complete window.

        None if tuples that it reads are not kept, or, with `than`, if they do not reach further back than that tick.
        `versions` are the cells of relations. For an enriched stream, the kept tuples are not the joined ones.
        """
        if alone.rows:
            return self._rows(alone, state)
        sets = [partial_set for partial_set in alone.sets if not partial_set.is_relation]
        since = sets_since(sets, state.kept)
        if since is None:
            return None
        bare = replace(state, cells={}, history={})
        empty = replace(alone, sets=(), joins=())
        history = {partial_set.number: history_from(since[partial_set.stream]) for partial_set in sets}

        def asked_of(cells: Mapping[int, Cells]) -> tuple[Answers, int | None]:
            return ask(
                bare,
                empty,
                alone,
                lambda partial_set: (cells.get(partial_set.number), history[partial_set.number]),
                versions,
            )

        try:
            _, reach = asked_of({})
        except WindloomError:  # the kept tuples do not hold a complete window
            return None
        if than is not None and reach is not None and reach >= than:
            return None
        with self.folder.naming_damage(state.kept):
            answers, reach = asked_of(self.jobs.cells(alone, state.kept, since))
        return list(answers.blocks()), reach

    def _rows(self, alone: Plan, state: State) -> tuple[list[Block], int | None] | None:
        (planned,) = alone.rows
        found = rows_question(planned, state.kept, state.closed_over(planned.query.inputs))
        if found is None:
            return None
        asked, since = found
        with self.folder.naming_damage(state.kept):
            return ([] if asked is None else list(self.jobs.blocks(alone, asked, state.kept))), since


def not_kept(name: str) -> WindloomError:
    """The error for a question for which neither cells nor tuples are kept."""
    return WindloomError(
        f"query '{name}' cannot be answered from what is kept",
        "it reports rows, and the tuples that it reads are not kept",
        "start the stream with keep_tuples='1 hour', or add it as a query: it answers from the next round on",
    )
