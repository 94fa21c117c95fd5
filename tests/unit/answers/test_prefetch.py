from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from windloom.answers.blocks import run_ahead


def numbers(first: int, count: int) -> Iterator[int]:
    yield from range(first, first + count)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_items_come_in_the_order_of_their_generators(threads: int) -> None:
    makers = [
        lambda first=first, count=count: numbers(first, count) for first, count in ((0, 7), (10, 0), (20, 3), (30, 9))
    ]
    assert list(run_ahead(makers, threads, lambda _: 1, 3)) == [*range(7), 20, 21, 22, *range(30, 39)]


def test_a_failure_is_raised_where_its_item_would_have_come() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise KeyError("broken")

    read = run_ahead([lambda: numbers(0, 1), failing, lambda: numbers(5, 5)], 2, lambda _: 1, 3)
    assert [next(read), next(read)] == [0, 1]
    with pytest.raises(KeyError, match="broken"):
        next(read)


def test_generators_stay_a_few_items_ahead_and_end_when_nobody_reads() -> None:
    made, before = [], threading.active_count()

    def counting() -> Iterator[int]:
        for number in range(1000):
            made.append(number)
            yield number

    read = run_ahead([counting, counting], 2, lambda _: 1, 10)
    assert next(read) == 0
    read.close()
    assert len(made) <= 15
    assert threading.active_count() == before
