"""The loop of rounds: begin, read, log, step, deliver, commit. A crash between any two of these changes no result.

The log is the truth: once it is written, a repeated round uses it instead of asking Spark again, and gives the same
rows. Everything else is derived, and idempotent by the round's number. The placement reads and steps, because what is
logged depends on where the step runs.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from windloom.answers.blocks import Stopwatch
from windloom.answers.rows.row_queries import set_since
from windloom.checkpoint.journal import Journal
from windloom.checkpoint.json_codec import to_json
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.recovery import RecoveredState, is_snapshot_due
from windloom.checkpoint.storage import StorageError
from windloom.checkpoint.tuple_files import LostTuplesError
from windloom.engine.budget import BudgetDecision, MeasuredAnswers, Questioners, Scheduling, no_costs
from windloom.engine.placement import Placement
from windloom.engine.progress import RoundProgress, progress_of
from windloom.engine.replanning import Adapting
from windloom.engine.round import Round, RoundTuples
from windloom.engine.snapshots import CommittedRound, RoundSnapshot, TupleHistory
from windloom.model.query import Query
from windloom.model.time import TICK_MIN
from windloom.plan.plan import PartialSet, Plan
from windloom.sinks.delivery import PATIENCE_SECONDS, Delivery, RoundStoppedError, SinkGivenUpError, SinkWait
from windloom.sinks.round_rows import Outcome, RoundEmission, RoundRows
from windloom.sinks.sink import Sink
from windloom.sinks.tables import AnswerTables
from windloom.spark.api import DataFrame
from windloom.spark.collect import Ingest
from windloom.spark.errors import as_windloom_errors
from windloom.state.cells import Cells
from windloom.state.pending import readers_of
from windloom.state.plan_change import leaving, migrate, remade
from windloom.state.state import CellCoverage, State
from windloom.statistics.estimates import Memory
from windloom.statistics.observations import RoundObserved
from windloom.weave.backfill import LoggedRound, woven_again

#: How many rounds later an answer to a question can still be repaired.
REPAIRED_ROUNDS = 64
#: Failures for which no query is to blame; some sinks may already have the answers of the round.
BLAMELESS = (RoundStoppedError, SinkGivenUpError, StorageError)


@dataclass(frozen=True, slots=True)
class Listeners:
    """Called while a round runs: when its step is done, with the number of rows made so far, when all of it is done.

    `waiting` is called when the round waits for a sink, and with None when the round continues.
    """

    stepped: Callable[[Outcome], None] = lambda outcome: None
    made: Callable[[int], None] = lambda rows: None
    done: Callable[[RoundProgress], None] = lambda progress: None
    waiting: Callable[[SinkWait | None], None] = lambda wait: None


@dataclass(frozen=True, slots=True)
class CompletedRound:
    """A round that is committed; `made` counts its rows before any HAVING, `processor` are its seconds by stage."""

    outcome: Outcome
    progress: RoundProgress
    made: int
    processor: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Turn:
    """A round to run; `answers_of` is the plan of one that only answers, `ahead` are the seconds spent on it before."""

    batch: int | None
    intake: RoundTuples
    answers_of: PlanRecord | None = None
    ahead: float = 0.0


class RoundLoop:
    """Everything that a run keeps between its rounds. `lock` is held while a round runs, and while queries change."""

    def __init__(
        self,
        plan_of: Callable[[PlanRecord], Plan],
        journal: Journal,
        recovered: RecoveredState,
        placement: Placement,
        sinks: Mapping[str, Sink],
        tables: AnswerTables,
        *,
        snapshot_rounds: int | None = None,
        sink_patience: float = PATIENCE_SECONDS,
        listeners: Listeners | None = None,
        memory: Memory | None = None,
        history: TupleHistory | None = None,
        adapting: Adapting | None = None,
        scheduling: Scheduling | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.lock = threading.RLock()
        self.changes = threading.Lock()  # held while the next plan record is made
        self.scheduling, self._clock = scheduling or Scheduling(no_costs), clock
        self.questions = Questioners(self.scheduling.budget or 0.0)
        self._plan_of, self._journal, self._snapshot_rounds = plan_of, journal, snapshot_rounds
        self.placement, self._sinks, self._tables = placement, sinks, tables
        self._listeners = listeners or Listeners()
        self.memory = memory or Memory()
        self.adapting = adapting
        self.delivery = Delivery(sinks, self.lock, sink_patience, self._listeners.waiting)
        self.state = recovered.state
        self.history = history
        #: The last migration: to which plan, from which state, the result; and whether tuples were used.
        self._migrated: tuple[Plan, State, State] | None = None
        self._is_remade = False
        # Before the first round there is no plan to migrate a state from.
        self.record, self.plan = recovered.plan_record, recovered.plan
        self._emitted = journal.read_emitted()
        self._showing = threading.Lock()
        at = self._journal.committed_at(recovered.next_round - 1)
        #: The plan and the state after the last committed round, which questions see.
        self.committed = CommittedRound(recovered.next_round - 1, self.plan, self.record, self.state, at)
        #: For each of the newest rounds, the least tick of its late tuples, by stream.
        self._late: deque[tuple[int, Mapping[str, int]]] = deque(maxlen=REPAIRED_ROUNDS)
        self._journal.retain()  # a crash may have prevented it

    @property
    def next_round(self) -> int:
        return self._journal.last_committed + 1

    def run_batch(self, batch: DataFrame, number: int, ingest: Ingest) -> None:
        """Run the round of Spark's micro-batch `number`, unless it is committed already."""
        if number <= self._journal.last_batch:
            return
        self.run(RoundTuples(ingest.split(batch), batch), number)

    def finish(self) -> None:
        """Run a last round without tuples, with every frontier at +∞: it answers all windows that are still open."""
        self.run(RoundTuples(ends=True))

    def catch_up(self, *, everything: bool = False, must: Collection[str] = ()) -> bool:
        """Run a round without tuples, which answers postponed windows: within the budget or, if asked, all of them.

        `must` names queries that are answered in any case. Returns False if nothing is postponed.
        """
        with self.lock:
            if not self.state.answered:
                return False
            names = frozenset(must)
            self.run(RoundTuples(only_answers=True, everything=everything, must=names))
            return True

    def run(self, intake: RoundTuples, batch: int | None = None) -> CompletedRound:
        """Run a round, and before it those that must come first; return the last one.

        `batch` is the number of Spark's micro-batch. If a file of tuples is lost, the round begins again without it.
        """
        completed: CompletedRound | None = None
        with self.lock:
            for turn in self._turns(intake, batch):
                completed = None
                while completed is None:
                    try:
                        watch = Stopwatch(self._clock)
                        round, deciding = self._begin(turn, watch)
                        log = self.placement.logged(round, turn.intake, watch)
                        if log is None:
                            log = self.placement.read(round, turn.intake, watch)
                            with watch("log"):
                                self._journal.write_log(log.smaller(round.plan))
                        outcome = self.placement.step(round, log, turn.intake, watch)
                        self._listeners.stepped(outcome)
                        answers = self._answers(round, outcome)
                        given = self.delivery.give(round.number, answers, watch)
                        measured = deciding.measured(outcome)
                        completed = self._commit(turn, round, outcome, answers, given, measured, watch)
                    except LostTuplesError as error:
                        # The round is not committed. It begins again, as after a crash, without what needs the file.
                        if not self.placement.lose(error):
                            raise
                    except BLAMELESS:
                        raise
                    except Exception:
                        # If a query cannot be answered, the next start may bring the catalog without it, or a better
                        # one.
                        self._journal.note_failure(self.next_round)
                        raise
        assert completed is not None, "there is always a round to run"
        return completed

    def _turns(self, intake: RoundTuples, batch: int | None) -> Iterator[_Turn]:
        """Yield the rounds to run; the next one is decided when the one before it is committed."""
        answering = RoundTuples(only_answers=True)
        if self._journal.was_answering(self.next_round):
            yield _Turn(None, answering, self.record)
            if intake.only_answers and not intake.everything and not intake.must:
                return
        ahead = 0.0
        if self.adapting is not None and batch is not None and not self._journal.has_begun(self.next_round):
            begun = self._clock()
            self.adapting.foresee(batch, self.state.seen)  # may choose a plan for what is announced
            ahead = self._clock() - begun
        must = self._leaving(intake)
        if must:
            # A query that leaves must first report the windows that are already closed: its cells leave with it.
            yield _Turn(None, replace(answering, must=must), self.record)
        yield _Turn(batch, intake, self.record if intake.only_answers else None, ahead)

    def _leaving(self, intake: RoundTuples) -> frozenset[str]:
        """Return queries that owe answers and cannot wait: the next plan lacks them, or changes them or their cells."""
        if not self.state.answered or self.plan is None or intake.only_answers:
            return frozenset()
        record = self._journal.upcoming(self.next_round)
        if self.record is not None and record.version == self.record.version:
            return frozenset()
        plan = self._plan_of(record)
        names = leaving(self.plan, plan)
        for number in remade(self.state, self.plan, plan, self._known_past):
            names |= {planned.name for planned in readers_of(self.plan, number)}
        return frozenset(names & self.state.answered.keys())

    def _begin(self, turn: _Turn, watch: Stopwatch) -> tuple[Round, BudgetDecision]:
        """Record that a round begins, and with which plan."""
        number = self.next_round
        if turn.ahead:
            watch.seconds["adapt"] = turn.ahead
        record = self._journal.begin(number, turn.batch, answers_of=turn.answers_of)
        plan, state = self.adopted(record)
        if plan is not self.plan and number > 0:
            # The tuples of a new query's past may be gone when the round is replayed: its cells are saved before.
            known = None if self.plan is None else self.plan.by_identity
            is_new = (each.number for each in plan.sets if known is not None and each.identity not in known)
            if self._is_remade or not state.cells.keys().isdisjoint(is_new):
                self._journal.snapshot(number - 1, state, record.version)
        if self.adapting is not None:
            self.adapting.adapter.begin(record.version, plan, partial(self.adapting.basins, record))
        # A logged round keeps its plan, because a sink may have rows of it. But if one query could not be answered,
        # that round would fail for ever: so the change that the failure calls for takes effect in it. All other
        # queries report what they would have reported.
        newest = self._journal.newest_plan() if self._journal.has_failed(number) else None
        aside = frozenset() if newest is None else frozenset(leaving(plan, self._plan_of(newest)))
        round = Round(number, record, plan, state, self.plan, self.state, set_aside=aside)
        deciding = BudgetDecision(self.scheduling, round, turn.intake, watch)
        self.questions.round_begins()
        return replace(round, decide=deciding, give_way=self.questions.give_way), deciding

    def _answers(self, round: Round, outcome: Outcome) -> RoundRows:
        before = self._emitted
        if self.plan is not None and round.plan is not self.plan:
            before = before.carried(self.plan, round.plan)  # what was reported, as the plan of this round needs it
        return RoundRows(
            round.plan,
            outcome,
            self._tables,
            self._listeners.made,
            RoundEmission(round.plan, round.state, outcome.state, self._tables, before),
            is_shared=len(self._sinks) > 1,
        )

    def _commit(
        self,
        turn: _Turn,
        round: Round,
        outcome: Outcome,
        answers: RoundRows,
        given: Mapping[str, Mapping[str, float]],
        measured: MeasuredAnswers | None,
        watch: Stopwatch,
    ) -> CompletedRound:
        """Commit a round whose rows are with the sinks, and make its state the present one."""
        number = round.number
        with watch("commit"):
            at = time.time()
            answering = self.scheduling.told(round.plan, round.state, outcome.state, watch.elapsed)
            figures = progress_of(round, turn.batch, outcome, answers.finished, dict(watch.seconds), answering)
            progress = replace(figures, placement=self.placement.description, sinks=given)
            if self.adapting is not None:
                progress = self.adapting.told(progress)
            emitted = answers.reported()
            if emitted != self._emitted:
                self._journal.write_emitted(number, emitted)
            record = progress.as_dict()  # with observations for later plans and schedules
            if not turn.intake.only_answers:
                record["observed"] = to_json(RoundObserved, outcome.observed)
                if self.adapting is not None:
                    record["adapted"] = self.adapting.kept()
            if measured is not None:
                record["answering"] = measured.to_json()
            self._journal.commit(number, {**record, "at": at})
            self._emitted = emitted
            self._journal.drop_emitted()
        self.state, self.record, self.plan = outcome.state, round.record, round.plan
        self._learn(round, turn.intake, outcome, measured, watch)
        with self._showing:  # questions see the round from here on; files that only earlier rounds needed go
            self.committed = CommittedRound(number, round.plan, round.record, self.state, at)
            self._late.append((number, outcome.late_from))
            self.placement.committed(number, self.state)
        is_due = is_snapshot_due(number, self._snapshot_rounds)
        if is_due or self._journal.is_writing:
            with watch("snapshot"):
                self._settle_snapshot(wait=is_due)
                if is_due:
                    self._journal.snapshot_beside(number, self.state)
                    self._settle_snapshot(wait=False)
        progress = replace(progress, seconds=dict(watch.seconds))
        self._listeners.done(progress)
        return CompletedRound(outcome, progress, answers.made, dict(watch.processor))

    def _settle_snapshot(self, *, wait: bool) -> None:
        """Drop the files that a snapshot replaces, once it is written."""
        if self._journal.settle(wait=wait):
            self._journal.retain()

    def _learn(
        self, round: Round, intake: RoundTuples, outcome: Outcome, measured: MeasuredAnswers | None, watch: Stopwatch
    ) -> None:
        """Learn from a round, for later plans and schedules; a round that only answers shows nothing of the data."""
        if measured is not None:
            self.scheduling.learned.add(measured)
        if intake.only_answers:
            return
        self.memory.add(outcome.observed)
        if self.adapting is not None:
            with watch("adapt"):
                # The duration of a round says something about its plan only if it answers exactly its own windows.
                is_whole = not round.state.answered and not outcome.state.answered
                self.adapting.done(outcome.observed, watch.seconds, outcome.state_bytes, is_whole=is_whole)

    @contextmanager
    def snapshot(self) -> Iterator[RoundSnapshot]:
        """Give the state after the last committed round, valid until the end of the `with`; no round waits for it."""
        with ExitStack() as pins:
            with self._showing:
                shown = self.committed
                parts: Iterable[State] = ()
                if shown.plan is not None:
                    parts = pins.enter_context(self.placement.kept(shown.state, shown.plan))
            yield RoundSnapshot(
                shown,
                parts,
                lambda partial_set: self._logged_past(partial_set, shown.round),
                self._late_from,
                self._tables,
                self.history,
                self.placement.relations.taken_now,
            )

    def _late_from(self, query: Query, after: int, until: int) -> int | None:
        """Return the least tick of late tuples of a query's streams, in the rounds from `after` + 1 to `until`."""
        late_by_round = dict(list(self._late))
        ticks = []
        for round in range(after + 1, until + 1):
            if round not in late_by_round:
                return TICK_MIN  # too long ago to know
            ticks += [tick for stream, tick in late_by_round[round].items() if stream in query.inputs]
        return min(ticks, default=None)

    def adopted(self, record: PlanRecord) -> tuple[Plan, State]:
        """Return the plan of a record, and the present state in terms of that plan; called while the lock is held."""
        plan = self._plan_of(record)
        if self.plan is None or plan is self.plan:
            return plan, self.state
        if self._migrated is None or self._migrated[0] is not plan or self._migrated[1] is not self.state:
            self._is_remade = False
            self._migrated = (plan, self.state, migrate(self.state, self.plan, plan, self._past))
        return plan, self._migrated[2]

    def complete_from(self, plan: Plan, name: str) -> int | None:
        """Return the start of the first complete window of a query under another plan, without remaking any cells."""
        if self.plan is None:
            return None
        # A round with another plan first answers the pending windows of the sets that it makes again.
        settled = replace(self.state, answered={}, owed={})
        return migrate(settled, self.plan, plan, self._known_past).since.get(name)

    def _known_past(self, partial_set: PartialSet) -> tuple[Cells | None, CellCoverage] | None:
        since = None if self.history is None else set_since(partial_set, self.state.kept)
        if since is not None:
            return None, CellCoverage(since)
        return self._logged_past(partial_set) if self._is_new(partial_set) else None

    def _past(self, partial_set: PartialSet) -> tuple[Cells | None, CellCoverage] | None:
        """Return the cells of a set, made from kept or logged tuples of past rounds."""
        past = None
        if self.history is not None and self.plan is not None:
            past = self.history.past(self.plan, partial_set, self.state)
        if past is None and self._is_new(partial_set):
            past = self._logged_past(partial_set)
        self._is_remade |= past is not None
        return past

    def _is_new(self, partial_set: PartialSet) -> bool:
        """Return whether the present plan lacks a set; a set that is in it keeps its cells, on every placement."""
        return self.plan is not None and partial_set.identity not in self.plan.by_identity

    def _logged_past(
        self, partial_set: PartialSet, until: int | None = None
    ) -> tuple[Cells | None, CellCoverage] | None:
        """Return the cells of a set, made from logged tuples of past rounds; with `until`, while rounds may run."""
        if until is None:
            self._settle_snapshot(wait=True)  # how far back logs reach must not depend on how fast a thread writes
            return woven_again(partial_set, self._logged_rounds(self._journal.last_committed))
        with self._journal.reading():
            return woven_again(partial_set, self._logged_rounds(until))

    def _logged_rounds(self, last: int) -> Iterator[LoggedRound]:
        """Yield the logged rounds that took tuples in, newest first."""
        newer: RoundLog | None = None
        for log in chain(self._journal.logged(last), [None]):
            if log is not None and log.only_answers:
                continue
            if newer is not None and (log is not None or newer.round == 0):  # round 0 always takes something in
                plan = self._plan_of(self._journal.plan(newer.plan_version))
                yield LoggedRound(plan, newer.tuples, {} if log is None else log.input.seen)
            newer = log


