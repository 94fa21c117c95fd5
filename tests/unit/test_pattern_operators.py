"""The queries of source E, chapter 3, with which its experiments are repeated, find what their definitions say."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from experiments.linked_lists import EARLY, NEGATIVE
from experiments.pattern_operators import BAGS, DIRECT, NOT_EXISTS, NT, UPA, UPA_BY_END
from experiments.pattern_plans import Distinct, Joined, Links, Negated, NegatedJoin

UNITS = 80
SEEDS = range(2)
LENGTHS = (7, 20, 41)  # of which 7 is looked through in every unit


def drawn(links: int, seed: int, values: int = 6) -> Links:
    rng = np.random.default_rng(seed)
    passes = rng.random((links, UNITS)) < 0.6
    return Links(rng.integers(0, values, (links, UNITS)) * rng.integers(1, 3), passes)


def window(links: Links, link: int, now: int, length: int, *, chosen: bool = True) -> list[int]:
    """The times of tuples in a window after a unit of time."""
    return [time for time in range(max(0, now - length + 1), now + 1) if not chosen or links.passes[link, time]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("way", "eager"), [(NT, False), (DIRECT, False), (DIRECT, True), (UPA, False), (UPA, True)])
def test_every_way_joins_what_stands_in_both_windows(way: int, eager: bool, length: int, seed: int) -> None:
    links = drawn(2, seed)
    query = Joined(links, way, length, parts=3, eager=eager)
    for now in range(UNITS):
        query.feed(now + 1)
        pairs = product(window(links, 0, now, length), window(links, 1, now, length))
        assert query.results() == Counter(
            (left, right) for left, right in pairs if links.value[0, left] == links.value[1, right]
        ), now


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_every_way_shows_each_value_once_and_by_the_same_tuple(length: int, seed: int) -> None:
    links = drawn(1, seed)
    links.passes[:] = True
    ways = [Distinct(links, way, length, parts=3) for way in (NT, DIRECT, UPA)]
    for now in range(UNITS):
        for query in ways:
            query.feed(now + 1)
        shown, direct, aware = (query.results() for query in ways)
        assert shown == direct == aware
        values = [int(links.value[0, time]) for (time,) in shown.elements()]
        assert sorted(values) == sorted({int(links.value[0, time]) for time in window(links, 0, now, length)})
        output, others = int(ways[2].sizes[1]), int(ways[2].sizes[2])
        assert ways[2].sizes[0] == 0
        assert others <= output == len(values)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", [BAGS, NOT_EXISTS])
@pytest.mark.parametrize("way", [NT, UPA, UPA_BY_END])
def test_every_way_negates_as_its_definition_says(way: int, kind: int, length: int, seed: int) -> None:
    links = drawn(2, seed)
    links.passes[:] = True
    query = Negated(links, way, length, parts=3, kind=kind)
    for now in range(UNITS):
        query.feed(now + 1)
        ones = Counter(int(links.value[0, time]) for time in window(links, 0, now, length))
        others = Counter(int(links.value[1, time]) for time in window(links, 1, now, length))
        shown = query.results()
        assert max(shown.values(), default=1) == 1
        truth = (
            ones - others
            if kind == BAGS
            else Counter({value: count for value, count in ones.items() if value not in others})
        )
        assert Counter(int(links.value[0, time]) for (time,) in shown) == truth, now
        assert all(now - length < time <= now for (time,) in shown)
    assert query.counts[EARLY] > 0
    assert query.counts[NEGATIVE] >= query.counts[EARLY]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("way", "joins_last"), [(NT, False), (NT, True), (UPA, False)])
def test_both_plans_of_a_negated_join_find_the_same(way: int, joins_last: bool, length: int, seed: int) -> None:
    links = drawn(3, seed, values=9)
    links.passes[:2] = True
    query = NegatedJoin(links, way, length, parts=3, joins_last=joins_last)
    found = 0
    for now in range(UNITS):
        query.feed(now + 1)
        others = {int(links.value[1, time]) for time in window(links, 1, now, length)}
        pairs = product(window(links, 0, now, length), window(links, 2, now, length))
        truth = Counter(
            (left, right)
            for left, right in pairs
            if links.value[0, left] == links.value[2, right] and int(links.value[0, left]) not in others
        )
        assert query.results() == truth, now
        found += len(truth)
    assert found > 0
