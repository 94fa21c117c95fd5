"""The predicted cost of a plan per round: seconds of each stage, and bytes of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from windloom.optimizer.cost.calibrated import columns_of, keeping_cost
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.estimate import estimate_trees, idle_sides
from windloom.optimizer.intake.cost import scan_bytes, scan_cost
from windloom.optimizer.joins.folds import fold_seconds
from windloom.optimizer.rows.cost import row_round_seconds
from windloom.plan.physical import PartialSet, Plan, Tree

_BYTES = 8.0


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

    def between(self, ends: Sequence[tuple[RoundCost, float]]) -> RoundCost:
        """The cost at part of the way to each of these costs, in powers: 0 is here, and 1 is there.

        >>> RoundCost(1.0, held=2.0).between([(RoundCost(4.0, held=8.0), 0.5), (RoundCost(9.0), 0.5)])
        RoundCost(intake=6.0, step=0.0, answers=0.0, rest=0.0, held=4.0, taken=0.0)
        """
        found = {}
        for name in ("intake", "step", "answers", "held", "taken"):
            value = getattr(self, name)
            for cost, part in ends:
                end = getattr(cost, name)
                if value > 0 and end > 0:
                    value *= (end / getattr(self, name)) ** part
            found[name] = value
        return replace(self, **found)

    def __add__(self, other: RoundCost) -> RoundCost:
        return RoundCost(
            self.intake + other.intake,
            self.step + other.step,
            self.answers + other.answers,
            self.rest + other.rest,
            self.held + other.held,
            self.taken + other.taken,
        )


@dataclass(frozen=True, slots=True)
class SetCost:
    """What a set takes in a round once its tuples are there, and the bytes of its cells."""

    step: float
    answers: float
    held: float


class SetCosts:
    """The costs of sets that were predicted before.

    When a plan is predicted again and again with one figure changed, most of its sets stay as they were.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], SetCost] = {}
        self._trees: dict[int, tuple[object, object]] = {}

    def of(self, partial_set: PartialSet, constants: Constants, idle: frozenset[str]) -> SetCost:
        """`idle` are sides of joins that are not answered."""
        key = (partial_set.number, self._named(partial_set.trees), idle, *partial_set.statistics.amounts)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _set_cost(partial_set, constants, idle)
        return found

    def _named(self, trees: tuple[Tree, ...]) -> object:
        """A key for what trees of one set differ in; plans of the same queries have many trees in common."""
        found = self._trees.get(id(trees))
        if found is None:  # the trees are kept too, so that no other object gets their id
            names = tuple((tuple(planned.name for planned in tree.queries), tree.techniques) for tree in trees)
            found = self._trees[id(trees)] = trees, names
        return found[1]


def round_cost(plan: Plan, constants: Constants, known: SetCosts | None = None) -> RoundCost:
    """The cost that the calibrated model predicts from the statistics that the plan carries.

    `known` has costs of sets that were predicted with the same constants, and remembers those that are predicted now.
    """
    known = SetCosts() if known is None else known
    idle = idle_sides(plan)
    sets = [known.of(partial_set, constants, idle) for partial_set in plan.sets]
    step = sum(set_cost.step for set_cost in sets)
    answers = sum(set_cost.answers for set_cost in sets)
    folds = fold_seconds(plan.joins, plan.sets, constants)
    answers += sum(folds[join.name] * _length(plan.sets[join.sides[0].set]) for join in plan.joins)
    answers += sum(row_round_seconds(planned_rows, constants) for planned_rows in plan.rows)
    rest = constants.seconds("job") * (bool(plan.sets) + bool(plan.rows))
    scans = [(scan, [plan.sets[fed.number] for fed in scan.feeds]) for scan in plan.scans if scan.feeds]
    shared = sum(scan_cost(scan, fed, constants).total * _length(fed[0]) for scan, fed in scans)
    taken = sum(scan_bytes(scan, fed) * fed[0].statistics.round_seconds for scan, fed in scans)
    return RoundCost(shared - step, step, answers, rest, sum(set_cost.held for set_cost in sets), taken)


def _set_cost(partial_set: PartialSet, constants: Constants, idle: frozenset[str]) -> SetCost:
    return SetCost(
        _keeping(partial_set, constants),
        estimate_trees(partial_set, constants, idle) * _length(partial_set),
        _held(partial_set),
    )


def _length(partial_set: PartialSet) -> float:
    """The length of a round in seconds of event time."""
    return partial_set.statistics.round_length


def _keeping(partial_set: PartialSet, constants: Constants) -> float:
    scaled, statistics = constants.scaled(partial_set.statistics.pace), partial_set.statistics
    return keeping_cost(scaled, statistics, partial_set.edges.edges_per_second, partial_set.components) * _length(
        partial_set
    )


def _held(partial_set: PartialSet) -> float:
    """Bytes of the cells that windows were answered from; each tuple is taken to add a value to a list."""
    statistics = partial_set.statistics
    seconds = statistics.kept_seconds + statistics.round_seconds
    cells = float(statistics.cells_per_second(np.array([partial_set.edges.edges_per_second]))[0]) * seconds
    lists = sum(planned.family.is_list for planned in partial_set.components)
    listed = lists * statistics.events_per_second * seconds * 1.5 * _BYTES
    return cells * _BYTES * (1 + columns_of(partial_set.components)) + listed
