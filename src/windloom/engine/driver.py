"""The step on the driver: the input of a round comes to the driver as Arrow and is its log; the state is in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Protocol

from windloom.answers.blocks import Block, Stopwatch, Timer
from windloom.checkpoint.journal import Journal
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.tuple_files import LostTuplesError
from windloom.engine.relation_versions import Relations
from windloom.engine.round import Round, RoundTuples
from windloom.engine.row_queries import RowQueries, TupleKeeping, lost_files
from windloom.kernels.compiling import keep_freed_memory
from windloom.model.stream import Version
from windloom.plan.plan import Plan
from windloom.rounds.lateness import late_from
from windloom.rounds.observe import observe
from windloom.rounds.step import step
from windloom.sinks.round_rows import Outcome
from windloom.spark.api import DataFrame
from windloom.spark.count_windows import TakenRows
from windloom.spark.kept_tuples import TupleKeeper
from windloom.spark.scan import RoundScans
from windloom.state.positions import counted_scans
from windloom.state.state import State
from windloom.weave.round_input import RoundInput, Watermarks


class DriverJobs(Protocol):
    """The jobs that make cells from the tuples of a round: by Spark, or in tests by plain Python."""

    def take_in(
        self,
        plan: Plan,
        frames: Mapping[str, DataFrame],
        batch: DataFrame | None,
        state: State,
        keeper: TupleKeeper | None = None,
    ) -> RoundScans: ...

    def take_rows(
        self, plan: Plan, frames: Mapping[str, DataFrame], state: State, frontiers: Mapping[str, int]
    ) -> TakenRows: ...


class DriverPlacement:
    description = "driver"

    def __init__(
        self,
        jobs: DriverJobs,
        journal: Journal,
        watermarks: Watermarks,
        rows: RowQueries,
        relations: Relations | None = None,
    ) -> None:
        keep_freed_memory()
        self._jobs, self._journal, self._watermarks, self._rows = jobs, journal, watermarks, rows
        self.relations = relations or Relations({})

    def logged(self, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundLog | None:
        return self._rows.read_log(self._journal, round, intake, watch)

    def read(self, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundLog:
        given, found = RoundInput(round=round.number), RoundScans()
        if not intake.only_answers:
            versions, keeping = dict[str, Version](), TupleKeeping()
            if intake.brings_tuples:
                with watch("partials"):
                    frames, versions = self.relations.enriched(round, intake.frames)
                    try:
                        with self._rows.keeping(round) as keeping:
                            tuples = (round.plan, frames, intake.batch, round.state, keeping.keeper)
                            found = self._jobs.take_in(*tuples)
                    finally:
                        self.relations.release()
            decide = self._watermarks.ended if intake.ends else self._watermarks.after
            given = decide(round.state, found.largest_ticks, found.smallest_ticks).taking(found.taken, found.events)
            given = replace(given, round=round.number, kept=keeping.brought)
            given = self.relations.with_versions(round, given, watch, versions)
            given = self._rows.with_summaries(given, round, intake, watch)
            if any(counted_scans(round.plan)):
                with watch("rows"):  # windows of rows count the tuples that the frontiers have passed
                    rows = self._jobs.take_rows(round.plan, intake.frames, round.state, given.frontiers)
                    cells = {**given.taken.cells, **rows.taken.cells}
                    given = replace(given, taken=replace(given.taken, cells=cells), rows=rows.positions)
        return RoundLog(
            round.number,
            round.record.version,
            replace(given, postponed=round.decide(given)),
            dict(found.untimed),
            tuples=found.tuples,
            only_answers=intake.only_answers,
        )

    def step(self, round: Round, log: RoundLog, intake: RoundTuples, watch: Stopwatch) -> Outcome:
        with watch("step"):
            history_ticks = round.record.history_ticks
            given = log.complete(round.plan, round.state)
            state, made, counts = step(round.state, given, round.plan, history_ticks=history_ticks)
            answers = made.without(round.set_aside)
        with watch("observe"):
            observed = observe(round.plan, round.state, given, counts)
        timer = Timer(round.give_way)

        def blocks() -> Iterable[Block]:
            made = answers.blocks(threads=os.cpu_count() or 1, timed=timer)
            return chain(made, self._rows.blocks(round, given, answers, intake, timer))

        lost, late = lost_files(given), late_from(round.plan, given)
        return Outcome(
            state, state.nbytes, counts, observed, log.untimed, blocks, lost=lost, took=timer.seconds, late_from=late
        )

    def lose(self, error: LostTuplesError) -> bool:
        return self._rows.lose(error)

    def committed(self, round: int, state: State) -> None:
        """Forget tuples of no further use. Cells need no file of their own: snapshot and log restore them."""
        self._rows.committed(state)

    @contextmanager
    def kept(self, state: State, plan: Plan) -> Iterator[Iterable[State]]:
        with self._rows.pinned(state):
            yield [state]  # no round changes it
