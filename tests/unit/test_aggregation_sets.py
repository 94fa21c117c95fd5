"""The operators of source D, with which its experiments are repeated, keep the join of two windows."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.aggregation_sets import PLANS, Arrivals, Plan, Setting, arrivals


def joined(tuples: Arrivals, setting: Setting) -> np.ndarray:
    """By definition: the last tuples of both streams, each with each."""
    found = np.zeros((setting.groups[0] * setting.groups[1], 3), np.int64)
    last = [np.flatnonzero(tuples.stream == side)[-setting.windows[side] :] for side in (0, 1)]
    for left in last[0]:
        for right in last[1]:
            if tuples.value[left] == tuples.value[right]:
                place = tuples.group[left] * setting.groups[1] + tuples.group[right]
                found[place] += (tuples.amount[left], tuples.amount[right], 1)
    return found


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("is_hash", [False, True])
def test_every_plan_keeps_the_join_of_two_windows(plan: str, is_hash: bool) -> None:
    setting = Setting((30.0, 50.0), (20, 35), (3, 4), 0.2)
    tuples = arrivals(setting, 1.0, seed=4)
    found = Plan(setting, PLANS[plan], is_hash=is_hash).feed(tuples)
    assert found.result.tolist() == joined(tuples, setting).tolist()
