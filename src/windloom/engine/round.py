"""A round: the tuples it takes in, and the plan and state it runs with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from windloom.checkpoint.records import PlanRecord
from windloom.plan.plan import Plan
from windloom.spark.api import DataFrame
from windloom.state.state import State
from windloom.weave.round_input import RoundInput


@dataclass(frozen=True, slots=True)
class RoundTuples:
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
    decide: Callable[[RoundInput], Mapping[str, int]] = lambda given: {}
    give_way: Callable[[], None] = lambda: None
    set_aside: frozenset[str] = frozenset()
