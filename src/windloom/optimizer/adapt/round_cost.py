"""The predicted cost of a plan per round (seconds of each stage, and bytes of memory), and its correction.

Constants are measured on a quiet machine, with warm caches, technique by technique. What a loom takes differs from
that, because of its data, of what else the machine does, and of what formulas leave out (Spark's scheduling, Python
between kernels, sinks). So each stage of a round has a line `constant + factor · predicted`, fitted to the last rounds.
Rounds that are alike cannot tell the two apart: the fit stays as near as it can to no constant and a factor of 1, so
that short rounds explain constants and long ones factors. Rounds weigh less the older they are.

Each way of taking tuples in has a line of its own, fitted to the last rounds that went that way. A way that was not
tried has no line, and the line of another way does not fit it: carried over unchanged, a constant that belongs to
Spark's aggregation would be added to what kernels take, and hide how much faster they are. So half of a constant is
taken to belong to the machine, which all ways share, and half to the way; the latter then scales with the prediction.
The older the rounds that went some way are, the less its own line counts against that.

`rest` is a mean: what rounds take besides these stages. Bytes of kept cells have a factor. The model assumes that
windows are full; while a stream is younger than its longest window, less is kept, and the step takes proportionally
less.

Nothing here changes what a prediction is made from: it is made before the round, with estimates from earlier rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from math import exp
from operator import add

import numpy as np

from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.seconds import columns_of, keeping_cost
from windloom.optimizer.intake.cost import scan_bytes, scan_cost
from windloom.optimizer.joins.plan import fold_seconds
from windloom.optimizer.plan_cost import estimate_trees, idle_sides
from windloom.optimizer.rows import row_round_seconds
from windloom.plan.costs import Choices
from windloom.plan.plan import PartialSet, Plan
from windloom.statistics.estimates import ROUNDS

_BYTES = 8.0
#: The stages of a round as the loop measures them, by the stage of the model that predicts them.
MEASURED = {"intake": ("partials", "rows"), "step": ("step",), "answers": ("answers",)}
#: Not part of what a round takes by itself: it waits for something else.
_WAITING = "waiting"
#: How fast the weight of older rounds decreases. What rounds take is noisier than what they bring, so more of them are
#: averaged.
DECAY = 0.25
#: How unusual constants (in seconds) and factors are: the fit departs from 0 and 1 by as little as rounds allow.
_CONSTANT, _FACTOR = 0.2, 1.0
#: The weight of that, compared with one round.
_PRIOR = 0.01
#: The weight of what is known from other ways, compared with one round that went this way.
_ELSEWHERE = 0.05
#: The share of a constant that is taken to belong to the machine, for a way that was not tried.
_SHARED = 0.5
#: The number of ways of taking tuples in whose rounds are remembered: those that were tried last.
_MOST_WAYS = 4


@dataclass(frozen=True, slots=True)
class RoundCost:
    """The seconds of one round, by stage.

    `intake` reads tuples and makes them into cells; `step` merges these with the cells that are kept; `answers` answers
    windows, folds joins and makes the rows of windows. `rest` does not depend on the tuples: Spark's jobs, logs and
    commits. `held` are the bytes of cells that are kept from round to round, `taken` the bytes that a round brings.
    """

    intake: float = 0.0
    step: float = 0.0
    answers: float = 0.0
    rest: float = 0.0
    held: float = 0.0
    taken: float = 0.0

    @property
    def seconds(self) -> float:
        return self.intake + self.step + self.answers + self.rest

    @property
    def nbytes(self) -> float:
        return self.held + self.taken

    @property
    def stages(self) -> Mapping[str, float]:
        """The seconds that depend on the tuples, by stage."""
        return {"intake": self.intake, "step": self.step, "answers": self.answers}

    def __add__(self, other: RoundCost) -> RoundCost:
        return RoundCost(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class SetCost:
    """What a set takes in a round once its tuples are there, and the bytes of its cells."""

    step: float
    answers: float
    held: float


class SetCosts:
    """The costs of sets that were predicted before: with one figure changed, most sets of a plan stay as they were."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], SetCost] = {}
        self._trees: dict[int, tuple[object, object]] = {}

    def of(self, partial_set: PartialSet, constants: Constants, idle: frozenset[str]) -> SetCost:
        """`idle` are sides of joins that are not answered."""
        # Trees are known by what they differ in; plans of the same queries have many trees in common.
        trees = partial_set.trees
        if id(trees) not in self._trees:  # the trees are kept too, so that no other object gets their id
            names = tuple((tuple(planned.name for planned in tree.queries), tree.techniques) for tree in trees)
            self._trees[id(trees)] = trees, names
        key = (partial_set.number, self._trees[id(trees)][1], idle, *partial_set.statistics.amounts)
        if key not in self._known:
            statistics, length = partial_set.statistics, partial_set.statistics.round_length
            edges, components = partial_set.edges.edges_per_second, partial_set.components
            step = keeping_cost(constants.scaled(statistics.pace), statistics, edges, components) * length
            seconds = statistics.kept_seconds + statistics.round_seconds
            cells = float(statistics.cells_per_second(np.array([edges]))[0]) * seconds
            # Windows were answered from these cells; a list grows by a value per tuple.
            lists = sum(planned.family.is_list for planned in components)
            listed = lists * statistics.events_per_second * seconds * 1.5 * _BYTES
            held = cells * _BYTES * (1 + columns_of(components)) + listed
            self._known[key] = SetCost(step, estimate_trees(partial_set, constants, idle) * length, held)
        return self._known[key]


