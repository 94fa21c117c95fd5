"""Snapshots: the state after the last committed round, for questions that are asked while rounds run.

A snapshot has all of one committed round and nothing of a later one, however many shards there are. It needs no lock:
the state of a round never changes, files of shards are kept as long as a snapshot reads them, and a round replaces what
is shown in one instant. So every answer is that of a serial execution, in which the question comes between two rounds
(window-serializable; source E, definition 7.1).

An answer to a question is out of date as soon as another round is committed. Closed windows do not change, except for
late tuples, so the answer can be repaired: later windows are answered and appended. An answer that was repaired until
there was no newer round reflects the newest one (latest-window-serializable; definition 7.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from windloom.durable import PlanRecord
from windloom.engine.running.tuple_history import TupleHistory, not_kept
from windloom.engine.sinks.tables import AnswerTables
from windloom.errors import WindloomError
from windloom.model.query import Query
from windloom.plan.physical import Plan
from windloom.plan.relations import PlannedRelation
from windloom.rounds import Block, State, ask
from windloom.rounds.ask import relation_cells, united
from windloom.rounds.backfill import Past
from windloom.rounds.cells import Cells
from windloom.rounds.windows.registry import life_of


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


def no_relations(plan: Plan, planned: PlannedRelation) -> dict[int, Cells]:
    return {}


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
        current: Callable[[Plan, PlannedRelation], dict[int, Cells]] = no_relations,
    ) -> None:
        self.committed, self._parts, self._past = committed, parts, past
        self._late_from, self._tables, self._history, self._current = late_from, tables, history, current

    def answer(self, query: Query, alone: Plan) -> SnapshotAnswer:
        """The answer to a question, from cells, or from tuples if these reach further back; `alone` is its plan."""
        if self.committed.plan is None:
            raise WindloomError("nothing is kept yet", "no round has run", "ask again after the first round")
        if alone.rows:
            found = self._from_tuples(query, alone)
            if found is None:
                raise not_kept(query.name)
            return found
        try:
            found = self._from_cells(query, alone)
        except WindloomError:
            remade = self._from_tuples(query, alone)
            if remade is None:
                raise
            return remade
        remade = None if found.since is None else self._from_tuples(query, alone, found.since)
        return remade or found

    def _from_tuples(self, query: Query, alone: Plan, than: int | None = None) -> SnapshotAnswer | None:
        """The answer from kept tuples; None if they are not kept or, with `than`, do not reach further back."""
        state = self.committed.state
        made = None
        if self._history is not None:
            made = self._history.answer(alone, state, than, self._versions(alone))
        if made is None:
            return None
        blocks, since = made
        return self._found(query, alone, blocks, state, since, is_from_tuples=True)

    def _versions(self, alone: Plan) -> dict[int, Cells]:
        """The cells of relations that a question reads."""
        plan = self.committed.plan
        assert plan is not None
        return relation_cells(self.committed.state, plan, alone, partial(self._current, alone))

    def _from_cells(self, query: Query, alone: Plan, after: int | None = None) -> SnapshotAnswer:
        """The answer from cells; with `after`, only windows that end later."""
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
        return self._found(query, alone, blocks, state, since)

    def _found(
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
        found = self._from_cells(query, alone, until)
        if not _covers(query, before, found) or (found.since is not None and self._history is not None):
            return self.answer(query, alone)
        return SnapshotAnswer(
            pa.concat_tables([_kept(query, before, found, until), found.rows]), found.round, found.closed, found.since
        )


def _covers(query: Query, before: SnapshotAnswer, found: SnapshotAnswer) -> bool:
    """Whether the earlier answer has every window that is exact now, up to where it was closed."""
    if query.window.extent_ticks is None:
        return before.since == found.since  # all windows begin there
    return before.since is None or (found.since is not None and found.since >= before.since)


def _kept(query: Query, before: SnapshotAnswer, found: SnapshotAnswer, until: int) -> pa.Table:
    """The rows of the earlier answer that are not computed again, and that are exact now too."""
    last = life_of(query.window).interval(until, until)[1]
    wanted = pc.less_equal(before.rows["window_end"].cast(pa.int64()), last)
    if found.since is not None:
        wanted = pc.and_(wanted, pc.greater_equal(before.rows["window_start"].cast(pa.int64()), found.since))
    return before.rows.filter(wanted)
