"""A simulation of source E, chapter 7: queries scan sub-windows while the window moves, under five schedulers.

The window is an array of n sub-windows. Every t seconds a movement replaces the oldest one. A query reads the youngest
sub-windows one by one; there is one processor, which reads, moves the window, or waits.

| scheduler | the window moves              | a query reads                                     | and then            |
|-----------|-------------------------------|---------------------------------------------------|---------------------|
| serial    | between queries               | the window as it is                               | is done             |
| ws        | at once                       | the window as it was when the query began         | is done             |
| lws       | at once (algorithm 7)         | in order of index; aborted if it has read what    | is done, or begins  |
|           |                               | leaves the window                                 | again               |
| ttu       | at once (algorithm 8)         | the sub-window that will be replaced last, first; | is done, or begins  |
|           |                               | aborted as above                                  | again               |
| snapshots | at once; old versions stay    | the window as it was when the query began         | is repaired, thrice |
|           | while somebody reads them     |                                                   | at most             |

A repair reads, for every movement since, the new sub-window and the one that has left (section 7.4.2, end).
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from math import exp

SCHEDULERS = ("serial", "ws", "lws", "ttu", "snapshots")
MOST_REPAIRS = 3


@dataclass(frozen=True)
class Workload:
    """`groups` transactions are repeated in turn; one-time queries come at random, `pause` seconds apart on average.

    Reading a sub-window takes time for every distinct value in it, of 1,000: the counters of a synopsis are merged.
    """

    sub_windows: int
    seconds: float  # of a sub-window
    groups: int
    pause: float | None = None
    seed: int = 0
    value_seconds: float = 24e-6
    moving_seconds: float = 10e-3
    testing_share: float = 0.01  # what keeping the books of conflicts adds to a read
    one_time_share: float = 0.2  # what of a scan a one-time query costs, which looks at few values


@dataclass
class Figures:
    """What is measured; lists have one entry for each query that was answered."""

    periodic_staleness: list[float] = field(default_factory=list)
    intervals: list[float] = field(default_factory=list)  # between two executions of a group
    one_time_staleness: list[float] = field(default_factory=list)
    response: list[float] = field(default_factory=list)  # of one-time queries
    aborted: int = 0
    committed: int = 0
    repairs: int = 0
    versions: int = 0  # most old sub-windows held at once
    seconds: float = 0.0


@dataclass
class _Reader:
    size: int  # sub-windows that it reads, the youngest ones
    group: int | None  # None: one-time
    arrived: float
    began: int = -1  # movements before it began
    read: set[int] = field(default_factory=set)  # movements whose sub-windows it has read
    to_repair: int = 0
    repairs: int = 0
    reflects: int = -1

    def restart(self) -> None:
        self.began, self.read = -1, set()


class Simulation:
    def __init__(self, scheduler: str, work: Workload) -> None:
        self.scheduler, self.work = scheduler, work
        self.figures = Figures()
        self._rng = random.Random(work.seed)
        self._now = 0.0
        self._moves = work.sub_windows  # the window is full
        self._moved_at = [0.0] * work.sub_windows
        self._values: list[float] = [self._distinct() for _ in range(work.sub_windows)]
        self._sizes = [self._group_size() for _ in range(work.groups)]
        self._turn = 0
        self._last: dict[int, float] = {}
        self._one_time: deque[_Reader] = deque()
        self._next_question = self._pause()
        self._periodic: _Reader | None = None

    def run(self, seconds: float) -> Figures:
        while self._now < seconds:
            self._arrive()
            if self._may_move() and self._now >= self._next_move:
                self._move()
                continue
            self._work_on(self._chosen())
        self.figures.seconds = self._now
        return self.figures

    # ---- the window ---------------------------------------------------------------------------------------------

    @property
    def _next_move(self) -> float:
        return (self._moves - self.work.sub_windows + 1) * self.work.seconds

    def _may_move(self) -> bool:
        busy = self._periodic is not None or any(reader.began >= 0 for reader in self._one_time)
        return self.scheduler != "serial" or not busy

    def _move(self) -> None:
        self._moved_at.append(self._next_move)  # when it was due: what waits to be moved is stale too
        self._now += self.work.moving_seconds
        self._moves += 1
        self._values.append(self._distinct())
        if self.scheduler in ("lws", "ttu"):
            readers = [*self._one_time, *([] if self._periodic is None else [self._periodic])]
            for reader in readers:
                # Algorithm 7, line 5: the sub-window that has left this reader's window.
                if reader.began >= 0 and self._moves - 1 - reader.size in reader.read:
                    self._abort(reader)

    def _abort(self, reader: _Reader) -> None:
        self.figures.aborted += 1
        if reader.group is None:
            reader.restart()
        else:
            self._periodic = None  # the next of its turns will try again

    # ---- readers ------------------------------------------------------------------------------------------------

    def _arrive(self) -> None:
        while self._now >= self._next_question:
            size = self._rng.randint(1, self.work.sub_windows)
            self._one_time.append(_Reader(size, None, self._next_question))
            self._next_question += self._pause()

    def _chosen(self) -> _Reader:
        """One-time queries come first; only serial lets a query that has begun end before."""
        if self._one_time and (self.scheduler != "serial" or self._periodic is None):
            return self._one_time[0]
        if self._periodic is None:
            group = self._turn % self.work.groups
            self._turn += 1
            self._periodic = _Reader(self._sizes[group], group, self._now)
        return self._periodic

    def _work_on(self, reader: _Reader) -> None:
        if reader.began < 0:
            reader.began = reader.reflects = self._moves
        if reader.to_repair:
            self._now += reader.to_repair * self._cost(reader, self._moves - 1)
            reader.to_repair = 0
        else:
            chosen = self._next_read(reader)
            self._now += self._cost(reader, chosen)
            reader.read.add(chosen)
        if len(reader.read) == reader.size:  # a reader that has read what leaves its window is aborted
            self._end(reader)

    def _next_read(self, reader: _Reader) -> int:
        last = self._moves if self.scheduler in ("lws", "ttu") else reader.began
        left = (move for move in range(last - 1, last - 1 - reader.size, -1) if move not in reader.read)
        if self.scheduler == "lws":
            return min(left, key=lambda move: move % self.work.sub_windows)
        return next(left)  # it is replaced last

    def _end(self, reader: _Reader) -> None:
        if self.scheduler == "snapshots":
            missed = self._moves - reader.reflects
            held = self._moves - reader.began
            self.figures.versions = max(self.figures.versions, held)
            if missed and reader.repairs < MOST_REPAIRS:
                reader.to_repair, reader.reflects, reader.repairs = (
                    min(2 * missed, reader.size),
                    self._moves,
                    reader.repairs + 1,
                )
                self.figures.repairs += 1
                return
        reflects = self._moves if self.scheduler in ("lws", "ttu") else reader.reflects
        self._report(reader, self._now - self._moved_at[reflects - 1])

    def _report(self, reader: _Reader, staleness: float) -> None:
        figures = self.figures
        figures.committed += 1
        if reader.group is None:
            figures.one_time_staleness.append(staleness)
            figures.response.append(self._now - reader.arrived)
            self._one_time.popleft()
            return
        figures.periodic_staleness.append(staleness)
        if reader.group in self._last:
            figures.intervals.append(self._now - self._last[reader.group])
        self._last[reader.group] = self._now
        self._periodic = None

    # ---- chance and costs ---------------------------------------------------------------------------------------

    def _pause(self) -> float:
        return float("inf") if self.work.pause is None else self._rng.expovariate(1 / self.work.pause)

    def _group_size(self) -> int:
        """Five queries with windows of 1 to n sub-windows: one scan, as far as the longest."""
        return max(self._rng.randint(1, self.work.sub_windows) for _ in range(5))

    def _distinct(self) -> float:
        """Distinct values of 1,000 among 1,000 tuples per second, at a rate that deviates by a factor of up to ten."""
        tuples = 1000 * self.work.seconds * 10 ** self._rng.uniform(-1, 1) / 2.15
        return 1000 * (1 - exp(-tuples / 1000))

    def _cost(self, reader: _Reader, move: int) -> float:
        share = self.work.one_time_share if reader.group is None else 1.0
        tested = 1 + (self.work.testing_share if self.scheduler in ("lws", "ttu", "ws") else 0.0)
        return self._values[move] * self.work.value_seconds * share * tested