def round_cost(plan: Plan, constants: Constants, known: SetCosts | None = None) -> RoundCost:
    """Return the cost that the calibrated model predicts from the statistics that the plan carries.

    `known` has costs of sets that were predicted with the same constants, and remembers those that are predicted now.
    """
    known = SetCosts() if known is None else known
    idle = idle_sides(plan)
    sets = [known.of(partial_set, constants, idle) for partial_set in plan.sets]
    step = sum(set_cost.step for set_cost in sets)
    answers = sum(set_cost.answers for set_cost in sets)
    folds = fold_seconds(plan.joins, plan.sets, constants)
    answers += sum(folds[join.name] * plan.sets[join.sides[0].set].statistics.round_length for join in plan.joins)
    answers += sum(row_round_seconds(planned_rows, constants) for planned_rows in plan.rows)
    rest = constants.seconds("job") * (bool(plan.sets) + bool(plan.rows))
    scans = [(scan, [plan.sets[fed.number] for fed in scan.feeds]) for scan in plan.scans if scan.feeds]
    shared = sum(scan_cost(scan, fed, constants).total * fed[0].statistics.round_length for scan, fed in scans)
    taken = sum(scan_bytes(scan, fed) * fed[0].statistics.round_seconds for scan, fed in scans)
    return RoundCost(shared - step, step, answers, rest, sum(set_cost.held for set_cost in sets), taken)


#: How tuples are taken in, by stream.
Ways = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """What a stage takes if `seconds` are predicted: a constant and a factor."""

    constant: float = 0.0
    factor: float = 1.0

    def __call__(self, seconds: float) -> float:
        return self.constant + self.factor * seconds

    def elsewhere(self, seconds: float) -> Line:
        """Return the line to expect where only part of the constant holds; it is equal if `seconds` are predicted.

        >>> Line(0.2, 2.0).elsewhere(0.1), Line(0.2, 2.0).elsewhere(0.1)(0.1)
        (Line(constant=0.1, factor=3.0), 0.4)
        """
        own = (1 - _SHARED) * self.constant
        return Line(self.constant - own, self.factor + own / max(seconds, 1e-9))


@dataclass(frozen=True, slots=True)
class MeasuredRound:
    """What the model predicted of a round, and the seconds that its stages took."""

    predicted: RoundCost
    seconds: Mapping[str, float]
    intake: Ways
    state_bytes: float = 0.0  # kept after it

    def stage(self, name: str) -> float:
        return sum(self.seconds.get(measured, 0.0) for measured in MEASURED[name])

    @property
    def total(self) -> float:
        return sum(seconds for name, seconds in self.seconds.items() if name != _WAITING)

    @property
    def fullness(self) -> float:
        """The bytes that were kept, as a share (or multiple) of what the model predicts once windows are full."""
        return self.state_bytes / self.predicted.held if self.state_bytes > 0 and self.predicted.held > 0 else 1.0

    def modelled(self, name: str) -> float:
        """Return the seconds that the model predicts for a stage; `intake` includes Spark's jobs."""
        seconds = self.predicted.stages[name]
        return seconds + self.predicted.rest if name == "intake" else seconds * (self.fullness if name == "step" else 1)

    @property
    def rest(self) -> float:
        return self.total - sum(self.stage(name) for name in MEASURED)


