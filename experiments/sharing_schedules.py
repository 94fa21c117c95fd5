"""Simulations of source E, chapter 8: periodic queries in groups that share a synopsis, under its schedulers.

What is executed together is decided by the schedules of `windloom.rounds.schedules`, with a time until the deadline
that counts updates of the synopses, as in algorithms 9 to 11; the periods of hybrid scheduling are found by its search.

A second simulation gives the same work to the schedules as Windloom runs them: a window is answered once, after it has
closed, and a round chooses what it answers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp, log2

from windloom.rounds.choose import choose
from windloom.rounds.schedules import SCHEDULES, Task, cheapest_periods, shortened

#: Schedulers of the thesis: which tasks are executed together, and whether hybrid scheduling chooses their periods.
SCHEDULERS = {
    "No-S": ("edf", False),
    "AS": ("aggressive", False),
    "CS": ("conservative", False),
    "HS": ("conservative", True),
    "H-LS": ("late", True),
    "H-LP": ("late_pending", True),
}
#: So many comparisons of sorting take as long as merging a counter, unless a group says otherwise.
SORTED = 40
#: Values of what each group is about; the last two are quantiles of what the first two rank.
VALUES = (1000, 1000, 1_000_000, 100, 100, 10_000, 1000, 1000)


@dataclass(frozen=True, slots=True)
class Query:
    window: int  # intervals of the synopsis
    slide: int


@dataclass(frozen=True)
class Group:
    """Queries over one synopsis. A scan merges counters of intervals, youngest first; each query then sorts them."""

    queries: tuple[Query, ...]
    values: float  # that occur
    rate: float  # tuples per interval
    counter_seconds: float  # to merge one counter
    compared: int = SORTED  # so many comparisons take as long

    @cached_property
    def by_slide(self) -> dict[int, tuple[Query, ...]]:
        slides = sorted({query.slide for query in self.queries})
        return {slide: tuple(query for query in self.queries if query.slide == slide) for slide in slides}

    @cached_property
    def longest(self) -> dict[int, int]:
        return {slide: max(query.window for query in own) for slide, own in self.by_slide.items()}

    @cached_property
    def sorting(self) -> dict[int, float]:
        """By slide, the seconds to sort the counters of a window, for all queries that have it."""
        return {slide: sum(self._sort(query.window) for query in own) for slide, own in self.by_slide.items()}

    def scan(self, windows: int) -> float:
        return windows * self._distinct(1) * self.counter_seconds

    def _distinct(self, intervals: int) -> float:
        return self.values * (1 - exp(-self.rate * intervals / self.values))

    def _sort(self, intervals: int) -> float:
        found = self._distinct(intervals)
        return found * log2(found) * self.counter_seconds / self.compared

    @cached_property
    def periods(self) -> dict[int, int]:
        """By slide, the period of hybrid scheduling."""
        costs = [float(longest) for longest in self.longest.values()]
        found = cheapest_periods(costs, shortened(list(self.longest)))
        return dict(zip(self.longest, found, strict=True))


def make_groups(rate: float, per_group: int, seed: int, counter_seconds: float, compared: int = SORTED) -> list[Group]:
    """Windows of 20 to 100 seconds, slides of 1 to half of that; twice the rate means twice the values."""
    rng = random.Random(seed)
    found = []
    for values in VALUES:
        queries = []
        for _ in range(per_group):
            window = rng.randint(20, 100)
            queries.append(Query(window, rng.randint(1, window // 2)))
        found.append(Group(tuple(queries), values * rate / 1500, rate, counter_seconds, compared))
    return found


@dataclass
class Figures:
    executed: int = 0  # queries
    late: list[float] = field(default_factory=list)  # updates beyond the slide between two executions of a query
    tasks: int = 0  # that are scheduled by themselves


class Periodic:
    """Algorithms 9 to 11: the task with the least time until its deadline is executed, with those that go along."""

    def __init__(self, groups: Sequence[Group], scheduler: str) -> None:
        name, is_hybrid = SCHEDULERS[scheduler]
        self._groups, self._schedule = groups, SCHEDULES[name]
        self._queries: dict[Task, tuple[Query, ...]] = {}
        self._left: dict[Task, int] = {}  # d(T)
        self._since: dict[Task, int] = {}
        for number, group in enumerate(groups):
            for slide, queries in group.by_slide.items():
                period = group.periods[slide] if is_hybrid else slide
                task = Task(number, (str(slide),), 5, 0.0, 1, float(period), float(slide))
                self._queries[task], self._left[task], self._since[task] = queries, period, 0
        self.figures = Figures(tasks=len({(query.group, query.period) for query in self._queries}))

    def run(self, seconds: float, question_seconds: float = 0.005) -> Figures:
        now, updates = 0.0, 0
        while now < seconds:
            while updates < int(now):
                updates += 1
                now += question_seconds  # a one-time query per second, from a synopsis of its own
                for task in self._left:
                    self._left[task] -= 1
                    self._since[task] += 1
            now += self._execute()
        return self.figures

    def _execute(self) -> float:
        first = min(self._left, key=lambda task: (self._left[task], task.group, task.names))
        chosen = {first, *self._along(first)}
        for task in chosen:
            for query in self._queries[task]:
                self.figures.executed += 1
                self.figures.late.append(max(0, self._since[task] - query.slide))
            self._left[task], self._since[task] = int(task.period), 0
        group, slides = self._groups[first.group], [int(task.within) for task in chosen]
        return group.scan(max(group.longest[slide] for slide in slides)) + sum(group.sorting[slide] for slide in slides)

    def _along(self, first: Task) -> set[Task]:
        """What the schedule executes along: its slack is the time until the deadline, a round is an update."""
        now = {replace(task, slack=float(left)): task for task, left in self._left.items() if task.group == first.group}
        leader = next(timed for timed, task in now.items() if task == first)
        others = [timed for timed in now if timed is not leader]
        return {now[timed] for timed in self._schedule.together(leader, others, 1.0)}


# ---- as Windloom runs them -----------------------------------------------------------------------------------------


@dataclass
class RoundFigures:
    answered: int = 0  # windows
    in_time: int = 0
    passes: int = 0
    left: int = 0  # windows that were closed and not answered at the end
    seconds: float = 0.0


class Rounds:
    """Rounds of a second that answer closed windows within a budget; each window once, however late."""

    def __init__(self, groups: Sequence[Group], schedule: str, budget: float, within: int) -> None:
        """A window is wanted `within` so many slides after it has closed."""
        self._groups, self._schedule, self._budget, self._within = groups, SCHEDULES[schedule], budget, within
        self._answered: dict[tuple[int, int], int] = {
            (number, slide): 0 for number, group in enumerate(groups) for slide in group.by_slide
        }
        self._passed = dict.fromkeys(self._answered, 0)

    def seconds(self, tasks: Sequence[tuple[Task, int]]) -> float:
        group = self._groups[tasks[0][0].group]
        sorting = sum(count * group.sorting[int(task.period)] for task, count in tasks)
        return group.scan(max(group.longest[int(task.period)] for task, _ in tasks)) + sorting

    def run(self, rounds: int) -> RoundFigures:
        figures = RoundFigures()
        now = 0.0
        for _ in range(rounds):
            now = max(now + 1.0, now)
            tasks = self._tasks(int(now))
            chosen = choose(list(tasks.values()), self._schedule, self, self._budget, 1.0)
            now += max(0.0, chosen.seconds - 1.0)
            figures.seconds += chosen.seconds
            figures.passes += len({task.group for task in chosen.windows})
            for key, task in tasks.items():
                self._answer(key, task, chosen.windows.get(task, 0), now, figures)
        figures.left = sum(task.windows * self._count(key) for key, task in self._tasks(int(now)).items())
        return figures

    def _tasks(self, now: int) -> dict[tuple[int, int], Task]:
        found = {}
        for key, answered in self._answered.items():
            number, slide = key
            windows = now // slide - answered
            if windows > 0:
                within = self._within * slide
                slack = (answered + 1) * slide + within - now
                passed = self._passed[key]
                found[key] = Task(number, (str(slide),), 5, slack, windows, float(slide), float(within), passed)
        return found

    def _answer(self, key: tuple[int, int], task: Task, windows: int, now: float, figures: RoundFigures) -> None:
        self._passed[key] = 0 if windows else self._passed[key] + 1
        slide, count = key[1], self._count(key)
        for number in range(self._answered[key] + 1, self._answered[key] + windows + 1):
            figures.answered += count
            figures.in_time += count * (now <= number * slide + task.within + 1)
        self._answered[key] += windows

    def _count(self, key: tuple[int, int]) -> int:
        return len(self._groups[key[0]].by_slide[key[1]])
