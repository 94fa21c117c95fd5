"""What plans are chosen for: source B's utility with its own numbers, weights as users give them."""

from __future__ import annotations

from typing import Any

import pytest

from windloom.errors import WindloomError
from windloom.optimizer.adapt.objective import BestCosts, Objective, utility
from windloom.optimizer.adapt.round_cost import RoundCost

#: The example of source B, section 3.2: output rate and memory of its two plans.
FIRST, SECOND = (5.0, 775.0), (2.5, 575.0)


def test_the_utility_of_the_paper_chooses_as_in_its_example() -> None:
    assert utility(*FIRST, 0.1, 0.9) == pytest.approx(697.52)
    assert utility(*SECOND, 0.1, 0.9) == pytest.approx(517.54)
    assert utility(*FIRST, 20_000, 2) == 5550
    assert utility(*SECOND, 20_000, 2) == 9150


def test_weights_decide_between_a_fast_plan_and_a_small_one() -> None:
    fast, small = RoundCost(intake=1.0, taken=3e6), RoundCost(intake=1.5, taken=1e6)
    least = BestCosts.of([fast, small])
    assert (least.seconds, least.nbytes) == (1.0, 1e6)
    for given, wanted in (("latency", fast), ("memory", small), ({"latency": 0.4, "memory": 0.6}, small)):
        objective = Objective.of(given)
        assert min((fast, small), key=lambda cost: objective.utility(cost, least)) is wanted
    mixed = Objective.of({"latency": 9, "memory": 1})
    assert min((fast, small), key=lambda cost: mixed.utility(cost, least)) is fast
    assert mixed.terms(small, least) == (pytest.approx(0.9 * 1.5), pytest.approx(0.1))
    assert sum(mixed.terms(small, least)) == pytest.approx(mixed.utility(small, least))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("speed", "unknown objective 'speed'"),
        ({"latency": -1}, "the weight of 'latency' cannot be -1"),
        ({"latency": float("nan")}, "the weight of 'latency' cannot be nan"),
        ({"memory": "much"}, "the weight of 'memory' cannot be 'much'"),
        ({"memory": True}, "the weight of 'memory' cannot be True"),
        ({"latency": 0, "memory": 0.0}, "all weights of the objective are zero"),
        ({}, "all weights of the objective are zero"),
        ({"time": 1}, "unknown objective 'time'"),
        (3, "an objective cannot be 3"),
    ],
)
def test_what_is_no_objective_is_named(given: Any, words: str) -> None:
    with pytest.raises(WindloomError) as refused:
        Objective.of(given)
    assert words in refused.value.message
    assert refused.value.detail
    assert refused.value.hint


def test_an_objective_is_told_as_users_write_it() -> None:
    assert [Objective.of(given).name for given in ("latency", "memory", {"latency": 2, "memory": 3})] == [
        "latency",
        "memory",
        "latency 0.4, memory 0.6",
    ]
