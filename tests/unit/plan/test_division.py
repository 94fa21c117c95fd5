"""By which columns the sets of joins are divided into buckets, and which joins are merged afterwards."""

from __future__ import annotations

import pytest

from support.join_looms import planned, registered
from windloom.plan.division import Division, division_of
from windloom.plan.plan import Plan

_A, _B, _C = "s [TUMBLE 1 second] AS a", "t [TUMBLE 1 second] AS b", "u [TUMBLE 1 second] AS c"


def plan_of(*texts: str) -> Plan:
    return planned(registered({f"q{i}": text for i, text in enumerate(texts)}))


def columns_of(plan: Plan, division: Division) -> dict[str, list[str]]:
    """The columns by which each set is divided, by the text of the set."""
    found = {}
    for partial_set in plan.sets:
        places = division.of(partial_set.number)
        found[partial_set.text] = [
            partial_set.group_by[place].sql
            for place in (range(len(partial_set.group_by)) if places is None else places)
        ]
    return found


def test_a_set_that_no_join_reads_is_divided_by_all_its_columns() -> None:
    plan = plan_of("SELECT k, i, count(*) FROM s [TUMBLE 1 second] GROUP BY k, i")
    division = division_of(plan)
    assert division == Division({}, frozenset())
    assert columns_of(plan, division) == {"s GROUP BY i, k": ["i", "k"]}


def test_sides_are_divided_by_the_keys_of_their_join() -> None:
    plan = plan_of(f"SELECT a.i, count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k GROUP BY a.i")
    division = division_of(plan)
    assert columns_of(plan, division) == {"s GROUP BY i, k": ["k"], "t GROUP BY k": ["k"]}
    assert division.divided == {0}


@pytest.mark.parametrize(
    ("text", "is_divided"),
    [
        (f"SELECT a.k, count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k GROUP BY a.k", False),
        (f"SELECT b.k, count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k GROUP BY b.k", False),
        (f"SELECT b.k, count(*) AS n FROM {_A} LEFT JOIN {_B} ON a.k = b.k GROUP BY b.k", True),
        (f"SELECT count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k", True),
        (f"SELECT a.k, count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k AND a.i = b.i GROUP BY a.k", True),
        (f"SELECT a.k, b.i, count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k AND a.i = b.i GROUP BY a.k, b.i", False),
    ],
)
def test_answers_are_merged_unless_their_groups_tell_the_bucket(text: str, is_divided: bool) -> None:
    assert division_of(plan_of(text)).divided == ({0} if is_divided else frozenset())


def test_a_star_on_one_key_is_divided_by_it_and_a_chain_of_keys_stays_together() -> None:
    star = plan_of(f"SELECT count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k JOIN {_C} ON b.k = c.k")
    assert set(map(tuple, columns_of(star, division_of(star)).values())) == {("k",)}
    chain = plan_of(f"SELECT count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k JOIN {_C} ON b.i = c.i")
    division = division_of(chain)
    assert set(division.columns.values()) == {()}
    assert division.divided == frozenset()


def test_joins_of_one_set_agree_on_a_key_that_all_have() -> None:
    both = f"SELECT count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k AND a.i = b.i"
    alone = f"SELECT a.i, count(*) AS n FROM {_A} JOIN {_C} ON a.k = c.k GROUP BY a.i"
    plan = plan_of(both, alone)
    assert set(map(tuple, columns_of(plan, division_of(plan)).values())) == {("k",)}


def test_joins_of_one_set_without_a_common_key_stay_together() -> None:
    by_k = f"SELECT a.i, count(*) AS n FROM {_A} JOIN {_B} ON a.k = b.k GROUP BY a.i"
    by_i = f"SELECT a.k, count(*) AS n FROM {_A} JOIN {_C} ON a.i = c.i GROUP BY a.k"
    division = division_of(plan_of(by_k, by_i))
    assert set(division.columns.values()) == {()}
    assert division.divided == frozenset()
