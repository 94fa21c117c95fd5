"""What a placement is: it takes in a round's tuples, logs, runs the step, and keeps the state for the next round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from windloom.durable import PlanRecord
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
    every window is closed. `only_answers`: nothing is taken in, and no window is closed; what earlier rounds have
    postponed is answered. `everything`: nothing is postponed, whatever it takes. `must` names queries that are answered
    in any case.
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
    """A round about to run with `plan`. `state` is what the last round left, in terms of `plan`.

    `left` is the same in terms of `previous`, the plan of that last round; None before the first. `decide` says, when
    it is known what the round brings, which answers it leaves to later ones. `give_way` is called now and then while it
    answers, and waits for questions.
    """

    number: int
    record: PlanRecord
    plan: Plan
    state: State
    previous: Plan | None
    left: State
    decide: Callable[[RoundInput], Mapping[str, int]] = _nothing_postponed
    give_way: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a round came to, logged already. Until the round is committed, `blocks` gives its answers, once or again.

    `wide` are the answers of a batch run that Spark holds: then there are no blocks. `pieces` are rows that shards have
    written to where the sink keeps them; they are in no block. `took` has the seconds of what was answered together, by
    the name of the first query, when the answers have been read; `answered_before` is how much of that the round took
    longer before its answers are read.
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
    """Seconds of each stage of a round, and since it has begun."""

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
    """Refuse what shards, each with the cells of its own groups, cannot answer."""
    for query in queries:
        obstacle = query.window.shard_obstacle
        if obstacle is not None:
            raise WindloomError(
                f"query '{query.name}' has {query.window.plural}, which are not answered on executors in a stream",
                f"{query.window}: {obstacle}",
                "use placement='driver', or windows of time",
            )


class Placement(Protocol):
    """`run` leaves a log, after which a repeated round gives the same rows without asking Spark for tuples again.

    States that a placement hands out may lack their cells, where these live elsewhere; all that decides what a query
    reports, and from which window on, is in them.
    """

    #: "driver", or "executors" with their number of shards: for people.
    description: str

    #: Whether it answers windows of rows.
    counts_rows: bool

    #: Whether the log of a round holds what a new plan begins with; if not, a snapshot must hold it before.
    logs_past: bool

    #: What gives the versions of relations.
    relations: Relations

    def run(self, round: Round, intake: Intake, watch: Stopwatch) -> Outcome: ...

    def moved_sets(self, old: Plan, new: Plan) -> Collection[int]:
        """Sets of a plan, by number, whose cells are elsewhere with the next one: they cannot owe answers then."""
        ...

    def lose(self, error: LostTuplesError) -> bool:
        """A file of tuples cannot be read: the round, repeated, goes on without it; False if that was tried before."""
        ...

    def committed(self, round: int, state: State) -> None:
        """The round is done: forget what only it needed."""
        ...

    def kept(self, state: State, plan: Plan) -> AbstractContextManager[Iterable[State]]:
        """The state with its cells, in the parts it is kept in.

        Entered between two rounds; it can be read to the end of the `with`, whatever rounds run meanwhile.
        """
        ...
