"""Candidates: the plans that compete at one point of the space of estimates, best first.

The first is what the optimizer makes for that point. The others differ from it in one thing: options of switches whose
cost is predicted, one tree per set instead of several, the usual techniques instead of others. A candidate that is
better in the objective replaces it, until none is.

As for options, the plans that compete are those that differ from the best one in one option, and those that have one
option everywhere. Utilities are relative to the least seconds and bytes of all candidates: if only the neighbours of a
plan were candidates, which plan is best would depend on where the search began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from windloom.optimizer.adapt.basin import Basin
from windloom.optimizer.adapt.objective import Least, Objective
from windloom.optimizer.adapt.round_cost import RoundCost, SetCosts
from windloom.optimizer.adapt.switches import SWITCHES, choices_of
from windloom.plan.choices import Choices, TreeChoice
from windloom.plan.estimates import Estimates
from windloom.plan.physical import Plan

#: What turns a model's prediction into one for this loom: see `correction.py`.
Corrected = Callable[[RoundCost, Choices], RoundCost]
#: Called between two steps of planning, so that a thread beside the rounds does not hold them up.
Pause = Callable[[], None]
#: A better candidate is varied again, at most this many times.
_MOST_STEPS = 4
#: Another candidate replaces the optimizer's own if its utility is less by this share.
_CLEARLY = 0.01


def as_predicted(cost: RoundCost, choices: Choices) -> RoundCost:
    """No correction."""
    return cost


def no_pause() -> None:
    """Does not pause: the caller waits for the result."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The choices of a plan, and the cost that the model predicts for it at some point.

    `ends` are predicted costs elsewhere: for every dimension of a chart, where the part begins and where it ends.
    """

    choices: Choices
    cost: RoundCost
    ends: tuple[tuple[RoundCost, RoundCost], ...] = ()

    def at(self, places: Sequence[float]) -> Candidate:
        """The same at another point of the region: a place is −1 where its part begins, and 1 where it ends."""
        ways = [(pair[place > 0], abs(place)) for pair, place in zip(self.ends, places, strict=False)]
        return Candidate(self.choices, self.cost.between(ways), self.ends)


def candidates_at(
    basin: Basin,
    estimates: Estimates,
    objective: Objective,
    corrected: Corrected = as_predicted,
    pause: Pause = no_pause,
    plans: dict[Choices, Plan] | None = None,
    known: SetCosts | None = None,
) -> tuple[Candidate, ...]:
    """The best plan for some estimates, and those that it was compared with, by utility.

    `plans` receives the plan of each, and `known` the costs of their sets, most of which they have in common.
    """
    plan, plans, known = basin.plan(estimates), {} if plans is None else plans, known or SetCosts()
    pause()
    best = Candidate(choices_of(plan), basin.cost(plan, known))
    found = {best.choices: best}
    plans[best.choices] = plan
    for _ in range(_MOST_STEPS):
        for choices in dict.fromkeys(_variants(plan, best.choices)):
            if choices in found:
                continue
            other = basin.plan(estimates, choices)
            made = choices_of(other)  # an option may bring others with it
            pause()
            if made not in found:
                found[made], plans[made] = Candidate(made, basin.cost(other, known)), other
        first = ranked(list(found.values()), objective, corrected, best.choices)[0]
        if first is best:
            break
        best, plan = first, plans[first.choices]
    return tuple(ranked(list(found.values()), objective, corrected, best.choices))


def ranked(
    candidates: Sequence[Candidate], objective: Objective, corrected: Corrected, preferred: Choices | None = None
) -> list[Candidate]:
    """The candidates, best utility first; `preferred` comes first unless another one is clearly better."""
    costs = {candidate.choices: corrected(candidate.cost, candidate.choices) for candidate in candidates}
    least = Least.of(list(costs.values()))

    def key(candidate: Candidate) -> tuple[float, float, int]:
        cost = costs[candidate.choices]
        bonus = 1 - _CLEARLY if candidate.choices == preferred else 1.0
        return bonus * objective.utility(cost, least), cost.seconds, len(candidate.choices.trees)

    return sorted(candidates, key=key)


def _variants(plan: Plan, choices: Choices) -> Iterator[Choices]:
    for switch in SWITCHES.values():
        if switch.is_varied:
            options = {about: switch.options(plan, about) for about in switch.in_force(plan)}
            for about, possible in options.items():
                yield from (choices.with_option(switch.name, about, option) for option in possible)
            for option in dict.fromkeys(option for possible in options.values() for option in possible):
                everywhere = choices
                for about, possible in options.items():
                    if option in possible:
                        everywhere = everywhere.with_option(switch.name, about, option)
                yield everywhere
    if plan.strategy == "auto" and any(len(partial_set.trees) > 1 for partial_set in plan.sets):
        together = (tuple(sorted(planned.name for planned in partial_set.queries)) for partial_set in plan.sets)
        yield replace(choices, trees=tuple(sorted(TreeChoice(names) for names in together)))
    if plan.technique == "auto" and any(tree.techniques for tree in choices.trees):
        yield replace(choices, trees=tuple(TreeChoice(tree.queries) for tree in choices.trees))
