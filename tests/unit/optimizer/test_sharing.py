from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from windloom.errors import WindloomError
from windloom.model import TimeWindow
from windloom.optimizer.cost.papers import PaperCost
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import STRATEGIES, find_strategy
from windloom.optimizer.sharing.reweave import refined
from windloom.optimizer.workloads import divisors_workload, zipf_workload
from windloom.slicing.slicings import SLICINGS

SECOND = 1_000_000


def problem(windows: list[tuple[int, int]], rate: float, technique: str = "recalculate") -> SharingProblem:
    made = tuple(TimeWindow(r * SECOND, s * SECOND) for r, s in windows)
    return SharingProblem(made, SLICINGS["pairs"], PaperCost((technique,), rate))


@pytest.mark.parametrize(
    ("strategy", "trees", "cost"),
    [
        ("no_share", ((0,), (1,), (2,)), 5.5),  # the paper prints 11.6, a misprint
        ("weave_share", ((0, 2), (1,)), 4.3),
        ("shared", ((0, 1, 2),), 4.4),
    ],
)
def test_example_3_of_weave_share(strategy: str, trees: Trees, cost: float) -> None:
    example = problem([(16, 4), (10, 5), (8, 4)], rate=1.2)
    chosen = STRATEGIES[strategy].choose(example)
    assert chosen == trees
    assert example.cost(chosen) == pytest.approx(cost)


def greedy(example: SharingProblem) -> Trees:
    """Figure 2 of the paper, word for word: costs of all pairs again in every round."""
    trees = [(i,) for i in range(len(example.windows))]
    while len(trees) > 1:
        pairs = itertools.combinations(range(len(trees)), 2)
        gains = {
            (a, b): example.cost((trees[a],)) + example.cost((trees[b],)) - example.cost((trees[a] + trees[b],))
            for a, b in pairs
        }
        (a, b), gain = max(gains.items(), key=lambda item: item[1])
        if gain <= 1e-9:
            break
        merged = trees[a] + trees[b]
        trees = [tree for i, tree in enumerate(trees) if i not in (a, b)] + [merged]
    return tuple(sorted(tuple(sorted(tree)) for tree in trees))


def random_problem(rng: random.Random, queries: int, technique: str = "recalculate") -> SharingProblem:
    longest = rng.choice([12, 40, 1000, 100_000])
    windows = []
    for _ in range(queries):
        slide = rng.randint(1, longest)
        windows.append((max(1, round(slide * rng.uniform(0.5, 20))), slide))
    return problem(windows, 10 ** rng.uniform(-2, 2), technique)


