"""Rounds that leave answers to later ones: at random, or by a cost model and a clock of the test's own."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from windloom.engine.budget import Decision, Scheduling, no_costs
from windloom.engine.round import Round, RoundTuples
from windloom.model.time import TICK_MIN
from windloom.optimizer.plan_cost import AnswerCost
from windloom.plan.plan import Plan
from windloom.rounds.choose import AnswerUnit, due_windows, units_of
from windloom.weave.round_input import RoundInput


class RandomScheduling(Scheduling):
    """Postpones whatever it likes, in whole or in part; seldom nothing at all."""

    def __init__(self, seed: int) -> None:
        super().__init__(no_costs, budget=1.0)
        self._rng = random.Random(seed)

    def decide(self, round: Round, given: RoundInput, intake: RoundTuples, elapsed: float) -> Decision:
        if intake.ends or intake.everything:
            return Decision()
        found = {}
        for _, due in due_windows(round.plan, round.state, given, units_of(round.plan)):
            if self._rng.random() < 0.7 and due.planned.name not in intake.must:
                cut = due.end_of(self._rng.randint(1, due.windows))
                found[due.planned.name] = self._rng.choice([TICK_MIN, TICK_MIN, cut])
        return Decision(found)


def flat_costs(passing: float, window: float, own: Mapping[str, float] | None = None) -> object:
    """The same costs for all units; `own` multiplies those of some, by the name of their first query."""

    def costs(plan: Plan, units: Sequence[AnswerUnit]) -> Sequence[AnswerCost]:
        factors = [(own or {}).get(unit.name, 1.0) for unit in units]
        return [AnswerCost(factor * passing, factor * window) for factor in factors]

    return costs
