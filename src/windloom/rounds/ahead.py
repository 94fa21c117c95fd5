"""Several generators of blocks at once, in threads: kernels release the interpreter while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Generic, TypeVar

Item = TypeVar("Item")

#: Items that a generator may be ahead of who reads them.
HELD = 2
#: Seconds after which a thread that waits looks whether anybody still reads.
_PATIENCE = 0.2


@dataclass(frozen=True, slots=True)
class _Made(Generic[Item]):
    """An item, or the end of its generator, or what the generator failed with."""

    item: Item | None = None
    is_end: bool = False
    failure: BaseException | None = None


def run_ahead(makers: Sequence[Callable[[], Iterator[Item]]], threads: int) -> Iterator[Item]:
    """All items in the order of their generators; as many of these as there are threads run at the same time.

    No more than a few items of each are held at once. When nobody reads on, the threads end.
    """
    if threads <= 1 or len(makers) <= 1:
        for make in makers:
            yield from make()
        return
    queues: list[Queue[_Made[Item]]] = [Queue(HELD) for _ in makers]
    is_left = threading.Event()

    def put(queue: Queue[_Made[Item]], made: _Made[Item]) -> bool:
        while not is_left.is_set():
            try:
                queue.put(made, timeout=_PATIENCE)
                return True
            except Full:
                continue
        return False

    def run(number: int) -> None:
        queue = queues[number]
        end: _Made[Item] = _Made(is_end=True)
        try:
            for item in makers[number]():
                if not put(queue, _Made(item)):
                    return
        except BaseException as error:  # raised where the item is read
            end = _Made(failure=error)
        put(queue, end)

    with ThreadPoolExecutor(threads) as pool:
        try:
            # Threads take generators in order, so the one that is read is always running or done.
            for number in range(len(makers)):
                pool.submit(run, number)
            for queue in queues:
                while not (made := queue.get()).is_end:
                    if made.failure is not None:
                        raise made.failure
                    assert made.item is not None
                    yield made.item
        finally:
            is_left.set()
            for queue in queues:
                _emptied(queue)


def _emptied(queue: Queue[_Made[Item]]) -> None:
    try:
        while True:
            queue.get_nowait()
    except Empty:
        return
