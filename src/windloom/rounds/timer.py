"""Measures what answers take, by the name of the first of the queries that are answered together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from windloom.rounds.block import Block


class Timer:
    """Seconds that makers of blocks have worked; time in which they wait for a reader does not count.

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
