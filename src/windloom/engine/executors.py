"""The step on executors: every group belongs to one shard, by hash, and each shard's state is a file on shared storage.

A round, and what a crash right after each of its parts leaves:

| part                                                       | after a crash the round …                       |
|------------------------------------------------------------|-------------------------------------------------|
| `begun`: the plan version                                  | begins anew, with the newest plan               |
| job 1: partials, on the executors; the frontiers; tuples   | runs again, from the same micro-batch; tuple    |
| that are kept, in files                                    | files are leftovers                             |
| job 2: every shard reads its state of the last committed   | runs again; files that were written are         |
| round, steps, writes its new state, its answers and, if    | leftovers                                       |
| the sink takes pieces, hidden pieces of rows; it returns   |                                                 |
| the names of these files                                   |                                                 |
| log: frontiers, names of all files, counts                 | reads the names: no job runs, the rows are      |
|                                                            | those of the recorded files, bit for bit        |
| sinks; rows of row queries are made of kept tuples; pieces | writes the same rows again; shown pieces stay   |
| that shards wrote are shown                                |                                                 |
| commit                                                     | is done; the next one reads the recorded states |
| retention: files of no use to the next round               | is done; the next start deletes them            |

So the log is the truth here too. The only cells in it are those of relations, which the driver holds: the state of
streams after the last committed round is in the files that its log names. A task may fail, be repeated, or run twice at
once: each attempt writes its own files, Spark returns the names of one attempt per shard, and only those are recorded.
Files that are recorded are never written again, and are deleted only when a later round is committed.

The driver holds what all shards have in common: frontiers, plan, which queries are fresh, what is kept of the past. It
also holds kept tuples and runs row queries (`row_queries.py`), in the same way on both placements. It runs the step
over the logs, without cells, as recovery does for the driver placement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from windloom.answers.blocks import Block, Stopwatch, Timer
from windloom.answers.joins.key_counts import with_relations
from windloom.answers.joins.lowering import blocks_of
from windloom.checkpoint.journal import Journal
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.shards.blocks import joined, read_blocks
from windloom.checkpoint.shards.files import ShardFiles
from windloom.checkpoint.shards.notes import ShardNote, counts_of, kept_from_of, took_of
from windloom.checkpoint.shards.pieces import Outlet, PieceFolder
from windloom.checkpoint.shards.run import ShardPlaces, ShardRound, moved_sets, shard_state
from windloom.checkpoint.shards.split import split_cells
from windloom.checkpoint.state_codec import restored_folds
from windloom.checkpoint.tuple_files import LostTuplesError
from windloom.engine.relation_versions import Relations
from windloom.engine.round import Round, RoundTuples
from windloom.engine.row_queries import RowQueries, TupleKeeping, lost_files
from windloom.errors import WindloomError
from windloom.model.stream import Version
from windloom.plan.plan import Plan
from windloom.plan.sharding import sharding_of
from windloom.rounds.lateness import late_from
from windloom.rounds.observe import observe
from windloom.rounds.step import step
from windloom.sinks.round_rows import Outcome
from windloom.sinks.sink import Sink
from windloom.sinks.tables import AnswerTables
from windloom.spark.api import DataFrame
from windloom.spark.executors.shard_job import Gathered
from windloom.spark.executors.shards import ShardReport
from windloom.spark.kept_tuples import TupleKeeper
from windloom.state.cells import Cells
from windloom.state.state import State
from windloom.state.windows.lifecycle import Landmark
from windloom.weave.round_input import RoundInput, ScanResult, Watermarks


class GatheringJobs(Protocol):
    """The jobs that make cells from the tuples of a round: by Spark, or in tests by plain Python."""

    def gathered(
        self,
        plan: Plan,
        frames: Mapping[str, DataFrame],
        batch: DataFrame | None,
        state: State,
        shards: int,
        keeper: TupleKeeper | None = None,
    ) -> AbstractContextManager[Gathered]: ...


class ShardJobs(GatheringJobs, Protocol):
    """The jobs that make cells and also run the shards."""

    def run_shards(
        self, round: ShardRound, places: ShardPlaces, taken: Gathered | None, shards: int
    ) -> list[ShardNote]: ...


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where shards write rows themselves, round by round, for the sink that `folder` belongs to."""

    folder: PieceFolder
    tables: AnswerTables

    def of(self, plan: Plan) -> Outlet:
        return self.folder.outlet(self.tables.without_spark(plan))

    @classmethod
    def for_sinks(cls, sinks: Sequence[Sink], tables: AnswerTables) -> Outlets | None:
        """None if some sink needs the rows on the driver: then all rows go through the driver."""
        folder = sinks[0].pieces if len(sinks) == 1 else None
        return None if folder is None else cls(folder, tables)


