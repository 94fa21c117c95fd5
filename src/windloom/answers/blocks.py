"""Blocks: rows of one shape as an Arrow table, the unit in which answers are made, ahead of their reader, and timed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.errors import WindloomError
from windloom.kernels.compiling import new_array
from windloom.kernels.lanes import spread_groups
from windloom.kernels.lists.lists import MOST_LISTED
from windloom.model import Query
from windloom.model.time import format_instant
from windloom.plan.plan import PlannedJoin, Shape
from windloom.plan.rows import PlannedRows


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one shape: `table` has `window_start`, `window_end`, grouping columns, answer columns.

    Rows `bounds[i] : bounds[i + 1]` belong to `queries[i]`.
    """

    shape: int
    queries: tuple[str, ...]
    bounds: NDArray[np.int64]
    table: pa.Table

    def without(self, names: Collection[str]) -> Block:
        """Return these rows without those of some queries."""
        if not any(name in names for name in self.queries):
            return self
        indexes = [i for i, name in enumerate(self.queries) if name not in names]
        pieces = [self.table.slice(self.bounds[i], self.bounds[i + 1] - self.bounds[i]) for i in indexes]
        table = pa.concat_tables([self.table.slice(0, 0), *pieces]).unify_dictionaries().combine_chunks()
        bounds = np.cumsum([0, *(piece.num_rows for piece in pieces)], dtype=np.int64)
        return Block(self.shape, tuple(self.queries[i] for i in indexes), bounds, table)


def group_column(keys: pa.Array, lane_bounds: NDArray[np.int64]) -> pa.DictionaryArray:
    """Return the grouping column as codes into its distinct values, so that no value is copied for every row."""
    encoded = keys.dictionary_encode()
    indices = encoded.indices
    codes = new_array(int(lane_bounds[-1]), np.int32)
    spread_groups(indices.fill_null(0).to_numpy(zero_copy_only=False), lane_bounds, codes)
    mask = None
    if indices.null_count:
        mask = np.empty(len(codes), np.bool_)
        spread_groups(np.asarray(indices.is_null(), np.bool_), lane_bounds, mask)
    # The codes come from the encoding itself; checking their bounds would cost more than writing them.
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), encoded.dictionary, safe=False)


def block_of(planned: PlannedRows | PlannedJoin, shape: Shape, arrays: Sequence[pa.Array]) -> Block:
    """Return the rows of one query as a block, from window starts and ends, grouping columns and answer columns."""
    names = ["window_start", "window_end", *(name for name, _ in shape.groups + shape.columns)]
    table = pa.Table.from_arrays(arrays, names=names)
    return Block(planned.shape, (planned.name,), np.array([0, table.num_rows], np.int64), table)


#: Makes the error for an answer from its query, the edges of its window, its group and what is wrong.
RefusedAnswer = Callable[[Query, tuple[int, int], str, str], WindloomError]


def out_of_range(query: Query, edges: tuple[int, int], group: str, value: str) -> WindloomError:
    """Return the error for an answer that does not fit its type; `edges` are those of its window."""
    start, end = edges if query.window.is_of_positions else map(format_instant, edges)
    return WindloomError(
        f"query '{query.name}': a value does not fit its type",
        f"window [{start}, {end}), group {group}: {value} is out of range",
        "cast the argument to a wider type, for example sum(cast(x AS decimal(38,0))) or a double",
    )


def too_long(query: Query, edges: tuple[int, int], group: str, value: str) -> WindloomError:
    """Return the error for an answer that lists too many values; `edges` are those of its window."""
    start, end = edges if query.window.is_of_positions else map(format_instant, edges)
    return WindloomError(
        f"query '{query.name}': '{value}' lists too many values",
        f"window [{start}, {end}), group {group}: there are more than {MOST_LISTED:,}",
        "choose tuples with FILTER, or take top(k, x), shorter windows or more groups",
    )


Item = TypeVar("Item")


def run_ahead(
    makers: Sequence[Callable[[], Iterator[Item]]], threads: int, weigh: Callable[[Item], int], most: int
) -> Iterator[Item]:
    """Yield all items, in the order of their generators; at most `threads` generators run at the same time.

    Kernels release the interpreter, so threads are enough.
    Generators pause while the items that wait weigh more than `most`. When nobody reads any more, the threads end.
    """
    if threads <= 1 or len(makers) <= 1:
        for make in makers:
            yield from make()
        return
    ahead = _Ahead[Item](len(makers), weigh, most)
    with ThreadPoolExecutor(threads) as pool:
        try:
            # Threads take generators in order, so the one being read is always running or done.
            for number, make in enumerate(makers):
                pool.submit(ahead.run, number, make)
            for number in range(len(makers)):
                yield from ahead.items(number)
        finally:
            ahead.leave()


class _Ahead(Generic[Item]):
    """The state that the threads share: waiting items by generator, which generator is read, whether anybody reads."""

    def __init__(self, makers: int, weigh: Callable[[Item], int], most: int) -> None:
        self._weigh, self._most = weigh, most
        self._waiting: list[deque[Item]] = [deque() for _ in range(makers)]
        self._ends: dict[int, BaseException | None] = {}  # for each generator that has ended, the error, if any
        self._weight = self._read = 0
        self._is_left = False
        self._changed = threading.Condition()

    def run(self, number: int, make: Callable[[], Iterator[Item]]) -> None:
        failure: BaseException | None = None
        try:
            for item in make():
                with self._changed:
                    self._waiting[number].append(item)
                    self._weight += self._weigh(item)
                    self._changed.notify_all()
                    # The generator being read must never wait, otherwise nothing would ever be taken.
                    self._changed.wait_for(
                        lambda: (
                            self._is_left
                            or self._weight <= self._most
                            or (number == self._read and not self._waiting[number])
                        )
                    )
                    if self._is_left:
                        return
        except BaseException as error:  # raised where the next item would have been read
            failure = error
        with self._changed:
            self._ends[number] = failure
            self._changed.notify_all()

    def items(self, number: int) -> Iterator[Item]:
        while True:
            with self._changed:
                self._read = number
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting[number] or number in self._ends)
                if not self._waiting[number]:
                    failure = self._ends[number]
                    break
                item = self._waiting[number].popleft()
                self._weight -= self._weigh(item)
            yield item
        if failure is not None:
            raise failure

    def leave(self) -> None:
        with self._changed:
            self._is_left = True
            self._changed.notify_all()


class Timer:
    """Seconds that makers of blocks have worked, by the first query of each, without time waiting for a reader.

    Before each block, `give_way` may wait for work that has priority.
    """

    def __init__(self, give_way: Callable[[], None] = lambda: None) -> None:
        self.seconds: dict[str, float] = {}
        self._give_way = give_way

    def __call__(self, name: str, make: Callable[[], Iterator[Block]]) -> Iterator[Block]:
        self._give_way()
        total, begun = 0.0, perf_counter()
        for block in make():
            total += perf_counter() - begun
            yield block
            self._give_way()
            begun = perf_counter()
        # Several passes have the same name, and one that is read again counts again.
        self.seconds[name] = self.seconds.get(name, 0.0) + total + perf_counter() - begun


class Stopwatch:
    """The seconds of each stage of a round, and the seconds since it has begun.

    `processor` are those that all threads of this process have worked; what Spark's JVM works is not among them.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self._clock, self._begun = clock, clock()

    @property
    def elapsed(self) -> float:
        return self._clock() - self._begun

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        begun, worked = self._clock(), process_time()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + self._clock() - begun
            self.processor[stage] = self.processor.get(stage, 0.0) + process_time() - worked
