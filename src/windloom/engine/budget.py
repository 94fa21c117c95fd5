"""Decides which windows a round answers within its budget, and learns from rounds how long answers take.

The decision is made before anything is answered, from predicted costs, and is part of the round's log: a repeated round
answers the same. Reading, logging and merging are never postponed; the time that they took is already spent.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from windloom.answers.blocks import Stopwatch
from windloom.engine.round import Round, RoundTuples
from windloom.model.time import TICK_MIN, TICKS_PER_SECOND
from windloom.optimizer.plan_cost import AnswerCost
from windloom.plan.plan import Plan
from windloom.rounds.choose import (
    AnswerUnit,
    DueWindows,
    choose,
    due_windows,
    reported_windows,
    tasks_of,
    units_of,
)
from windloom.rounds.schedules import DEFAULT_SCHEDULE, Task, find_schedule
from windloom.sinks.round_rows import Outcome
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

#: The least share of a budget that is left for answers, however long taking in has taken.
LEAST_SHARE = 0.25
#: How many rounds are learned from; one that is r rounds old weighs e^(−0.25·r), as for other estimates.
LEARNED_ROUNDS, DECAY = 16, 0.78
#: The costs of units are predicted again after this many rounds, with what the rounds have shown meanwhile.
PREDICTED_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Costs:
    """Predicted costs of units and their corrections; a second of a unit makes the round longer by `share` seconds."""

    units: Sequence[AnswerCost]
    ratios: Sequence[float]
    share: float

    def seconds(self, tasks: Sequence[tuple[Task, int]]) -> float:
        number = tasks[0][0].group
        windows = sum(count * len(task.names) for task, count in tasks)
        return self.share * self.ratios[number] * self.units[number].seconds(windows)


@dataclass(frozen=True, slots=True)
class Decision:
    """The windows that a round answers; `predicted` are seconds by unit, as the cost model alone predicts them."""

    postponed: Mapping[str, int] = field(default_factory=dict)
    predicted: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0  # predicted for its answers
    wanted: float = 0.0  # predicted if it answered everything


@dataclass(frozen=True, slots=True)
class MeasuredAnswers:
    """Seconds of a round: predicted and measured by unit, measured for all answers, and measured for the rest."""

    units: Mapping[str, tuple[float, float]]
    answers: float
    rest: float

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "units": {name: list(unit) for name, unit in self.units.items()}}

    @classmethod
    def from_json(cls, about: Mapping[str, Any]) -> MeasuredAnswers:
        units = {name: (predicted, measured) for name, (predicted, measured) in about["units"].items()}
        return cls(units, about["answers"], about["rest"])


@dataclass(frozen=True, slots=True)
class DeadlineRecord:
    """How a query has kept its deadlines: windows answered, late windows, seconds by which the latest was late."""

    windows: int = 0
    late: int = 0
    worst: float = 0.0


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """Figures of a round: windows left to later rounds, by query; late windows, by query; the number of windows."""

    postponed: Mapping[str, int]
    late: Mapping[str, Mapping[str, float]]
    windows: int
    late_windows: int


class AnswerTimes:
    """Decayed means over the last rounds: how much longer units take than predicted, and what else a round takes."""

    def __init__(self) -> None:
        self._rounds: deque[MeasuredAnswers] = deque(maxlen=LEARNED_ROUNDS)

    def add(self, measured: MeasuredAnswers) -> None:
        self._rounds.appendleft(measured)

    @property
    def rest(self) -> float:
        """Seconds that a round takes after its decision, besides answering."""
        return _mean([round_.rest for round_ in self._rounds])

    @property
    def length(self) -> float:
        """Seconds of the answers and of the rest together."""
        return _mean([round_.rest + round_.answers for round_ in self._rounds])

    def share(self) -> float:
        """Return how many seconds a second of a unit adds to a round: below 1 if units run at the same time."""
        pairs = [(sum(measured for _, measured in round_.units.values()), round_.answers) for round_ in self._rounds]
        took, whole = _weighed([first for first, _ in pairs]), _weighed([second for _, second in pairs])
        return min(4.0, whole / took) if took > 1e-3 else 1.0

    def ratios(self, names: Sequence[str]) -> list[float]:
        """Return measured over predicted seconds of each unit; units never measured take the ratio of all units."""
        totals: dict[str, tuple[float, float]] = {}
        for age, round_ in enumerate(self._rounds):
            for name, (predicted, measured) in round_.units.items():
                known = totals.get(name, (0.0, 0.0))
                totals[name] = (known[0] + DECAY**age * predicted, known[1] + DECAY**age * measured)
        every = (sum(total for total, _ in totals.values()), sum(total for _, total in totals.values()))
        usual = _ratio(*every, 1.0)
        return [_ratio(*totals.get(name, (0.0, 0.0)), usual) for name in names]


class Scheduling:
    """Without a budget, every round answers everything. `costs` predicts the cost of each unit of a plan."""

    def __init__(
        self,
        costs: Callable[[Plan, Sequence[AnswerUnit]], Sequence[AnswerCost]],
        budget: float | None = None,
        schedule: str = DEFAULT_SCHEDULE,
        round_seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`round_seconds` is how far event time advances in a round, in seconds."""
        self.budget, self.schedule = budget, find_schedule(schedule)
        self.learned = AnswerTimes()
        self._predict, self.round_seconds = costs, round_seconds
        self._costs: tuple[Plan, int, list[AnswerUnit], Sequence[AnswerCost]] | None = None
        self._passed: dict[str, int] = {}
        #: The tick from which deadlines count, by query: up to where the query was closed after its first round.
        self.counting_from: dict[str, int] = {}
        #: How deadlines have been kept since this process began, by query.
        self.kept: dict[str, DeadlineRecord] = {}

    def decide(self, round: Round, given: RoundInput, intake: RoundTuples, elapsed: float) -> Decision:
        """Decide which windows a round answers, `elapsed` seconds after it has begun."""
        plan, state = round.plan, round.state
        units, predicted = self._units(plan, round.number)
        due = list(due_windows(plan, state, given, units))
        names = {planned.name for planned in plan.queries}
        self.kept = {name: kept for name, kept in self.kept.items() if name in names}
        self.counting_from = {name: tick for name, tick in self.counting_from.items() if name in names}
        for _, due_query in due:
            if due_query.planned.name in state.fresh:
                self.counting_from[due_query.planned.name] = due_query.closed
            self.counting_from.setdefault(due_query.planned.name, due_query.closed)
        if self.budget is None or intake.ends or intake.everything or not due:
            self._passed = {}
            return Decision({}, _predicted(units, predicted, due, {}))
        costs = Costs(predicted, self.learned.ratios([unit.name for unit in units]), self.learned.share())
        tasks = tasks_of(due, elapsed, self.counting_from, self._passed)
        must = [task for task in tasks if intake.must.intersection(task.names)]
        spent = sum(costs.seconds([(task, task.windows)]) for task in must)
        left = max(self.budget - elapsed - self.learned.rest - spent, LEAST_SHARE * self.budget)
        # Seconds until the next round is done, if it is like the last ones.
        until_next = max(self.round_seconds(), elapsed + self.learned.length)
        chosen = choose([task for task in tasks if task not in must], self.schedule, costs, left, until_next)
        answered = {**chosen.windows, **{task: task.windows for task in must}}
        postponed = {  # after which tick the windows of a query that is not answered entirely are left
            due_query.planned.name: due_query.end_of(windows) if windows else TICK_MIN
            for task, every in tasks.items()
            for windows in [answered.get(task, 0)]
            for due_query in every
            if windows < due_query.windows
        }
        self._passed = {
            name: self._passed.get(name, 0) + 1 for task in tasks if task not in answered for name in task.names
        }
        return Decision(
            postponed, _predicted(units, predicted, due, postponed), chosen.seconds + spent, chosen.wanted + spent
        )

    def told(self, plan: Plan, before: State, after: State, elapsed: float) -> AnswerFigures:
        """Return the figures of a round that took `elapsed` seconds.

        With a budget, the deadlines of all queries count; without one, only deadlines that queries name.
        """
        units, _ = self._units(plan, 0)
        postponed: dict[str, int] = {}
        late: dict[str, dict[str, float]] = {}
        windows = late_windows = 0
        for due, left in reported_windows(units, before, after):
            query = due.planned.query
            if left:
                postponed[query.name] = left
            if self.budget is None and query.urgency.within_ticks is None:
                continue
            answered = replace(due, windows=due.windows - left)
            windows += answered.windows
            now = due.closed + int(elapsed * TICKS_PER_SECOND)
            count, worst = (
                answered.late(now, self.counting_from.get(query.name, TICK_MIN)) if answered.windows else (0, 0)
            )
            kept = self.kept.get(query.name, DeadlineRecord())
            self.kept[query.name] = DeadlineRecord(
                kept.windows + answered.windows, kept.late + count, max(kept.worst, worst)
            )
            if count:
                late[query.name] = {"windows": count, "seconds": round(worst, 3)}
                late_windows += count
        return AnswerFigures(postponed, late, windows, late_windows)

    def _units(self, plan: Plan, number: int) -> tuple[list[AnswerUnit], Sequence[AnswerCost]]:
        known = self._costs
        if known is None or known[0] is not plan or number - known[1] >= PREDICTED_ROUNDS:
            units = units_of(plan)
            known = self._costs = (plan, number, units, self._predict(plan, units))
        return known[2], known[3]


