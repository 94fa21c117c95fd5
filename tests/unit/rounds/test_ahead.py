"""Generators that run ahead in threads: their items in order, their failures where they are read, no thread left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from windloom.rounds.ahead import HELD, run_ahead


def counting(first: int, count: int, made: list[int] | None = None) -> Callable[[], Iterator[int]]:
    def make() -> Iterator[int]:
        for number in range(first, first + count):
            if made is not None:
                made.append(number)
            yield number

    return make


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_items_come_in_the_order_of_their_generators(threads: int) -> None:
    makers = [counting(0, 7), counting(7, 0), counting(7, 1), counting(8, 9)]
    assert list(run_ahead(makers, threads)) == list(range(17))


def test_a_generator_that_fails_fails_where_it_is_read() -> None:
    def failing() -> Iterator[int]:
        yield 3
        raise ValueError("no more")

    found = []
    with pytest.raises(ValueError, match="no more"):
        for item in run_ahead([counting(0, 3), failing, counting(4, 3)], 2):
            found.append(item)
    assert found == [0, 1, 2, 3]


def test_few_items_are_held_and_no_thread_is_left_when_nobody_reads_on() -> None:
    before, made = threading.active_count(), list[int]()
    reading = run_ahead([counting(0, 50, made), counting(50, 50, made)], 2)
    assert [next(reading) for _ in range(3)] == [0, 1, 2]
    reading.close()
    assert threading.active_count() == before
    assert len(made) <= 2 * (HELD + 2) + 3
