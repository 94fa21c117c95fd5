"""Row queries in a round, on both placements: tuples are kept before the round is logged, rows are made after.

Cells may be divided into buckets; kept tuples are not, because rows that meet in a join belong to no group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

from windloom.answers.answers import Answers
from windloom.answers.blocks import Block, Stopwatch, Timer
from windloom.checkpoint.journal import Journal
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.tuple_files import LostTuplesError
from windloom.checkpoint.tuple_folder import TupleFolder
from windloom.engine.round import Round, RoundTuples
from windloom.plan.plan import Plan
from windloom.rounds.step import asked_before
from windloom.spark.api import DataFrame
from windloom.spark.kept_tuples import TupleKeeper
from windloom.state.cells import Cells
from windloom.state.state import State
from windloom.state.tuple_store import NewTupleFiles, ReportedWindows, TupleStores, files_of, kept_with
from windloom.weave.round_input import RoundInput


class RowJobs(Protocol):
    """The jobs that make rows from tuples: by Spark, or in tests by plain Python."""

    def row_summaries(
        self, plan: Plan, asked: Sequence[ReportedWindows], frames: Mapping[str, DataFrame], kept: TupleStores
    ) -> Mapping[str, Cells]: ...

    def row_blocks(
        self, plan: Plan, asked: Sequence[ReportedWindows], frames: Mapping[str, DataFrame], kept: TupleStores
    ) -> Iterable[Block]: ...


@dataclass(slots=True)
class TupleKeeping:
    """The keeper of a round's tuples, if any are kept, and afterwards the files that it has written, by stream."""

    keeper: TupleKeeper | None = None
    brought: Mapping[str, NewTupleFiles] = field(default_factory=dict)


class RowQueries:
    """`folder` is where a stream keeps tuples; None for a batch run, which keeps none."""

    def __init__(self, jobs: RowJobs, folder: TupleFolder | None = None) -> None:
        self._jobs, self._folder = jobs, folder

    @contextmanager
    def keeping(self, round: Round) -> Iterator[TupleKeeping]:
        """Take the tuples that a round keeps; their files are complete at the end of the `with`."""
        keeping = TupleKeeping()
        if self._folder is None or not round.plan.stores:
            yield keeping
            return
        self._folder.look_for_lost(round.state.kept)
        writer = keeping.keeper = self._folder.writer(round.number, round.plan)
        try:
            yield keeping
            keeping.brought = self._folder.brought(writer.finish(), round.state.kept, round.plan, round.number)
        except BaseException:
            writer.discard()
            raise

    def with_summaries(self, given: RoundInput, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundInput:
        """Return the input with partials of the rows that enter in the round, by the query that aggregates them."""
        if not any(planned_rows.is_summarised for planned_rows in round.plan.rows):
            return given
        with watch("rows"):
            reported = asked_before(round.state, given, round.plan)
            asked = [asked_rows for asked_rows in reported if asked_rows.planned.is_summarised]
            kept = kept_with(round.state.kept, given.kept, round.plan)
            with self._naming_damage(kept):
                summaries = self._jobs.row_summaries(round.plan, asked, intake.frames, kept) if asked else {}
            return replace(given, summaries=summaries)

    def read_log(self, journal: Journal, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundLog | None:
        """Return the log of a round that was interrupted; it shows which tuple files have been lost since."""
        log = journal.read_log(round.number)
        if log is None or self._folder is None or not self._folder.lost:
            return log
        kept = dict(log.input.kept)
        for stream, lost in self._folder.lost.items():
            brought = kept.get(stream, NewTupleFiles())
            kept[stream] = replace(brought, lost=brought.lost | lost)
        if kept == log.input.kept:
            return log
        # Logged summaries count only together with earlier ones, which are no longer there: they are computed again.
        given = replace(log.input, kept=kept, summaries={})
        log = replace(log, input=self.with_summaries(given, round, intake, watch))
        journal.write_log(log)
        return log

    def lose(self, error: LostTuplesError) -> bool:
        """Let the round do without a file that cannot be read; return False if that was tried before."""
        return self._folder is not None and self._folder.lose(error.name)

    def blocks(
        self, round: Round, given: RoundInput, answers: Answers, intake: RoundTuples, timer: Timer
    ) -> Iterator[Block]:
        """Return rows made from tuples; rows of aggregates are made from summaries, and are among `answers`."""
        asked = [asked_rows for asked_rows, _ in answers.rows if not asked_rows.planned.is_summarised]
        if not asked:
            return iter(())
        kept = kept_with(round.state.kept, given.kept, round.plan)
        return timer(asked[0].planned.name, lambda: self._made(round.plan, asked, intake, kept))

    def _made(
        self, plan: Plan, asked: Sequence[ReportedWindows], intake: RoundTuples, kept: TupleStores
    ) -> Iterator[Block]:
        with self._naming_damage(kept):
            yield from self._jobs.row_blocks(plan, asked, intake.frames, kept)

    def committed(self, state: State) -> None:
        """Delete tuples that no later round needs."""
        if self._folder is not None:
            self._folder.keep_only(files_of(state.kept))
            self._folder.lost = {}

    def pinned(self, state: State) -> AbstractContextManager[None]:
        """Keep the tuples of a state until the end of the `with`, whatever rounds are committed meanwhile."""
        return nullcontext() if self._folder is None else self._folder.pinned(files_of(state.kept))

    def _naming_damage(self, kept: TupleStores) -> AbstractContextManager[None]:
        return nullcontext() if self._folder is None else self._folder.naming_damage(kept)


def lost_files(given: RoundInput) -> list[str]:
    """Return the tuple files that a round has found missing or damaged."""
    return sorted(name for brought in given.kept.values() for name in brought.lost)