class BudgetDecision:
    """The decision of one round, made when its input is known, and the seconds that its answers really took."""

    def __init__(self, scheduling: Scheduling, round: Round, intake: RoundTuples, watch: Stopwatch) -> None:
        self._scheduling, self._round, self._intake, self._watch = scheduling, round, intake, watch
        self._made: tuple[Decision, float] | None = None

    def __call__(self, given: RoundInput) -> Mapping[str, int]:
        elapsed = self._watch.elapsed
        decision = self._scheduling.decide(self._round, given, self._intake, elapsed)
        self._made = (decision, elapsed)
        return decision.postponed

    def measured(self, outcome: Outcome) -> MeasuredAnswers | None:
        """Return the seconds that answers took; None if the round was logged before, or answered nothing."""
        if self._made is None or not outcome.took:
            return None
        decision, elapsed = self._made
        # Row queries are never postponed, so their time is part of the rest.
        rows = {planned.name for planned in self._round.plan.rows}
        units = {
            name: (decision.predicted.get(name, 0.0), seconds)
            for name, seconds in outcome.took.items()
            if name not in rows
        }
        # Shards answer in tasks, several at a time, before sinks are given the rows.
        answers = self._watch.seconds.get("answers", 0.0)
        answers = max(0.0, answers - sum(seconds for name, seconds in outcome.took.items() if name in rows))
        return MeasuredAnswers(units, answers, max(0.0, self._watch.elapsed - elapsed - answers))


