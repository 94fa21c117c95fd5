"""A batch run by the Spark operator: tasks weave and step, and the driver takes blocks of answers.

Row queries are answered beside it, as on the driver: Spark's own joins make their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain

from windloom.answers.blocks import Block, Stopwatch, Timer
from windloom.answers.joins.key_counts import with_relations
from windloom.answers.joins.lowering import blocks_of
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.tuple_files import LostTuplesError
from windloom.engine.relation_versions import Relations
from windloom.engine.round import Round, RoundTuples
from windloom.engine.row_queries import RowQueries
from windloom.operator.whole import Beside, span_of
from windloom.optimizer.intake.woven import whole_scans
from windloom.plan.plan import Plan
from windloom.rounds.observe import observe
from windloom.rounds.step import step
from windloom.sinks.round_rows import Outcome
from windloom.spark.operator.run import OperatorAnswers, answer_all, unseen_ticks
from windloom.spark.scan import counted_events
from windloom.spark.untimed import Untimed, without_time
from windloom.state.state import State
from windloom.weave.round_input import ScanResult, Watermarks
from windloom.weave.weave import Ticks


@dataclass(slots=True)
class OperatorPlacement:
    """With a `scope`, Spark holds the answers until its end; without, they are in the memory of the driver."""

    buckets: int
    watermarks: Watermarks
    rows: RowQueries
    relations: Relations
    untimed: Untimed
    scope: ExitStack | None
    description: str = "executors"
    _answers: OperatorAnswers = field(default_factory=OperatorAnswers)

    def logged(self, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundLog | None:
        return None

    def read(self, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundLog:
        plan, decide = whole_scans(round.plan), self.watermarks.ended
        with watch("partials"):
            frames, versions = self.relations.enriched(round, intake.frames)
        try:
            # All windows close, whatever the ticks of the tuples are.
            read = self.relations.with_versions(round, decide(round.state, {}, {}), watch, versions)
            with watch("operator"):
                ticks = unseen_ticks(plan, frames)
                beside = Beside(read.taken.cells, ticks)
                self._answers = (
                    answer_all(plan, frames, self.buckets, beside, self.scope) if plan.scans else OperatorAnswers()
                )
        finally:
            self.relations.release()
        facts = self._answers.facts
        seen = {**facts.ticks, **ticks}
        untimed = self._untimed(plan, seen)
        events = counted_events(plan, facts.scanned, {name: of for name, of in ticks.items() if of.tuples is not None})
        given = decide(round.state, *span_of(plan, seen))
        given = given.taking(ScanResult(read.taken.cells, scanned=facts.scanned), events)
        given = replace(given, round=round.number, versions=read.versions)
        given = self.rows.with_summaries(given, round, intake, watch)
        return RoundLog(round.number, round.record.version, given, untimed)

    def step(self, round: Round, log: RoundLog, intake: RoundTuples, watch: Stopwatch) -> Outcome:
        plan, given, found = whole_scans(round.plan), log.input, self._answers
        with watch("step"):  # of what the driver has: relations and rows
            _, facts, counted = step(round.state, given, plan)
        counts = found.facts.counts
        counts = replace(counts, links=with_relations(plan, counts.links, counted.links))
        with watch("observe"):
            observed = observe(plan, round.state, given, counts)
        timer = Timer(round.give_way)
        timer.seconds |= found.facts.took

        def blocks() -> Iterable[Block]:
            of_tasks = chain(found.blocks(), blocks_of(plan, found.folds, facts.landmarks))
            return chain(of_tasks, facts.of_summaries(timer), self.rows.blocks(round, given, facts, intake, timer))

        left = State(frontiers=given.frontiers, seen=given.seen, versions=given.versions)
        return Outcome(left, 0, counts, observed, log.untimed, blocks, took=timer.seconds)

    def lose(self, error: LostTuplesError) -> bool:
        return False  # a batch run keeps no tuples

    def committed(self, round: int, state: State) -> None:
        """Does nothing: there is no other round."""

    def kept(self, state: State, plan: Plan) -> AbstractContextManager[Iterable[State]]:
        return nullcontext([])

    def _untimed(self, plan: Plan, seen: Mapping[str, Ticks]) -> dict[str, int]:
        found = {stream.name: seen[stream.name].untimed for stream in plan.streams if stream.name in seen}
        for name, tuples in found.items():
            if tuples and not self.untimed.skips:
                raise without_time(plan.stream(name), tuples)
        return {name: tuples for name, tuples in found.items() if tuples}
