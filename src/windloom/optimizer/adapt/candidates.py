"""Candidates: the plans that compete at one point of the space of estimates, best first.

The first is what the optimizer makes for that point. The others differ from it in one thing: options of switches whose
cost is predicted, one tree per set instead of several, the usual techniques instead of others. A candidate that is
better in the objective replaces it, until none is.

As for options, the plans that compete are those that differ from the best one in one option, and those that have one
option everywhere. Utilities are relative to the least seconds and bytes of all candidates: if only the neighbours of a
plan were candidates, which plan is best would depend on where the search began.

What can be switched between two rounds, besides trees and techniques, is a *switch*: a new one is one line in the
table below. It has options for each stream, or join, that it is about. Whatever its option, a plan gives equal rows
from equal state, so no switch loses anything; only time and memory differ. `Choices` has the options of a plan, and
the stage of `make_plan` that decides consults them first.

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

from windloom.kernels.techniques.registry import choose_technique
from windloom.model.stream import JoinKind
from windloom.optimizer.adapt.basins import Basin
from windloom.optimizer.adapt.objective import BestCosts, Objective
from windloom.optimizer.adapt.round_cost import RoundCost, SetCosts
from windloom.optimizer.intake.choose import intake_obstacle, intakes_of
from windloom.optimizer.joins.plan import possible_folds
from windloom.optimizer.rows import ROW_ORDER, write_orders
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


@dataclass(frozen=True, slots=True)
class Switch:
    """One kind of choice: the option of each stream or join in a plan, and all options of one of them.

    `recompiles` says whether Spark must compile new code for another option, `is_varied` whether options that
    the optimizer has not chosen are tried.
    """

    name: str
    in_force: Callable[[Plan], Mapping[str, str]]
    options: Callable[[Plan, str], Sequence[str]]
    recompiles: bool = False
    is_varied: bool = False


def _intakes(plan: Plan, stream: str) -> Sequence[str]:
    # Sides of joins that were asked for early, or late, stay so.
    if plan.intake != "auto" or plan.join_plan != "auto":
        return (intakes_of(plan)[stream],)
    return ("woven",) if intake_obstacle(plan, stream) is not None else ("woven", "native")


def _folds(plan: Plan, name: str) -> Sequence[str]:
    join = next(planned for planned in plan.joins if planned.name == name)
    return (join.fold,) if plan.fold != "auto" else possible_folds(join, plan.sets)


def _orders(plan: Plan, name: str) -> Sequence[str]:
    """Return the orders of links in which everything that hangs on a child is folded before the child itself."""
    join = next(planned for planned in plan.joins if planned.name == name).join
    hanging = [{i for i, each in enumerate(join.links) if each.parent == link.child} for link in join.links]
    orders = (
        " ".join(map(str, order))
        for order in permutations(range(len(join.links)))
        if all(hanging[number] <= set(order[:position]) for position, number in enumerate(order))
    )
    return list(islice(orders, MOST_ORDERS))


def _row_orders(plan: Plan, name: str) -> Sequence[str]:
    rows = next(planned for planned in plan.rows if planned.name == name).rows
    possible = []
    for selection in rows.selections:  # only one order if a LEFT join is among the strands
        is_free = all(attached.kind is JoinKind.INNER for attached in selection.attached)
        every = range(selection.joined)
        possible.append(islice(permutations(every) if is_free else [tuple(every)], MOST_ORDERS))
    return [write_orders(orders) for orders in islice(product(*possible), MOST_ORDERS)]


_ALL = (
    Switch("intake", intakes_of, _intakes, recompiles=True, is_varied=True),
    Switch(
        "log",
        lambda plan: {x.stream: x.log for x in plan.scans if isinstance(x, WovenScan) and x.counted_by is None},
        lambda plan, stream: LOGS,
    ),
    Switch("fold", lambda plan: {join.name: join.fold for join in plan.joins}, _folds),
    Switch("order", lambda plan: {join.name: " ".join(map(str, join.order)) for join in plan.joins}, _orders),
    Switch(
        ROW_ORDER,
        lambda plan: {rows.name: write_orders(rows.orders) for rows in plan.rows},
        _row_orders,
        recompiles=True,
    ),
)
SWITCHES: dict[str, Switch] = {switch.name: switch for switch in _ALL}


def choices_of(plan: Plan) -> Choices:
    """Return all that a plan has chosen; `make_plan` with these makes the same plan again."""
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
    """Return whether Spark must compile new code when a round with the second plan follows a round with the first."""
    changed = {switch for switch, _, _ in set(before.options) ^ set(after.options)}
    return any(SWITCHES[name].recompiles for name in changed)


def compiled_for(choices: Choices) -> frozenset[tuple[str, str, str]]:
    """Return what Spark compiles code for: each option has a job of its own, whatever the plan's other options are."""
    return frozenset(option for option in choices.options if SWITCHES[option[0]].recompiles)


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
