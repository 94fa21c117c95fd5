"""`auto`: the fastest plan by prediction, the same for the same queries, quick to find."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from golden.plans import STREAMS, many_queries, plan_of, plan_of_queries
from windloom.kernels.families import MAX_INT
from windloom.language.catalog import parse_catalog
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.plan_cost import estimate_plan
from windloom.optimizer.trees import contenders
from windloom.plan.plan import Plan


def catalog(seed: int, how_many: int) -> str:
    rng = random.Random(seed)
    lines = []
    for i in range(how_many):
        slide = rng.randint(1, 60)
        length = slide * rng.randint(1, 30) + rng.choice([0, 0, slide // 2])
        aggregate = rng.choice(["sum(price)", "max(price)", "count(*)", "stddev(price)"])
        window = f"[RANGE {length} seconds SLIDE {slide} seconds]"
        lines.append(f"CREATE QUERY q{i} AS SELECT symbol, {aggregate} AS a FROM trades {window} GROUP BY symbol;")
    return "\n".join(lines)


def predicted(plan: Plan) -> float:
    return estimate_plan(plan, load_constants()).total


@pytest.mark.parametrize("technique", ["auto", "two_stacks", "recalculate"])
@pytest.mark.parametrize("seed", range(3))
def test_no_strategy_is_predicted_to_be_clearly_faster(seed: int, technique: str) -> None:
    for rate in (0.5, 2_000.0):
        made = {
            name: predicted(plan_of(catalog(seed, 9), rates={"trades": rate}, strategy=name, technique=technique))
            for name in ("auto", "no_share", "shared", "weave_share")
        }
        assert made["auto"] <= 1.03 * min(made.values()), made


def test_techniques_are_never_predicted_slower_than_a_forced_one() -> None:
    for seed in range(3):
        text = catalog(seed, 12)
        chosen = predicted(plan_of(text, strategy="shared"))
        for forced in ("block_decomposition", "two_stacks", "daba", "flat_fit"):
            assert chosen <= 1.01 * predicted(plan_of(text, strategy="shared", technique=forced))


def test_the_order_of_queries_does_not_change_the_plan() -> None:
    read = parse_catalog(STREAMS + catalog(4, 15))
    streams = {declared.stream.name: declared.stream for declared in read.streams}
    queries = list(read.parse(streams))
    made = plan_of_queries(streams, tuple(queries))
    random.Random(1).shuffle(queries)
    again = plan_of_queries(streams, tuple(queries))

    def trees(plan: Plan) -> set[frozenset[str]]:
        return {frozenset(planned.name for planned in tree.queries) for tree in plan.trees}

    assert trees(made) == trees(again)
    assert predicted(made) == pytest.approx(predicted(again))


#: One query needs slices of a second, forty need slices of ten minutes.
UNEQUAL = (
    "CREATE QUERY fine AS SELECT symbol, sum(price) AS a FROM trades [TUMBLE 1 seconds] GROUP BY symbol;"
    + "\n".join(
        f"CREATE QUERY c{i} AS SELECT symbol, sum(price) AS a FROM trades"
        f" [RANGE {600 * (i + 2)} seconds SLIDE 600 seconds] GROUP BY symbol;"
        for i in range(40)
    )
)


@pytest.mark.parametrize("rate", [500.0, 1.0])
def test_coarse_queries_get_coarser_slices_where_reading_cells_is_dear(rate: float) -> None:
    """Also at a hundredth of a tuple a second and group, where slices hold a tuple at most and spare no reading."""
    plan = plan_of(UNEQUAL, rates={"trades": rate}, technique="two_stacks")
    assert sorted(len(tree.queries) for tree in plan.trees) == [1, 40]
    assert (plan.strategy, plan.sets[0].strategy) == ("auto", "reweave")
    forced = plan_of(UNEQUAL, rates={"trades": rate}, strategy="shared", technique="two_stacks")
    assert predicted(plan) < (0.97 if rate > 1 else 0.9) * predicted(forced)


def test_where_a_technique_reads_cells_once_for_all_they_stay_together() -> None:
    plan = plan_of(UNEQUAL, rates={"trades": 500.0}, technique="prefix_ring")
    assert len(list(plan.trees)) == 1


def test_a_plan_says_which_strategy_auto_took() -> None:
    plan = plan_of(many_queries(40))
    assert (plan.strategy, plan.sets[0].strategy) == ("auto", "shared")


def test_a_technique_that_is_fastest_only_where_windows_move_unevenly_is_considered() -> None:
    constants = load_constants()
    assert "daba" not in contenders(constants, MAX_INT)
    free = dict.fromkeys(constants.techniques["daba"]["max_int uneven"], 0.0)
    techniques = {**constants.techniques, "daba": {**constants.techniques["daba"], "max_int uneven": free}}
    assert "daba" in contenders(replace(constants, techniques=techniques), MAX_INT)
