"""Several generators of blocks at once, in threads: kernels release the interpreter while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Full, Queue
from typing import Any, TypeVar

Item = TypeVar("Item")

#: Items that a generator may be ahead of who reads them.
HELD = 2
#: Seconds after which a thread that waits looks whether anybody still reads.
_PATIENCE = 0.2

#: Behind the last item of a generator.
_END = object()


class _Failed:
    """In place of an item: what its generator failed with."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def run_ahead(makers: Sequence[Callable[[], Iterator[Item]]], threads: int) -> Iterator[Item]:
    """All items in the order of their generators; as many of these as there are threads run at the same time.

    No more than a few items of each are held at once. When nobody reads on, the threads end.
    """
    if threads <= 1 or len(makers) <= 1:
        for make in makers:
            yield from make()
        return
    queues: list[Queue[Any]] = [Queue(HELD) for _ in makers]
    is_left = threading.Event()

    def put(queue: Queue[Any], item: object) -> None:
        while not is_left.is_set():
            try:
                queue.put(item, timeout=_PATIENCE)
                return
            except Full:
                continue

    def run(number: int) -> None:
        queue = queues[number]
        try:
            for item in makers[number]():
                put(queue, item)
                if is_left.is_set():
                    return
            put(queue, _END)
        except BaseException as error:  # raised where the item would have been read
            put(queue, _Failed(error))

    with ThreadPoolExecutor(threads) as pool:
        try:
            # Threads take generators in order, so the one that is read is always running or done.
            for number in range(len(makers)):
                pool.submit(run, number)
            for queue in queues:
                while (item := queue.get()) is not _END:
                    if isinstance(item, _Failed):
                        raise item.error
                    yield item
        finally:
            is_left.set()