class Correction:
    """Corrects predictions by what rounds took; never changed in place, so that another thread may read it."""

    def __init__(self, rounds: Iterable[MeasuredRound] = (), ages: Iterable[int] | None = None) -> None:
        """`rounds` are newest first, and without gaps if no `ages` are given.

        Without any rounds, predictions stay as they are.
        """
        self._rounds = _remembered(enumerate(rounds) if ages is None else zip(ages, rounds, strict=True))
        every = [(measured, exp(-DECAY * age)) for age, measured in self._rounds]
        pairs = [(measured, exp(-DECAY * age)) for age, measured in self._rounds if age < ROUNDS]
        held, weights = [measured for measured, _ in pairs], [weight for _, weight in pairs]
        self.lines = {name: _fitted(name, pairs) for name in MEASURED}
        self.untried = self.lines["intake"].elsewhere(held[0].modelled("intake")) if held else Line()
        self.intakes: dict[Ways, Line] = {}
        for intake in {measured.intake for _, measured in self._rounds}:
            own = [(measured, weight) for measured, weight in every if measured.intake == intake]
            newest, known = own[0][1], sum(weight for _, weight in own)
            line = _fitted("intake", [(measured, weight / newest) for measured, weight in own])
            share, untried = _ELSEWHERE / (_ELSEWHERE + known), self.untried
            self.intakes[intake] = Line(
                line.constant + share * (untried.constant - line.constant),
                line.factor + share * (untried.factor - line.factor),
            )
        self.rest = sum(measured.rest * weight for measured, weight in pairs) / sum(weights) if held else 0.0
        kept = sum(measured.state_bytes * weight for measured, weight in pairs)
        expected = sum(measured.predicted.held * weight for measured, weight in pairs)
        self.held = kept / expected if kept > 0 and expected > 0 else 1.0
        self.fullness = held[0].fullness if held else 1.0

    def after(self, measured: MeasuredRound) -> Correction:
        """Return the correction after one more round."""
        rounds = (measured, *(older for _, older in self._rounds))
        return Correction(rounds, (0, *(age + 1 for age, _ in self._rounds)))

    @property
    def rounds(self) -> int:
        """The number of rounds that stages are fitted to."""
        return sum(age < ROUNDS for age, _ in self._rounds)

    def __call__(self, cost: RoundCost, choices: Choices) -> RoundCost:
        """Return what a round is expected to take if the model predicts `cost` for a plan with these choices."""
        if not self._rounds:
            return cost
        intake = self.intakes.get(intake_of(choices), self.untried)
        return replace(
            cost,
            intake=intake(cost.intake + cost.rest),
            step=self.lines["step"](cost.step * self.fullness),
            answers=self.lines["answers"](cost.answers),
            rest=self.rest,
            held=self.held * cost.held,
        )


def intake_of(choices: Choices) -> Ways:
    return tuple(sorted(choices.options_of("intake").items()))


def _remembered(rounds: Iterable[tuple[int, MeasuredRound]]) -> tuple[tuple[int, MeasuredRound], ...]:
    """Return the last rounds of each of the ways that were tried last."""
    left: dict[Ways, int] = {}
    kept = []
    for age, measured in rounds:
        if measured.intake not in left and len(left) == _MOST_WAYS:
            continue
        left[measured.intake] = left.get(measured.intake, ROUNDS) - 1
        if left[measured.intake] >= 0:
            kept.append((age, measured))
    return tuple(kept)


def _fitted(stage: str, rounds: Iterable[tuple[MeasuredRound, float]]) -> Line:
    """Return the line with the least squared relative error over weighted rounds, near no correction."""
    # Normal equations of: Σ w·((c + f·p − m) / m)² + prior·((c / constant)² + ((f − 1) / factor)²)
    a, b, d = _PRIOR / _CONSTANT**2, 0.0, _PRIOR / _FACTOR**2
    x, y = 0.0, _PRIOR / _FACTOR**2
    for round_, weight in rounds:
        measured = round_.stage(stage)
        if measured <= 1e-6:
            continue
        predicted = round_.modelled(stage)
        share = weight / measured**2
        a, b, d = a + share, b + share * predicted, d + share * predicted**2
        x, y = x + share * measured, y + share * predicted * measured
    determinant = a * d - b * b
    constant, factor = (d * x - b * y) / determinant, (a * y - b * x) / determinant
    if factor < 0.0:
        return Line(x / a, 0.0)
    return Line(constant, factor) if constant >= 0.0 else Line(0.0, y / d)