def no_costs(plan: Plan, units: Sequence[AnswerUnit]) -> Sequence[AnswerCost]:
    """Return no costs, for runs without a budget."""
    return [AnswerCost(0.0, 0.0)] * len(units)


def _predicted(
    units: Sequence[AnswerUnit],
    costs: Sequence[AnswerCost],
    due: Sequence[tuple[int, DueWindows]],
    postponed: Mapping[str, int],
) -> dict[str, float]:
    windows: dict[int, int] = {}
    for number, due_query in due:
        until = postponed.get(due_query.planned.name)
        count = due_query.windows
        if until is not None:
            slide = due_query.planned.query.window.slide_ticks
            count = 0 if until == TICK_MIN else (until - due_query.first_end) // slide + 1
        if count:
            windows[number] = windows.get(number, 0) + count
    return {units[number].name: costs[number].seconds(count) for number, count in windows.items()}


def _weighed(values: Sequence[float]) -> float:
    return sum(DECAY**age * value for age, value in enumerate(values))


def _mean(values: Sequence[float]) -> float:
    return _weighed(values) / _weighed([1.0] * len(values)) if values else 0.0


def _ratio(predicted: float, measured: float, usual: float) -> float:
    """Return measured over predicted seconds, within bounds; `usual` for a unit that takes only microseconds."""
    return min(1e3, max(1e-2, measured / predicted)) if predicted > 1e-6 and measured > 0 else usual


class Questioners:
    """Counts the questions that are being answered: rounds wait for them, because questions come first.

    `patience` is how many seconds in all a round waits for questions; without a budget, it does not wait.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self._patience = patience
        self._active = 0
        self._changed = threading.Condition()
        self._left = patience

    @contextmanager
    def asking(self) -> Iterator[None]:
        with self._changed:
            self._active += 1
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def round_begins(self) -> None:
        """Give the round that begins all its patience."""
        with self._changed:
            self._left = self._patience

    def give_way(self) -> None:
        """Wait until no question is being answered, or patience is over."""
        if not self._patience:
            return
        with self._changed:
            begun = time.monotonic()
            self._changed.wait_for(lambda: self._active == 0, timeout=max(0.0, self._left))
            self._left -= time.monotonic() - begun
