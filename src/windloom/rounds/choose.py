"""Chooses what a round answers: everything if there is time for it, else the most urgent tasks that fit.

Tasks are taken by priority, and within a priority by deadline; among equals, the one that was passed over most often
comes first, which is round-robin. A task that does not fit is answered in part: its oldest windows. A task that was
passed over for many rounds comes before all others, but gets no more than a share of the time: no task starves, and no
task that is in time is made late by a backlog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.model.time import TICK_MAX, TICK_MIN, TICKS_PER_SECOND
from windloom.plan.plan import Plan, PlannedJoin, PlannedQuery
from windloom.rounds.schedules import JointCosts, Schedule, Task
from windloom.rounds.step import moved
from windloom.state.pending import can_wait
from windloom.state.state import State
from windloom.state.windows.registry import life_of
from windloom.weave.round_input import RoundInput

#: After this many rounds, a task that was passed over comes first, with this share of the time.
MOST_PASSES = 16
STARVING_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ChosenAnswers:
    """`windows` is the number of windows that each chosen task answers; `seconds` are predicted."""

    windows: Mapping[Task, int]
    seconds: float
    wanted: float  # seconds that everything would take


def choose(
    tasks: Sequence[Task], schedule: Schedule, costs: JointCosts, seconds: float, round_seconds: float
) -> ChosenAnswers:
    """Return the tasks to answer within `seconds`: at least one, unless all of them can wait."""
    everything = _Taking(costs)
    for task in tasks:
        everything.take(task, task.windows)
    wanted = everything.total
    if wanted <= seconds:
        return ChosenAnswers(everything.windows, wanted, wanted)
    taking = _Taking(costs)
    starving = max(
        (task for task in tasks if task.passed >= MOST_PASSES),
        key=lambda task: (task.passed, -task.slack),
        default=None,
    )
    if starving is not None:
        taking.take_part(starving, seconds * STARVING_SHARE, is_first=True)
    waiting = schedule.waits(tasks, costs, round_seconds)
    order = sorted(
        (task for task in tasks if task not in waiting and task is not starving),
        key=lambda task: (task.priority, task.slack, -task.passed, task.names),  # the most urgent first
    )
    for task in order:
        if task in taking.windows:
            continue
        if not taking.take_whole(task, seconds):
            taking.take_part(task, seconds, is_first=task is order[0])
            continue
        others = [candidate for candidate in order if candidate.group == task.group and candidate not in taking.windows]
        for other in schedule.together(task, others, round_seconds):
            taking.take_whole(other, seconds)
    return ChosenAnswers(taking.windows, taking.total, wanted)


class _Taking:
    """The tasks taken so far, and their cost."""

    def __init__(self, costs: JointCosts) -> None:
        self.windows: dict[Task, int] = {}
        self.total = 0.0
        self._costs = costs
        self._groups: dict[int, tuple[dict[Task, int], float]] = {}  # what was taken of each, and its cost

    def take(self, task: Task, windows: int) -> None:
        taken, before = self._groups.get(task.group, ({}, 0.0))
        cost = self._cost(task, windows)
        self.windows[task] = windows
        self._groups[task.group] = ({**taken, task: windows}, cost)
        self.total += cost - before

    def take_whole(self, task: Task, seconds: float) -> bool:
        """Take a task if all of it fits."""
        if self._with(task, task.windows) > seconds:
            return False
        self.take(task, task.windows)
        return True

    def take_part(self, task: Task, seconds: float, *, is_first: bool) -> None:
        """Take as many of its windows as fit; one in any case if it is the first."""
        low, high = 0, task.windows
        while low < high:
            middle = (low + high + 1) // 2
            if self._with(task, middle) <= seconds:
                low = middle
            else:
                high = middle - 1
        if low or is_first:
            self.take(task, max(1, low))

    def _with(self, task: Task, windows: int) -> float:
        """Return all seconds if a task were taken too."""
        _, before = self._groups.get(task.group, ({}, 0.0))
        return self.total - before + self._cost(task, windows)

    def _cost(self, task: Task, windows: int) -> float:
        taken, _ = self._groups.get(task.group, ({}, 0.0))
        return self._costs.seconds(
            [*((taken_task, count) for taken_task, count in taken.items() if taken_task is not task), (task, windows)]
        )


# The windows that a round could answer: those closed and not reported, and the tasks that they form.


@dataclass(frozen=True, slots=True)
class AnswerUnit:
    """Queries that are answered from the same cells in one pass: those of a tree, or joins with the same sides.

    `trees` are the trees that they read, by set and tree.
    """

    members: tuple[PlannedQuery | PlannedJoin, ...]
    trees: tuple[tuple[int, int], ...]

    @property
    def name(self) -> str:
        """The name of the first query, under which the unit is measured."""
        return self.members[0].name


@dataclass(frozen=True, slots=True)
class DueWindows:
    """Closed windows that a query has not reported: `windows` of them, the first of which ends at `first_end`."""

    planned: PlannedQuery | PlannedJoin
    first_end: int
    windows: int
    closed: int

    def end_of(self, windows: int) -> int:
        """Return where the last of the next `windows` windows ends."""
        return self.first_end + (windows - 1) * self.planned.query.window.slide_ticks

    def late(self, now: int, counting_from: int) -> tuple[int, float]:
        """Return how many windows are late if they are reported at `now`, and by how many seconds at most.

        Deadlines of windows that ended before `counting_from` are counted from there.
        """
        query = self.planned.query
        worst = now - query.deadline_ticks - max(self.first_end, counting_from)
        if worst <= 0:
            return 0, 0.0
        late = min(self.windows, -(-(now - query.deadline_ticks - self.first_end) // query.window.slide_ticks))
        return late, worst / TICKS_PER_SECOND


def units_of(plan: Plan) -> list[AnswerUnit]:
    """Return the units with a query that may wait."""
    units = [
        AnswerUnit(tree.answered, ((partial_set.number, tree.number),))
        for partial_set in plan.sets
        for tree in partial_set.trees
        if tree.answered
    ]
    families: dict[object, list[PlannedJoin]] = {}
    for join in filter(can_wait, plan.joins):
        families.setdefault(join.pairing if join.fold == SliceMatrix.name else join.sides, []).append(join)
    for joins in families.values():
        trees = dict.fromkeys((place.set, place.tree) for join in joins for place in join.sides)
        units.append(AnswerUnit(tuple(joins), tuple(trees)))
    return [unit for unit in units if any(map(can_wait, unit.members))]


def due_windows(
    plan: Plan, state: State, round_input: RoundInput, units: Sequence[AnswerUnit]
) -> Iterator[tuple[int, DueWindows]]:
    """Yield the queries that have windows to report in a round with this input, with the number of their unit."""
    after = moved(state, round_input, plan)
    for number, unit in enumerate(units):
        for planned in unit.members:
            due = _due(planned, state, after)
            if due is not None:
                yield number, due


def reported_windows(units: Sequence[AnswerUnit], before: State, after: State) -> Iterator[tuple[DueWindows, int]]:
    """Yield queries that had windows to report between two states, and how many they left to later rounds."""
    for unit in units:
        for planned in unit.members:
            due = _due(planned, before, after)
            if due is not None:
                until, slide = after.answered_by(planned.query), planned.query.window.slide_ticks
                answered = 0 if until < due.first_end else (until - due.first_end) // slide + 1
                yield due, due.windows - answered


def _due(planned: PlannedQuery | PlannedJoin, state: State, moved: State) -> DueWindows | None:
    query, window = planned.query, planned.query.window
    closed = moved.closed_over(query.inputs)
    # No window ends before the first tuple of its streams.
    first = [moved.first[stream] for stream in query.inputs if stream in moved.first]
    if not first or closed in (TICK_MIN, TICK_MAX):
        return None
    after = max(life_of(window).own_after(planned, state, state.answered_by(query)), min(first))
    residue = window.offset_ticks + window.range_ticks
    first_end = after + window.slide_ticks - (after - residue) % window.slide_ticks
    windows = (closed - first_end) // window.slide_ticks + 1
    return DueWindows(planned, first_end, windows, closed) if windows > 0 else None


def tasks_of(
    due: Sequence[tuple[int, DueWindows]], elapsed: float, counting_from: Mapping[str, int], passed: Mapping[str, int]
) -> dict[Task, list[DueWindows]]:
    """Return the tasks of a round, `elapsed` seconds after it has begun, and which windows each consists of.

    By query, `counting_from` is the tick from which deadlines count, `passed` how many rounds have passed it over.
    """
    due_by_key: dict[tuple[int, int, int, int], list[DueWindows]] = {}
    for number, due_query in due:
        query = due_query.planned.query
        key = (number, query.window.slide_ticks, query.deadline_ticks, query.urgency.priority)
        due_by_key.setdefault(key, []).append(due_query)
    tasks = {}
    for (number, slide, within, priority), every in due_by_key.items():
        ends = (max(due.first_end, counting_from.get(due.planned.name, TICK_MIN)) - due.closed for due in every)
        task = Task(
            number,
            tuple(due.planned.name for due in every),
            priority,
            (min(ends) + within) / TICKS_PER_SECOND - elapsed,
            max(due.windows for due in every),
            slide / TICKS_PER_SECOND,
            within / TICKS_PER_SECOND,
            max(passed.get(due.planned.name, 0) for due in every),
        )
        tasks[task] = every
    return tasks
