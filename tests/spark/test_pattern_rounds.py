"""Windloom's rows, in rounds, are those of the reference operators of source E, chapter 3."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from experiments.pattern_operators import BAGS, NOT_EXISTS, NT, UPA
from experiments.pattern_plans import Distinct, Joined, Links, Negated, NegatedJoin, PatternQuery
from experiments.pattern_rounds import run_rounds
from pyspark.sql import SparkSession

LENGTH, SLIDE, ROUNDS = 40, 20, 4


def drawn() -> Links:
    rng = np.random.default_rng(5)
    units = ROUNDS * SLIDE + 1
    return Links(rng.integers(0, 30, (3, units)), rng.random((3, units)) < 0.7)


def by_value(links: Links, shown: Counter[tuple[int, ...]]) -> Counter[tuple[int, ...]]:
    return Counter((int(links.value[0, time]),) for (time,) in shown.elements())


@pytest.mark.parametrize("name", ["join", "distinct", "grouped", "bags", "not_exists", "negated_join"])
def test_what_windloom_shows_is_what_the_operators_hold(spark: SparkSession, name: str) -> None:
    links = drawn()
    if name == "negated_join":
        links.passes[:2] = True  # the query selects from the third link alone
    made: dict[str, PatternQuery] = {
        "join": Joined(links, UPA, LENGTH),
        "distinct": Distinct(links, UPA, LENGTH),
        "grouped": Distinct(links, NT, LENGTH),
        "bags": Negated(links, UPA, LENGTH, kind=BAGS),
        "not_exists": Negated(links, NT, LENGTH, kind=NOT_EXISTS),
        "negated_join": NegatedJoin(links, UPA, LENGTH),
    }
    query = made[name]
    query.feed(ROUNDS * SLIDE)
    expected = query.results()
    if name in ("distinct", "grouped", "bags"):
        expected = by_value(links, expected)
    found = run_rounds(spark, name, links, LENGTH, SLIDE, 2)
    assert expected
    assert found.present == expected
    assert found.tuples % SLIDE == 0
