"""Snapshots: the state after the last committed round, for questions that are asked while rounds run.

A snapshot has all of one committed round and nothing of a later one. It needs no lock: the state of a round never
changes, and a round replaces what is shown in one instant. So every answer is that of a serial execution, in which the
question comes between two rounds (window-serializable; source E, definition 7.1).

An answer to a question is out of date as soon as another round is committed. Closed windows do not change, except for
late tuples, so the answer can be repaired: later windows are answered and appended. An answer that was repaired until
there was no newer round reflects the newest one (latest-window-serializable; definition 7.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from windloom.answers.answers import Answers
from windloom.answers.blocks import Block
from windloom.answers.rows.row_queries import rows_question, set_since, sets_since
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.tuple_folder import TupleFolder
from windloom.errors import WindloomError
from windloom.model.query import Query
from windloom.plan.plan import PartialSet, Plan, PlannedRelation
from windloom.rounds.questions import ask, relation_cells, united
from windloom.sinks.tables import AnswerTables
from windloom.state.cells import Cells
from windloom.state.history import Past
from windloom.state.state import CellCoverage, State
from windloom.state.tuple_store import ReportedWindows, TupleStores
from windloom.state.windows.registry import life_of


class HistoryJobs(Protocol):
    """The jobs that make cells and rows from kept tuples: by Spark, or in tests by plain Python."""

    def cells(self, plan: Plan, kept: TupleStores, since: Mapping[str, int]) -> dict[int, Cells]: ...

    def blocks(self, plan: Plan, asked: ReportedWindows, kept: TupleStores) -> Iterator[Block]: ...


@dataclass(frozen=True, slots=True)
class TupleHistory:
    """Answers questions that cells cannot answer, from the tuples that a stream keeps."""

    jobs: HistoryJobs
    folder: TupleFolder

    def past(self, plan: Plan, partial_set: PartialSet, state: State) -> tuple[Cells | None, CellCoverage] | None:
        """Return the cells of a set, and the time since which they are complete; None if its tuples are not kept."""
        kept = self.folder.readable(state.kept)
        since = set_since(partial_set, kept)
        if since is None:
            return None
        alone = replace(plan, sets=(replace(partial_set, number=0),))
        with self.folder.naming_damage(kept):
            return self.jobs.cells(alone, kept, {partial_set.stream: since}).get(0), CellCoverage(since)

    def answer(
        self, alone: Plan, state: State, than: int | None = None, versions: Mapping[int, Cells] | None = None
    ) -> tuple[list[Block], int | None] | None:
        """Return the blocks of the only query of a plan, and the start of its first complete window.

        None if tuples that it reads are not kept, or, with `than`, if they do not reach further back than that tick.
        `versions` are the cells of relations. For an enriched stream, the kept tuples are not the joined ones.
        """
        if alone.rows:
            (planned,) = alone.rows
            question = rows_question(planned, state.kept, state.closed_over(planned.query.inputs))
            if question is None:
                return None
            asked, complete_from = question
            with self.folder.naming_damage(state.kept):
                return ([] if asked is None else list(self.jobs.blocks(alone, asked, state.kept))), complete_from
        sets = [partial_set for partial_set in alone.sets if not partial_set.is_relation]
        since = sets_since(sets, state.kept)
        if since is None:
            return None
        bare = replace(state, cells={}, history={})
        empty = replace(alone, sets=(), joins=())
        history = {partial_set.number: CellCoverage(since[partial_set.stream]) for partial_set in sets}

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


def not_kept(name: str) -> WindloomError:
    """Return the error for a question for which neither cells nor tuples are kept."""
    return WindloomError(
        f"query '{name}' cannot be answered from what is kept",
        "it reports rows, and the tuples that it reads are not kept",
        "start the stream with keep_tuples='1 hour', or add it as a query: it answers from the next round on",
    )


@dataclass(frozen=True, slots=True)
class CommittedRound:
    """The plan and state after a round, committed `at` a time of the clock. Before the first round, plan is None."""

    round: int
    plan: Plan | None
    record: PlanRecord | None
    state: State
    at: float


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    """Rows of complete windows, as of a committed round.

    Windows are closed up to `closed`, and exact if they start at `since` or later; None means all. `is_from_tuples`:
    the rows are made from kept tuples, and not from cells.
    """

    rows: pa.Table
    round: int
    closed: int
    since: int | None
    is_from_tuples: bool = False


class RoundSnapshot:
    """`parts` are the state of the committed round with its cells, in the parts it is kept in.

    `past` makes cells from logged tuples, up to that round. `late_from` returns the least tick of tuples of a query's
    streams that came late between two rounds; None if there was none. `history` answers from kept tuples, and
    `current` returns the cells of relations for a plan that no round runs with.
    """

    def __init__(
        self,
        committed: CommittedRound,
        parts: Iterable[State],
        past: Past,
        late_from: Callable[[Query, int, int], int | None],
        tables: AnswerTables,
        history: TupleHistory | None = None,
        current: Callable[[Plan, PlannedRelation], dict[int, Cells]] = lambda plan, planned: {},
    ) -> None:
        self.committed, self._parts, self._past = committed, parts, past
        self._late_from, self._tables, self._history, self._current = late_from, tables, history, current

    def answer(self, query: Query, alone: Plan) -> SnapshotAnswer:
        """Return the answer to a question, from cells or, if these reach further back, tuples; `alone` is its plan."""
        if self.committed.plan is None:
            raise WindloomError("nothing is kept yet", "no round has run", "ask again after the first round")
        if alone.rows:
            answer = self._from_tuples(query, alone)
            if answer is None:
                raise not_kept(query.name)
            return answer
        try:
            answer = self._from_cells(query, alone)
        except WindloomError:
            remade = self._from_tuples(query, alone)
            if remade is None:
                raise
            return remade
        remade = None if answer.since is None else self._from_tuples(query, alone, answer.since)
        return remade or answer

    def _from_tuples(self, query: Query, alone: Plan, than: int | None = None) -> SnapshotAnswer | None:
        """Return the answer from kept tuples; None if they are not kept or, with `than`, do not reach further back."""
        state = self.committed.state
        if self._history is None or (made := self._history.answer(alone, state, than, self._versions(alone))) is None:
            return None
        blocks, since = made
        return self._answer_of(query, alone, blocks, state, since, is_from_tuples=True)

    def _versions(self, alone: Plan) -> dict[int, Cells]:
        """Return the cells of relations that a question reads."""
        plan = self.committed.plan
        assert plan is not None
        return relation_cells(self.committed.state, plan, alone, partial(self._current, alone))

    def _from_cells(self, query: Query, alone: Plan, after: int | None = None) -> SnapshotAnswer:
        """Return the answer from cells; with `after`, only windows that end later."""
        plan = self.committed.plan
        assert plan is not None
        # A side of a join may be divided among parts; other questions are answered part by part.
        asked = [united(self._parts, plan, alone)] if query.join is not None else self._parts
        blocks: list[Block] = []
        since: int | None = None
        state = self.committed.state
        versions = self._versions(alone)
        for state in asked:  # `since` is the same for all of them
            answers, since = ask(state, plan, alone, self._past, versions, after)
            blocks += answers.blocks()
        return self._answer_of(query, alone, blocks, state, since)

    def _answer_of(
        self,
        query: Query,
        alone: Plan,
        blocks: Iterable[Block],
        state: State,
        since: int | None,
        *,
        is_from_tuples: bool = False,
    ) -> SnapshotAnswer:
        pieces = [table for _, table in self._tables.pieces(alone, blocks)]
        rows = pa.concat_tables(pieces) if pieces else self._tables.empty(alone.shapes[0])
        closed = state.closed_over(query.inputs)
        return SnapshotAnswer(rows.drop_columns("query"), self.committed.round, closed, since, is_from_tuples)

    def repair(self, query: Query, alone: Plan, before: SnapshotAnswer) -> SnapshotAnswer:
        """Return what `answer` does, made from the answer as of an earlier round: only what is new is computed."""
        if before.is_from_tuples or alone.relations:  # all windows of an answer see one version
            return self.answer(query, alone)
        late = self._late_from(query, before.round, self.committed.round)
        until = before.closed if late is None else min(before.closed, late)
        later = self._from_cells(query, alone, until)
        since = later.since
        # Whether the earlier answer has every window that is exact now, up to where it was closed.
        covers = before.since is None or (since is not None and since >= before.since)
        if query.window.extent_ticks is None:
            covers = before.since == since  # all windows begin there
        if not covers or (since is not None and self._history is not None):
            return self.answer(query, alone)
        # Rows of the earlier answer that are not computed again, and that are exact now too.
        last = life_of(query.window).interval(until, until)[1]
        wanted = pc.less_equal(before.rows["window_end"].cast(pa.int64()), last)
        if since is not None:
            wanted = pc.and_(wanted, pc.greater_equal(before.rows["window_start"].cast(pa.int64()), since))
        rows = pa.concat_tables([before.rows.filter(wanted), later.rows])
        return SnapshotAnswer(rows, later.round, later.closed, since)
