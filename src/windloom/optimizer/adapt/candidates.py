"""Candidates: the plans that compete at one point of the space of estimates, best first.

The first is what the optimizer makes for that point. The others differ from it in one thing: options of switches whose
cost is predicted, one tree per set instead of several, the usual techniques instead of others. A candidate that is
better in the objective replaces it, until none is.

As for options, the plans that compete are those that differ from the best one in one option, and those that have one
option everywhere. Utilities are relative to the least seconds and bytes of all candidates: if only the neighbours of a
plan were candidates, which plan is best would depend on where the search began.

What can be switched between two rounds, besides trees and techniques, is a *switch*: a new one is one class and one
line here. It has options for each stream, or join, that it is about. Whatever its option, a plan gives equal rows from
equal state, so no switch loses anything; only time and memory differ. `Choices` has the options of a plan, and the
stage of `make_plan` that decides consults them first.

| switch | about | options | another option costs |
|---|---|---|---|
| trees, techniques | a set | partitions of its queries; what the family permits | planning; trees cut no slice anew |
| intake | a stream | woven, native | Spark compiles other code, once |
| log | a woven stream | smaller, tuples, cells | nothing |
| fold | a join | the techniques of folds | nothing |
| order | a join | the orders of its links | nothing |
| row order | a row query | the orders of its strands | Spark compiles another job |

If the optimizer does not find the best option of a switch by itself, its options are tried one by one. Folds and
orders are chosen by the optimizer itself, by the predicted cost that candidates are compared by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations, product
from typing import Protocol

from windloom.kernels.techniques.registry import choose_technique
from windloom.model.join import Join
from windloom.optimizer.adapt.basins import Basin
from windloom.optimizer.adapt.objective import BestCosts, Objective
from windloom.optimizer.adapt.round_cost import RoundCost, SetCosts
from windloom.optimizer.intake.choose import intake_obstacle, intakes_of
from windloom.optimizer.joins.plan import possible_folds
from windloom.optimizer.rows import ROW_ORDER, possible_orders, write_orders
from windloom.plan.costs import Choices, TreeChoice
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan
from windloom.statistics.estimates import Estimates

#: What turns a model's prediction into one for this loom: see `round_cost.Correction`.
Corrected = Callable[[RoundCost, Choices], RoundCost]
#: Called between two steps of planning, so that a thread beside the rounds does not hold them up.
Pause = Callable[[], None]
#: A better candidate is varied again, at most this many times.
_MOST_STEPS = 4
#: Another candidate replaces the optimizer's own if its utility is less by this share.
_CLEARLY = 0.01
#: What the log of a round keeps of the tuples of a woven scan.
LOGS = ("smaller", "tuples", "cells")
#: At most this many orders of one join are options.
MOST_ORDERS = 24


class Switch(Protocol):
    """One kind of choice.

    `recompiles` says whether Spark must compile new code for another option, `is_varied` whether options that
    the optimizer has not chosen are tried.
    """

    name: str
    recompiles: bool
    is_varied: bool

    def in_force(self, plan: Plan) -> Mapping[str, str]:
        """The option of each stream or join that the plan has."""
        ...

    def options(self, plan: Plan, about: str) -> Sequence[str]:
        """All options of one of them, the present one included."""
        ...


class IntakeSwitch:
    """Whether Spark aggregates the tuples of a stream, or kernels do."""

    name, recompiles, is_varied = "intake", True, True

    def in_force(self, plan: Plan) -> Mapping[str, str]:
        return intakes_of(plan)

    def options(self, plan: Plan, about: str) -> Sequence[str]:
        # Sides of joins that were asked for early, or late, stay so.
        if plan.intake != "auto" or plan.join_plan != "auto":
            return (self.in_force(plan)[about],)
        return ("woven",) if intake_obstacle(plan, about) is not None else ("woven", "native")


class LogSwitch:
    """Whether the log keeps tuples or cells."""

    name, recompiles, is_varied = "log", False, False

    def in_force(self, plan: Plan) -> Mapping[str, str]:
        woven = (scan for scan in plan.scans if isinstance(scan, WovenScan))
        return {scan.stream: scan.log for scan in woven if scan.counted_by is None}

    def options(self, plan: Plan, about: str) -> Sequence[str]:
        return LOGS


class FoldSwitch:
    """How the sides of a join are matched."""

    name, recompiles, is_varied = "fold", False, False

    def in_force(self, plan: Plan) -> Mapping[str, str]:
        return {join.name: join.fold for join in plan.joins}

    def options(self, plan: Plan, about: str) -> Sequence[str]:
        join = next(planned_join for planned_join in plan.joins if planned_join.name == about)
        return (join.fold,) if plan.fold != "auto" else possible_folds(join, plan.sets)


class OrderSwitch:
    """The order in which the links of a join are folded."""

    name, recompiles, is_varied = "order", False, False

    def in_force(self, plan: Plan) -> Mapping[str, str]:
        return {join.name: " ".join(map(str, join.order)) for join in plan.joins}

    def options(self, plan: Plan, about: str) -> Sequence[str]:
        join = next(planned_join for planned_join in plan.joins if planned_join.name == about).join
        return [" ".join(map(str, order)) for order in islice(_orders(join), MOST_ORDERS)]


class RowOrderSwitch:
    """The order in which the strands of a row query are joined."""

    name, recompiles, is_varied = ROW_ORDER, True, False

    def in_force(self, plan: Plan) -> Mapping[str, str]:
        return {planned_rows.name: write_orders(planned_rows.orders) for planned_rows in plan.rows}

    def options(self, plan: Plan, about: str) -> Sequence[str]:
        rows = next(planned_rows for planned_rows in plan.rows if planned_rows.name == about).rows
        each = (islice(possible_orders(selection), MOST_ORDERS) for selection in rows.selections)
        return [write_orders(orders) for orders in islice(product(*each), MOST_ORDERS)]


_ALL: tuple[Switch, ...] = (IntakeSwitch(), LogSwitch(), FoldSwitch(), OrderSwitch(), RowOrderSwitch())
SWITCHES: dict[str, Switch] = {switch.name: switch for switch in _ALL}


def choices_of(plan: Plan) -> Choices:
    """All that a plan has chosen; `make_plan` with these makes the same plan again."""
    trees = []
    for partial_set in plan.sets:
        asked = {component for planned in partial_set.queries for component in planned.query.components}
        usual = [
            choose_technique(planned.family, plan.technique if planned.component in asked else "auto")
            for planned in partial_set.components
        ]
        for tree in partial_set.trees:
            named = zip(partial_set.components, tree.techniques, usual, strict=True)
            techniques = sorted((str(planned.component), mine) for planned, mine, other in named if mine != other)
            trees.append(TreeChoice(tuple(sorted(planned.name for planned in tree.queries)), tuple(techniques)))
    return Choices.of(trees, {switch.name: switch.in_force(plan) for switch in SWITCHES.values()})


def recompiling(before: Choices, after: Choices) -> bool:
    """Whether Spark must compile new code when a round with the second plan follows a round with the first."""
    changed = {switch for switch, _, _ in set(before.options) ^ set(after.options)}
    return any(SWITCHES[name].recompiles for name in changed)


def compiled_for(choices: Choices) -> frozenset[tuple[str, str, str]]:
    """What Spark compiles code for: each option has a job of its own, whatever the plan's other options are."""
    return frozenset(option for option in choices.options if SWITCHES[option[0]].recompiles)


