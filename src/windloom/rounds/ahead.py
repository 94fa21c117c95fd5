"""Runs several generators at once, in threads: kernels release the interpreter while they run."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")


def run_ahead(
    makers: Sequence[Callable[[], Iterator[Item]]], threads: int, weigh: Callable[[Item], int], most: int
) -> Iterator[Item]:
    """Yield all items, in the order of their generators; at most `threads` generators run at the same time.

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
                    self._changed.wait_for(lambda: self._may_go_on(number))
                    if self._is_left:
                        return
        except BaseException as error:  # raised where the next item would have been read
            failure = error
        with self._changed:
            self._ends[number] = failure
            self._changed.notify_all()

    def _may_go_on(self, number: int) -> bool:
        # The generator being read must never wait, otherwise nothing would ever be taken.
        is_awaited = number == self._read and not self._waiting[number]
        return self._is_left or is_awaited or self._weight <= self._most

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
