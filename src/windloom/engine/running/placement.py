"""The interface of placements: a placement reads a round's tuples, runs the step, and keeps the state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from windloom.durable import PlanRecord, RoundLog
from windloom.durable.shards.pieces import Piece
from windloom.durable.tuples import LostTuplesError
from windloom.errors import WindloomError
from windloom.model.query import Query
from windloom.plan.observed import RoundObserved
from windloom.plan.physical import Plan
from windloom.rounds import Block, RoundInput, State
from windloom.rounds.step import StepCounts
from windloom.spark.answers.executors import WideAnswers
from windloom.spark.api import DataFrame

if TYPE_CHECKING:
    from windloom.engine.running.relations import Relations


@dataclass(frozen=True, slots=True)
class Intake:
    """The tuples of a round, by stream; there are none in the round that finishes a stream.

    `batch` is the micro-batch that all frames are parts of, if there is one. `ends`: no tuple comes after these, and
    every window is closed. `only_answers`: nothing is taken in and no window is closed; the round answers what earlier
    rounds have postponed. `everything`: nothing is postponed, however long the round takes. `must` names queries that
    are answered in any case.
    """

    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    batch: DataFrame | None = None
    ends: bool = False
    only_answers: bool = False
    everything: bool = False
    must: frozenset[str] = frozenset()

    @property
    def brings_tuples(self) -> bool:
        return bool(self.frames) or not (self.ends or self.only_answers)


def _nothing_postponed(_: RoundInput) -> Mapping[str, int]:
    return {}


@dataclass(frozen=True, slots=True)
class Round:
    """A round about to run with `plan`. `state` is the state after the last round, in terms of `plan`.

    `left` is the same state in terms of `previous`, the plan of that last round; `previous` is None before the first
    round. `decide` is called when it is known what the round brings, and returns which answers are left to later
    rounds. `give_way` is called now and then while the round answers, and waits for questions. `set_aside` are queries
    that the round does not answer any more, because it failed and they have changed since.
    """

    number: int
    record: PlanRecord
    plan: Plan
    state: State
    previous: Plan | None
    left: State
    decide: Callable[[RoundInput], Mapping[str, int]] = _nothing_postponed
    give_way: Callable[[], None] = lambda: None
    set_aside: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a round, already logged. Until the round is committed, `blocks` returns its answers, repeatedly.

    `wide` are the answers of a batch run that Spark holds: then there are no blocks. `pieces` are rows that shards have
    written where the sink keeps them; they are in no block. `took` has the seconds of each unit of queries answered
    together, by the name of its first query, once the answers have been read; `answered_before` are the seconds that
    the round spends on them before its answers are read.
    """

    state: State
    state_bytes: int
    counts: StepCounts
    observed: RoundObserved
    untimed: Mapping[str, int] = field(default_factory=dict)
    blocks: Callable[[], Iterable[Block]] = tuple
    wide: WideAnswers | None = None
    pieces: Sequence[Piece] = ()
    lost: Sequence[str] = ()
    took: Mapping[str, float] = field(default_factory=dict)
    answered_before: float = 0.0
    late_from: Mapping[str, int] = field(default_factory=dict)  # by stream, the least tick of tuples that came late


class Stopwatch:
    """The seconds of each stage of a round, and the seconds since it has begun."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._clock, self._begun = clock, clock()

    @property
    def elapsed(self) -> float:
        return self._clock() - self._begun

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        begun = self._clock()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + self._clock() - begun


def refuse_unsharded(queries: Iterable[Query]) -> None:
    """Raises for queries that shards cannot answer, because each shard has only the cells of its own groups."""
    for query in queries:
        obstacle = query.window.shard_obstacle
        if obstacle is not None:
            raise WindloomError(
                f"query '{query.name}' has {query.window.plural}, which are not answered on executors in a stream",
                f"{query.window}: {obstacle}",
                "use placement='driver', or windows of time",
            )


class Placement(Protocol):
    """`read` returns what is logged; from then on, a repeated round gives the same rows without reading tuples again.

    States that a placement returns may lack their cells, if these live elsewhere; everything that decides what a query
    reports, and from which window on, is in them.
    """

    #: For people: "driver", or "executors" with the number of shards.
    description: str

    #: Whether it answers windows of rows.
    counts_rows: bool

    #: Whether the log of a round holds the state that a new plan begins with; if not, a snapshot must be taken first.
    logs_past: bool

    #: Provides the versions of relations.
    relations: Relations

    def logged(self, round: Round, intake: Intake, watch: Stopwatch) -> RoundLog | None:
        """Return the log of a round that was interrupted; None if it must be read."""
        ...

    def read(self, round: Round, intake: Intake, watch: Stopwatch) -> RoundLog:
        """Make cells of a round's tuples, wherever they stay, and return everything that the step needs of them."""
        ...

    def step(self, round: Round, log: RoundLog, intake: Intake, watch: Stopwatch) -> Outcome:
        """Run the step on a log that is written."""
        ...

    def moved_sets(self, old: Plan, new: Plan) -> Collection[int]:
        """Sets of a plan, by number, whose cells the next plan keeps elsewhere: they cannot owe answers then."""
        ...

    def lose(self, error: LostTuplesError) -> bool:
        """Lets the repeated round do without a file of tuples that cannot be read; False if that was tried before."""
        ...

    def committed(self, round: int, state: State) -> None:
        """Called when the round is committed: forgets files that only this round needed."""
        ...

    def kept(self, state: State, plan: Plan) -> AbstractContextManager[Iterable[State]]:
        """The state with its cells, in the parts it is kept in.

        Entered between two rounds. It can be read until the end of the `with`, whatever rounds run meanwhile.
        """
        ...
