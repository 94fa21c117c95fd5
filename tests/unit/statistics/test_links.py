"""Links of joins: what rounds count of their keys, and estimates that stay while they are good enough."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.join_catalogs import STREAMS
from support.join_looms import planned, registered
from support.native import taken_of_plan
from windloom.answers.joins.key_counts import linked
from windloom.rounds.step import step
from windloom.state.state import State
from windloom.statistics.observations import KeyHistogram, LinkEstimate, LinkRound
from windloom.weave.round_input import RoundInput

KEYS = st.lists(st.integers(0, 12), max_size=60)


def counted(parent: list[int], child: list[int]) -> LinkRound:
    return linked(np.array(parent, np.int64), np.array(child, np.int64))


@given(KEYS, KEYS)
def test_pairs_and_matching_groups_are_counted_as_they_are(parent: list[int], child: list[int]) -> None:
    found, left, right = counted(parent, child), Counter(parent), Counter(child)
    assert found.pairs == sum(left[key] * right[key] for key in left)
    assert found.matched == sum(count for key, count in left.items() if key in right)
    assert (found.parent.groups, found.parent.keys) == (len(parent), len(left))
    assert (found.child.groups, found.child.keys) == (len(child), len(right))


@given(KEYS, KEYS, KEYS, KEYS)
def test_shards_add_up(parent: list[int], child: list[int], more_parent: list[int], more_child: list[int]) -> None:
    """Keys of the second shard are others than those of the first."""
    more_parent, more_child = [key + 100 for key in more_parent], [key + 100 for key in more_child]
    whole, parts = (
        counted(parent + more_parent, child + more_child),
        counted(parent, child) + counted(more_parent, more_child),
    )
    assert (parts.pairs, parts.matched) == (whole.pairs, whole.matched)
    for left, right in ((parts.parent, whole.parent), (parts.child, whole.child)):
        assert (left.groups, left.keys) == (right.groups, right.keys)
        assert [count for _, count in left.counted] == [count for _, count in right.counted]


@given(st.lists(st.integers(0, 7), max_size=80), st.lists(st.integers(0, 7), max_size=80))
def test_few_keys_are_joined_exactly(parent: list[int], child: list[int]) -> None:
    found = counted(parent, child)
    assert found.parent.pairs(found.child) == found.pairs


def test_a_skewed_key_is_not_lost_among_the_others() -> None:
    parent, child = [0] * 500 + list(range(1, 501)), [0] * 300 + list(range(1, 301))
    found = counted(parent, child)
    even = len(parent) * len(child) / 501
    assert found.parent.pairs(found.child) == pytest.approx(found.pairs, rel=0.01)
    assert even < 0.05 * found.pairs, "as if all keys were alike"


def test_many_groups_are_counted_in_a_sample() -> None:
    draw = np.random.default_rng(1)
    parent, child = draw.integers(-(2**31), 2**31, 400_000), draw.integers(-(2**31), 2**31, 50_000)
    child[:25_000] = parent[:25_000]
    found = counted(parent.tolist(), child.tolist())
    assert found.parent.keys == pytest.approx(400_000, rel=0.05)
    assert found.child.keys == pytest.approx(50_000, rel=0.05)
    assert found.pairs == pytest.approx(25_000, rel=0.1)


def test_a_few_keys_of_many_groups_are_counted_exactly() -> None:
    draw = np.random.default_rng(2)
    hashes = draw.integers(-(2**31), 2**31, 12)
    parent, child = hashes[draw.integers(0, 12, 300_000)], hashes[draw.integers(0, 7, 90_000)]
    found = counted(parent.tolist(), child.tolist())
    sizes = [np.bincount(np.searchsorted(np.sort(hashes), side), minlength=12) for side in (parent, child)]
    assert found.pairs == int(sizes[0] @ sizes[1])
    assert (found.parent.keys, found.child.keys) == (12, 7)


def test_an_estimate_stays_until_rounds_differ_clearly() -> None:
    first = counted([1, 2, 3, 4] * 5, [1, 2, 3, 4])
    estimate = LinkEstimate.of(first)
    assert (estimate.selectivity, estimate.fan_out, estimate.matching) == (0.25, 1.0, 1.0)
    nearly = LinkRound(first.parent, first.child, 17, 17)
    later = estimate.after(nearly).after(nearly)
    assert (later.selectivity, later.rounds) == (0.25, 3)
    other = counted([1, 2, 3, 4] * 5, [1, 2, 9, 8])
    moved = later.after(other)
    assert (moved.matching, moved.rounds) == (0.5, 1)


def test_nothing_is_estimated_of_nothing() -> None:
    assert LinkEstimate.of(counted([], [])) == LinkEstimate(0.0, 0.0, 0.0, 0.0, 0.0)
    assert KeyHistogram().pairs(KeyHistogram(((1, 2),), 5, 5)) == 0.0


def test_keys_of_two_columns_that_both_have_nulls_are_counted_without_them() -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLE 9 us] a JOIN t [TUMBLE 9 us] b ON a.k = b.k AND a.i = b.i"
    plan = planned(registered({"q": text}))
    pairs: list[tuple[str | None, int | None]] = [("a", 1), (None, 1), ("a", None), (None, None)]
    rows = [{**dict.fromkeys(STREAMS["s"].columns), "tick": 1, "k": k, "i": i} for k, i in pairs]
    taken = taken_of_plan(plan, {"s": rows, "t": rows[:2]}, State())
    _, _, counts = step(State(), RoundInput(taken), plan)
    (found,) = counts.links.values()
    assert (found.pairs, found.parent.groups, found.child.groups) == (1, 1, 1)