#: Seconds without a micro-batch after which the stream counts as silent.
QUIET_SECONDS = 0.25


class CatchingUp:
    """A thread that runs rounds that only answer, while a stream is silent: answers do not wait for the next tuples.

    Each round is within the budget; there are rounds while answers are left and no micro-batch is waiting.
    """

    def __init__(self, loop: RoundLoop) -> None:
        self._loop = loop
        self._state = threading.Condition()
        self._batches = 0  # micro-batches that run or wait for their round
        self._begun = 0  # all micro-batches so far
        self._is_stopped = False

    @contextmanager
    def standing_aside(self) -> Iterator[None]:
        """Hold this while a micro-batch waits for its round or runs it."""
        with self._state:
            self._batches += 1
            self._begun += 1
        try:
            yield
        finally:
            with self._state:
                self._batches -= 1
                self._state.notify_all()

    def start(self, fail: Callable[[BaseException], None]) -> None:
        """Do nothing without a budget, because then nothing is ever left."""
        if self._loop.scheduling.budget is not None:
            threading.Thread(target=self._run, args=(fail,), name="windloom-catch-up", daemon=True).start()

    def stop(self) -> None:
        with self._state:
            self._is_stopped = True
            self._state.notify_all()

    def _run(self, fail: Callable[[BaseException], None]) -> None:
        while self._wait_for_quiet():
            try:
                with as_windloom_errors("the stream"):
                    self._loop.catch_up()
            except RoundStoppedError:
                return
            except BaseException as error:  # a thread has no caller: the handle reports it
                fail(error)
                return

    def _wait_for_quiet(self) -> bool:
        """Return when answers are left and no micro-batch has come for a while; False if the stream has ended."""
        with self._state:
            while not self._is_stopped:
                begun = self._begun
                self._state.wait(QUIET_SECONDS)
                if self._is_stopped:
                    break
                if self._batches == 0 and begun == self._begun and self._loop.state.answered:
                    return True
            return False