@dataclass(frozen=True, slots=True)
class GatheredRound:
    """The input of a round, and the cells of streams, which stay on the executors."""

    input: RoundInput
    taken: Gathered | None

    def told(self, round: Round) -> ShardRound:
        """What is sent to all shards of the round; they do not need what rows are made of."""
        given, left = replace(self.input, kept={}, summaries={}), replace(round.left, kept={}, summaries={})
        told = ShardRound(round.number, round.plan, given, round.record.history_ticks, left)
        if round.previous is None or round.previous is round.plan:
            return told
        began = replace(round.state.of_all_shards(round.plan.sets), kept={}, summaries={})
        return replace(told, previous=round.previous, began=began)


@contextmanager
def gathered_round(
    jobs: GatheringJobs,
    watermarks: Watermarks,
    relations: Relations,
    round: Round,
    intake: RoundTuples,
    shards: int,
    watch: Stopwatch,
    rows: RowQueries | None = None,
) -> Iterator[GatheredRound]:
    """What a round takes in, held on the executors until the end of the `with`; without `rows`, no tuple is kept."""
    with ExitStack() as scope:
        taken: Gathered | None = None
        told, versions, keeping = ShardReport(), dict[str, Version](), TupleKeeping()
        if intake.brings_tuples:
            with watch("partials"):
                scope.callback(relations.release)
                frames, versions = relations.enriched(round, intake.frames)
                with nullcontext(keeping) if rows is None else rows.keeping(round) as keeping:
                    job = jobs.gathered(round.plan, frames, intake.batch, round.state, shards, keeping.keeper)
                    taken = scope.enter_context(job)
                told = taken.told
        given = RoundInput(round=round.number)
        if not intake.only_answers:
            decide = watermarks.ended if intake.ends else watermarks.after
            given = decide(round.state, told.largest_ticks, told.smallest_ticks).taking(
                ScanResult(behind=told.behind, scanned=told.scanned), told.events
            )
            given = replace(given, round=round.number, kept=keeping.brought, rows=told.positions)
            given = relations.with_versions(round, given, watch, versions)
            given = given if rows is None else rows.with_summaries(given, round, intake, watch)
        yield GatheredRound(replace(given, postponed=round.decide(given)), taken)


@dataclass(frozen=True, slots=True)
class _ShardStates:
    """The states of all shards, read one after another each time this is iterated over."""

    files: ShardFiles
    names: tuple[str, ...]
    facts: State
    plan: Plan

    def __iter__(self) -> Iterator[State]:
        return (shard_state(self.files, name, self.facts, self.plan) for name in self.names)


