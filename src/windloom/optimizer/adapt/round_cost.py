"""What a plan is predicted to take per round: seconds of each stage, and bytes of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from windloom.optimizer.cost.calibrated import columns_of, keeping_cost
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.estimate import estimate_plan
from windloom.optimizer.intake.cost import scan_bytes
from windloom.optimizer.rows.cost import row_round_seconds
from windloom.plan.physical import PartialSet, Plan

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
        """The seconds that depend on what comes, by stage."""
        return {"intake": self.intake, "step": self.step, "answers": self.answers}

    def __add__(self, other: RoundCost) -> RoundCost:
        return RoundCost(
            self.intake + other.intake,
            self.step + other.step,
            self.answers + other.answers,
            self.rest + other.rest,
            self.held + other.held,
            self.taken + other.taken,
        )


def round_cost(plan: Plan, constants: Constants) -> RoundCost:
    """The cost that the calibrated model predicts from the statistics that the plan carries."""
    found = estimate_plan(plan, constants)
    step = sum(_keeping(partial_set, constants) for partial_set in plan.sets)
    shared = sum(set_seconds.shared * _length(plan.sets[i]) for i, set_seconds in enumerate(found.sets))
    answers = sum(
        tree.total * _length(plan.sets[i]) for i, set_seconds in enumerate(found.sets) for tree in set_seconds.trees
    )
    answers += sum(found.folds[join.name] * _length(plan.sets[join.sides[0].set]) for join in plan.joins)
    answers += sum(row_round_seconds(planned_rows, constants) for planned_rows in plan.rows)
    rest = constants.seconds("job") * (bool(plan.sets) + bool(plan.rows))
    taken = sum(_taken(plan, number) for number in range(len(plan.scans)))
    held = sum(_held(partial_set) for partial_set in plan.sets)
    return RoundCost(shared - step, step, answers, rest, held, taken)


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


def _taken(plan: Plan, number: int) -> float:
    scan = plan.scans[number]
    sets = [plan.sets[fed.number] for fed in scan.feeds]
    return scan_bytes(scan, sets) * sets[0].statistics.round_seconds if sets else 0.0