def _orders(join: Join) -> Iterator[tuple[int, ...]]:
    """The orders in which everything that hangs on a child is folded before the child itself."""
    for order in permutations(range(len(join.links))):
        done: set[int] = set()
        for number in order:
            link = join.links[number]
            hanging = {other for other, each in enumerate(join.links) if each.parent == link.child}
            if not hanging <= done:
                break
            done.add(number)
        else:
            yield order


def as_predicted(cost: RoundCost, choices: Choices) -> RoundCost:
    """No correction."""
    return cost


def no_pause() -> None:
    """Does not pause: the caller waits for the result."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The choices of a plan, and the cost that the model predicts for it at some point."""

    choices: Choices
    cost: RoundCost


def candidates_at(
    basin: Basin,
    estimates: Estimates,
    objective: Objective,
    corrected: Corrected = as_predicted,
    pause: Pause = no_pause,
) -> tuple[Candidate, ...]:
    """Return the best plan for some estimates, and those that it was compared with, by utility."""
    plan, set_costs = basin.plan(estimates), SetCosts()
    pause()
    best = Candidate(choices_of(plan), basin.cost(plan, set_costs))
    candidates, plans = {best.choices: best}, {best.choices: plan}
    for _ in range(_MOST_STEPS):
        for wanted in dict.fromkeys(_variants(plan, best.choices)):
            if wanted in candidates:
                continue
            other = basin.plan(estimates, wanted)
            choices = choices_of(other)  # an option may bring others with it
            pause()
            if choices not in candidates:
                candidates[choices], plans[choices] = Candidate(choices, basin.cost(other, set_costs)), other
        first = ranked(list(candidates.values()), objective, corrected, best.choices)[0]
        if first is best:
            break
        best, plan = first, plans[first.choices]
    return tuple(ranked(list(candidates.values()), objective, corrected, best.choices))


def has_candidate(candidates: Iterable[Candidate], choices: Choices) -> bool:
    return any(candidate.choices == choices for candidate in candidates)


def with_candidate(
    candidates: Sequence[Candidate], choices: Choices, basin: Basin, estimates: Estimates
) -> tuple[Candidate, ...]:
    """Return the candidates for some estimates, with the plan that has these choices among them."""
    if has_candidate(candidates, choices):
        return tuple(candidates)
    return (*candidates, Candidate(choices, basin.cost(basin.plan(estimates, choices))))


def ranked(
    candidates: Sequence[Candidate], objective: Objective, corrected: Corrected, preferred: Choices | None = None
) -> list[Candidate]:
    """Return the candidates, best utility first; `preferred` comes first unless another one is clearly better."""
    costs = {candidate.choices: corrected(candidate.cost, candidate.choices) for candidate in candidates}
    least = BestCosts.of(list(costs.values()))

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