class ExecutorPlacement:
    counts_rows = False
    logs_past = True

    def __init__(
        self,
        jobs: ShardJobs,
        journal: Journal,
        files: ShardFiles,
        shards: int,
        watermarks: Watermarks,
        rows: RowQueries,
        outlets: Outlets | None = None,
        relations: Relations | None = None,
        slots: int = 1,
    ) -> None:
        """`slots` is how many shards run at the same time."""
        self._jobs, self._journal, self._files, self._rows, self._slots = jobs, journal, files, rows, slots
        self.relations = relations or Relations({})
        self._shards, self._watermarks, self._outlets = shards, watermarks, outlets
        self.description = f"executors, {shards} shards"
        self._ran: tuple[ShardNote, ...] = ()  # the notes of the round that is not committed yet
        self._notes = self._recorded(journal.last_committed)
        if len(self._notes) != (shards if journal.last_committed >= 0 else 0):
            raise WindloomError(
                f"the log of round {journal.last_committed} does not name the states of {shards} shards",
                "the round is committed, and its log is missing or of another checkpoint",
                "restore the log from a copy, or start over with a new checkpoint",
            )
        logged = self._recorded(journal.last_committed + 1)  # notes of a round that was interrupted
        files.keep_only({*self._states, *(name for note in logged for name in note.files)})
        if outlets is not None:
            outlets.folder.keep_only({piece.file for note in logged for piece in note.pieces})

    def logged(self, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundLog | None:
        return self._rows.read_log(self._journal, round, intake, watch)

    def step(self, round: Round, log: RoundLog, intake: RoundTuples, watch: Stopwatch) -> Outcome:
        with watch("step"):
            began = round.state.of_all_shards(round.plan.sets)
            began = began if log.began is None else log.began.holding(began)
            given = log.complete(round.plan, began)
            state, facts, counted = step(began, given, round.plan, history_ticks=round.record.history_ticks)
        state = state.forgetting(kept_from_of(log.shards))
        self._ran = log.shards
        state_bytes = state.nbytes + sum(note.state_bytes for note in log.shards)
        took, timer = took_of(log.shards), Timer(round.give_way)
        timer.seconds |= took
        counts = counts_of(log.shards, counted.late)
        counts = replace(counts, links=with_relations(round.plan, counts.links, counted.links))
        with watch("observe"):
            observed = observe(round.plan, round.state, log.input, counts)

        of_driver = facts.without(round.set_aside)

        def blocks() -> Iterable[Block]:
            of_shards = joined(self._blocks(log.shards, round, facts.landmarks))
            of_rows = self._rows.blocks(round, given, of_driver, intake, timer)
            return chain(of_shards, of_driver.of_summaries(timer), of_rows)

        return Outcome(
            state,
            state_bytes,
            counts,
            observed,
            log.untimed,
            blocks,
            pieces=[piece for note in log.shards for piece in note.pieces],
            lost=lost_files(given),
            took=timer.seconds,
            answered_before=sum(took.values()) / self._slots,
            late_from=late_from(round.plan, log.input),
        )

    def moved_sets(self, old: Plan, new: Plan) -> Collection[int]:
        return moved_sets(old, new)

    def lose(self, error: LostTuplesError) -> bool:
        return self._rows.lose(error)

    def committed(self, round: int, state: State) -> None:
        self._notes = self._ran
        self._files.keep_only(set(self._states))
        self._rows.committed(state)
        if self._outlets is not None:
            self._outlets.folder.keep_only(())  # the pieces of the round have been shown

    @contextmanager
    def kept(self, state: State, plan: Plan) -> Iterator[Iterable[State]]:
        names = self._states
        with self._files.pinned(names), self._rows.pinned(state):
            yield _ShardStates(self._files, names, state, plan)

    def read(self, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundLog:
        outlet = None if self._outlets is None else self._outlets.of(round.plan)
        places = ShardPlaces(self._files, self._states, outlet)
        gathering = (self._jobs, self._watermarks, self.relations)
        with gathered_round(*gathering, round, intake, self._shards, watch, self._rows) as given:
            told = self._with_past(given.told(round), round)
            with watch("shards"):
                notes = self._jobs.run_shards(told, places, given.taken, self._shards)
            untimed = {} if given.taken is None else dict(given.taken.told.untimed)
        return RoundLog(
            round.number,
            round.record.version,
            given.input,
            untimed,
            tuple(notes),
            only_answers=intake.only_answers,
            began=None if told.began is None else replace(round.state, cells={}, owed={}),
        )

    def _with_past(self, told: ShardRound, round: Round) -> ShardRound:
        """Makes shards read the cells that were made from kept tuples for new queries; the files are leftovers then."""
        sets = round.plan.sets
        made = {number: cells for number, cells in round.state.cells.items() if not sets[number].is_relation}
        past = {}
        for shard, cells in split_cells(made, self._shards, sharding_of(round.plan)):
            past[shard] = ShardFiles.new_past(round.number, shard)
            self._files.write(past[shard], [cells])
        return replace(told, remade=frozenset(made), past=past)

    def _blocks(self, notes: Iterable[ShardNote], round: Round, landmarks: Mapping[str, Landmark]) -> Iterator[Block]:
        """Blocks, shard by shard: the driver holds the answers of one at a time. Joins folded in parts come last."""
        plan, folds = round.plan, dict[int, list[Cells]]()
        for note in notes:
            if note.answers is not None:
                for block in read_blocks(note.answers, self._files.read(note.answers)):
                    yield block.without(round.set_aside)
            if note.folds is not None:
                for number, cells in restored_folds(self._files.read(note.folds), plan).items():
                    if plan.joins[number].name not in round.set_aside:
                        folds.setdefault(number, []).append(cells)
        yield from blocks_of(plan, folds, landmarks)

    def _recorded(self, round: int) -> tuple[ShardNote, ...]:
        log = self._journal.read_log(round) if round >= 0 else None
        return () if log is None else log.shards

    @property
    def _states(self) -> tuple[str, ...]:
        """The files with each shard's state after the last committed round."""
        return tuple(note.state for note in self._notes)
