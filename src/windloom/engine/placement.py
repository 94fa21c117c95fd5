"""The interface of placements: a placement reads a round's tuples, runs the step, and keeps the state."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from windloom.answers.blocks import Stopwatch
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.tuple_files import LostTuplesError
from windloom.engine.round import Round, RoundTuples
from windloom.plan.plan import Plan
from windloom.sinks.round_rows import Outcome
from windloom.state.state import State

if TYPE_CHECKING:
    from windloom.engine.relation_versions import Relations


class Placement(Protocol):
    """`read` returns what is logged; from then on, a repeated round gives the same rows without reading tuples again.

    States that a placement returns may lack their cells, if these live elsewhere; everything that decides what a query
    reports, and from which window on, is in them.
    """

    description: str  #: For people: "driver" or "executors".
    relations: Relations  #: Provides the versions of relations.

    def logged(self, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundLog | None:
        """Return the log of a round that was interrupted; None if it must be read."""
        ...

    def read(self, round: Round, intake: RoundTuples, watch: Stopwatch) -> RoundLog:
        """Make cells of a round's tuples, wherever they stay, and return everything that the step needs of them."""
        ...

    def step(self, round: Round, log: RoundLog, intake: RoundTuples, watch: Stopwatch) -> Outcome:
        """Run the step on a log that is written."""
        ...

    def lose(self, error: LostTuplesError) -> bool:
        """Let the repeated round do without a file that cannot be read; return False if that was tried before."""
        ...

    def committed(self, round: int, state: State) -> None:
        """Forget files that only this round needed, which is committed."""
        ...

    def kept(self, state: State, plan: Plan) -> AbstractContextManager[Iterable[State]]:
        """Give the state with its cells, in the parts it is kept in.

        Entered between two rounds. It can be read until the end of the `with`, whatever rounds run meanwhile.
        """
        ...