@pytest.mark.parametrize("technique", ["recalculate", "flat_fit", "flat_fat", "slick_deque_inv", "block_decomposition"])
@pytest.mark.parametrize("seed", range(6))
def test_weave_share_finds_the_trees_of_the_papers_algorithm(technique: str, seed: int) -> None:
    example = random_problem(random.Random(seed), 9, technique)
    ours, papers = STRATEGIES["weave_share"].choose(example), greedy(example)
    assert ours == papers or example.cost(ours) == pytest.approx(example.cost(papers), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_weave_share_finds_them_on_marks_too(seed: int) -> None:
    rng = random.Random(seed)
    slides = [rng.choice([2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 20]) for _ in range(18)]
    example = problem([(rng.randint(1, 40), s) for s in slides], rate=rng.choice([0.5, 3.0]))
    assert len(example.bundles) > 12
    ours, papers = STRATEGIES["weave_share"].choose(example), greedy(example)
    assert ours == papers or example.cost(ours) == pytest.approx(example.cost(papers), rel=1e-9)


def test_exhaustive_costs_least_and_reweave_follows_it() -> None:
    rng = random.Random(7)
    for _ in range(25):
        example = random_problem(rng, 8, rng.choice(["recalculate", "slick_deque_inv", "flat_fat"]))
        costs = {name: example.cost(strategy.choose(example)) for name, strategy in STRATEGIES.items()}
        assert all(costs["exhaustive"] <= cost * (1 + 1e-9) for cost in costs.values()), costs
        assert costs["reweave"] == pytest.approx(costs["exhaustive"])
        assert costs["weave_share"] <= costs["no_share"] * (1 + 1e-9)


def test_exhaustive_is_the_best_of_all_partitions() -> None:
    def partitions(items: list[int]) -> Iterator[list[tuple[int, ...]]]:
        if not items:
            yield []
            return
        first, *rest = items
        for size in range(len(rest) + 1):
            for others in itertools.combinations(rest, size):
                left = [query for query in rest if query not in others]
                for trees in partitions(left):
                    yield [(first, *others), *trees]

    rng = random.Random(3)
    for _ in range(4):
        example = random_problem(rng, 6, "slick_deque_inv")
        best = min(example.cost(tuple(trees)) for trees in partitions(list(range(6))))
        assert example.cost(STRATEGIES["exhaustive"].choose(example)) == pytest.approx(best)


def test_exhaustive_says_how_many_windows_it_takes() -> None:
    example = problem([(10 + i, 7 + i) for i in range(13)], 1.0)
    with pytest.raises(WindloomError, match="at most 12 windows"):
        STRATEGIES["exhaustive"].choose(example)


def test_moves_alone_come_within_a_hundredth_of_the_best_on_nearly_all_small_sets() -> None:
    rng = random.Random(11)
    near = {"moves": 0, "weave_share": 0}
    for _ in range(200):
        example = random_problem(rng, rng.randint(2, 8))
        best = example.cost(STRATEGIES["exhaustive"].choose(example))
        woven = STRATEGIES["weave_share"].choose(example)
        moved = example.trees(refined(example, example.bundles_of(woven)))
        near["weave_share"] += example.cost(woven) <= 1.01 * best
        near["moves"] += example.cost(moved) <= 1.01 * best
    assert near["moves"] >= 190
    assert near["moves"] >= near["weave_share"]


@pytest.mark.parametrize(("queries", "rate"), [(40, 5.0), (60, 50.0), (80, 20.0)])
def test_reweave_is_never_worse_than_weave_share_and_better_on_source_as_workloads(queries: int, rate: float) -> None:
    example = SharingProblem(zipf_workload(queries), SLICINGS["pairs"], PaperCost(("recalculate",), rate))
    ours, woven = (example.cost(STRATEGIES[name].choose(example)) for name in ("reweave", "weave_share"))
    assert ours < woven


def test_tri_weave_charges_a_tree_for_partials_and_not_for_events() -> None:
    example = problem([(16, 4), (10, 5), (8, 4)], rate=1000.0)
    assert len(STRATEGIES["weave_share"].choose(example)) == 1
    trees = STRATEGIES["tri_weave"].choose(example)
    one_scan = example.one_scan()
    # Edges at multiples of 4 and of 5: 8 in 20 seconds. Reading the stream costs 1000 once, a tree 0.4.
    assert trees == ((0, 2), (1,))
    assert one_scan.cost(trees) == pytest.approx(1000 + (0.4 + 6 / 4) + (0.4 + 2 / 5))


def test_queries_of_equal_edges_are_bundled_where_costs_add_up() -> None:
    windows = [(8, 4), (16, 4), (20, 4), (20, 5), (5, 5)]  # of two queries with range 20, one is free in one tree
    assert len(problem(windows, 1.0).bundles) == 2
    assert len(problem(windows, 1.0, "slick_deque_inv").bundles) == 5
    assert len(problem(windows * 3, 1.0, "slick_deque_inv").bundles) == 5


def test_a_plan_that_needs_more_memory_than_allowed_says_so_first() -> None:
    example = SharingProblem(
        zipf_workload(300), SLICINGS["pairs"], PaperCost(("recalculate",), 1.0), memory_limit=100_000
    )
    for name in ("weave_share", "local_search", "reweave"):
        with pytest.raises(WindloomError, match="MiB"):
            STRATEGIES[name].choose(example)


def test_a_hundred_thousand_queries_are_planned_as_their_windows() -> None:
    windows = divisors_workload(100_000)
    example = SharingProblem(windows, SLICINGS["pairs"], PaperCost(("recalculate",), 1e4))
    trees = STRATEGIES["weave_share"].choose(example)
    assert sum(map(len, trees)) == 100_000
    tree_of = {windows[query]: number for number, tree in enumerate(trees) for query in tree}
    assert all(tree_of[windows[query]] == number for number, tree in enumerate(trees) for query in tree)
    assert 1 < len(trees) <= 16


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_partitions_the_queries(strategy: str) -> None:
    rng = random.Random(3)
    windows = [(rng.randint(1, 5000), rng.choice([7, 997, 1009, 60, 90])) for _ in range(11)]
    example = problem(windows + windows[:4], rate=100)
    trees = STRATEGIES[strategy].choose(example)
    assert sorted(i for tree in trees for i in tree) == list(range(15))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_order_of_queries_does_not_change_the_plan(strategy: str) -> None:
    windows = [(16, 4), (10, 5), (8, 4), (30, 6), (21, 7), (9, 3)]
    there, back = problem(windows, 5.0), problem(windows[::-1], 5.0)
    as_windows = [
        sorted(sorted(given.windows[i] for i in tree) for tree in STRATEGIES[strategy].choose(given))
        for given in (there, back)
    ]
    assert as_windows[0] == as_windows[1]


def test_an_unknown_strategy_names_the_known_ones() -> None:
    with pytest.raises(WindloomError, match="unknown strategy 'weave'"):
        find_strategy("weave")


def test_windows_of_years_beside_windows_of_seconds_have_a_cost_too() -> None:
    # Their edges are so rare that a sample of panes holds none of them.
    example = problem([(30, 10), (29, 7), (400 * 86_400, 90 * 86_400)], rate=1_000, technique="prefix_ring")
    chosen = STRATEGIES["weave_share"].choose(example)
    assert sorted(i for tree in chosen for i in tree) == [0, 1, 2]
    assert example.cost(chosen) <= example.cost(((0,), (1,), (2,)))
