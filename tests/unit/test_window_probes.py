"""The window joins of source E, with which its experiments are repeated, find what their definition says."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from experiments.probe_orders import JoinedWindow
from experiments.window_probes import Feed, Way, WindowJoin, lost_pairs

WINDOWS = [JoinedWindow(2, 4, 3), JoinedWindow(1, 6, 2), JoinedWindow(1, 5, 4), JoinedWindow(1, 5, 2)]


def drawn() -> Feed:
    return Feed.drawn(WINDOWS, 12, seed=2)


@cache
def true_results() -> int:
    """By definition: four tuples of one value that were in their windows together."""
    feed = drawn()
    of_stream = [np.flatnonzero(feed.stream == number).tolist() for number in range(4)]
    return sum(
        len({int(feed.value[time]) for time in times}) == 1
        and min(time + int(feed.lengths[number]) for number, time in enumerate(times)) > max(times)
        for times in product(*of_stream)
    )


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize(
    ("way", "delta"), [(Way.EAGER, 0), (Way.EAGER, 2), (Way.LAZY, 2), (Way.RESTORED, 2), (Way.RESTORED, 3)]
)
def test_every_way_finds_the_same_results_but_for_what_lazy_ones_lose(way: Way, delta: int, buckets: int) -> None:
    feed = drawn()
    found = WindowJoin(feed, (1, 0, 2, 3), way, delta=delta, buckets=buckets).feed(feed, 0, len(feed.stream))
    truth = true_results()
    assert truth > 100
    assert found.results < truth if way is Way.LAZY else found.results == truth


def test_half_of_the_interval_is_lost_without_restoring() -> None:
    assert lost_pairs(60, 10, 200_000, 1) == pytest.approx(10 / 120, rel=0.05)
