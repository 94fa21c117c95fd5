"""Finding plans: seconds, memory, cost against the best there is; without Spark."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numba
import numpy as np

from bench.measure import Outcome, seconds
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.windows import TimeWindow, Window
from windloom.optimizer.cost.papers import PaperCost
from windloom.optimizer.sharing.incremental_plan import IncrementalPlan
from windloom.optimizer.sharing.problem import SharingProblem
from windloom.optimizer.sharing.registry import STRATEGIES
from windloom.optimizer.sharing.reweave import refined
from windloom.optimizer.workloads import zipf_workload
from windloom.slicing.slicings import SLICINGS

#: Panes of the naive bit set. The true composite slide of these queries fits in no memory.
NAIVE_PANES = 1 << 22


def problem_of(windows: tuple[Window, ...], rate: float) -> SharingProblem:
    return SharingProblem(windows, SLICINGS["pairs"], PaperCost(("recalculate",), rate))


def told(*options: object) -> dict[str, object]:
    command = [sys.executable, "-m", "windloom", "plan", *map(str, options), "--json"]
    found: dict[str, object] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return found


def divisors(queries: int, bar: float) -> Outcome:
    told("--workload", "divisors", "--queries", 20, "--strategy", "weave_share")  # compiles
    found = told("--workload", "divisors", "--queries", queries, "--rate", 1000, "--strategy", "weave_share")
    memory = float(str(found["peak_memory_bytes"])) / 2**30
    note = f"{found['tree_count']} trees, peak memory {memory:.2f} GiB"
    return Outcome(f"Weave Share, {queries:,} divisor queries", float(str(found["seconds"])), "s", bar, "<=", note)


def ten_thousand(repeats: int) -> Outcome:
    return divisors(10_000, 5)


def million(repeats: int) -> Outcome:
    return divisors(1_000_000, 60)


def zipf(repeats: int) -> Outcome:
    """Seconds of a plan, and how far the cost by drawn edges is from the cost counted as well as can be."""
    example = problem_of(zipf_workload(1000), 300.0)
    STRATEGIES["weave_share"].choose(problem_of(zipf_workload(20), 300.0))  # compiles
    found: list[object] = []
    took = seconds(lambda: found.append(STRATEGIES["weave_share"].choose(example)))
    trees = found[0]
    groups = example.bundles_of(trees)  # type: ignore[arg-type]
    drawn = example.model.tree_cost(example.load(groups), example.counter.rates(groups))
    counted = example.tree_costs(trees)  # type: ignore[arg-type]
    edges = [example.union(example.bundle_edges[i] for i in group).density for group in groups]
    exact = [i for i, count in enumerate(edges) if count.exact]
    bound = max(count.error / float(count.value) for count in edges)
    note = (
        f"{len(groups)} trees; cost off by {abs(drawn.sum() / counted.sum() - 1):.1e}, on the {len(exact)} trees "
        f"counted exactly by {max(abs(drawn[exact] / counted[exact] - 1), default=0.0):.1e}; "
        f"error of the others' rates below {bound:.1e}"
    )
    return Outcome("Weave Share, 1,000 Zipf queries", took, "s", 60, "<=", note)


@numba.njit(cache=False)
def _marked(periods: object, residues: object, bits: object) -> int:  # pragma: no cover
    bits[:] = False  # type: ignore[index]
    for i in range(len(periods)):  # type: ignore[arg-type]
        bits[residues[i] :: periods[i]] = True  # type: ignore[index]
    count = 0
    for bit in bits:  # type: ignore[attr-defined]
        count += bit
    return count


def naive(repeats: int) -> Outcome:
    """Figure 2 without look-up table, bitmap or caches: every pair counted from scratch in every round.

    All rounds would take hours. The pairs of a round are timed on a sample, along the mergers that ours makes.
    """
    windows = zipf_workload(250, most_overlap=10, skew=0.7)
    example = problem_of(windows, 100.0)
    STRATEGIES["weave_share"].choose(problem_of(windows[:20], 100.0))  # compiles
    ours = min(seconds(lambda: STRATEGIES["weave_share"].choose(problem_of(windows, 100.0))) for _ in range(3))
    trees = example.bundles_of(STRATEGIES["weave_share"].choose(example))
    unit = TICKS_PER_SECOND // 100
    classes = [
        [(edge_class.period // unit, edge_class.residue // unit) for edge_class in edges.classes]
        for edges in example.bundle_edges
    ]
    bits, rng, total, pairs = np.zeros(NAIVE_PANES, np.bool_), random.Random(1), 0.0, 0

    def pair(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
        for both in (left, right, left + right):
            periods, residues = (np.array(column, np.int64) for column in zip(*both, strict=True))
            _marked(periods, residues, bits)

    pair(classes[0], classes[1])  # compiles
    final = [[edge_class for i in group for edge_class in classes[i]] for group in trees]
    for alive in range(len(classes), len(trees), -1):
        # So many trees are left: those that end large have grown in proportion.
        grown = (len(classes) - alive) / max(1, len(classes) - len(trees))
        state = [tree[: max(2, int(len(tree) * grown))] for tree in final]
        state += [classes[i] for i in range(alive - len(final))]
        if alive % 25 == 0 or alive == len(classes):
            sampled = [rng.sample(state, 2) for _ in range(10)]
            each = statistics.mean(seconds(partial(pair, *drawn)) for drawn in sampled)
        total += each * alive * (alive - 1) / 2
        pairs += alive * (alive - 1) // 2
    note = f"ours {ours:.2f} s, naive {total:,.0f} s: {pairs:,} pairs, timed on a sample of each 25th round"
    return Outcome("against naive Weave Share, 250 queries", total / ours, "×", 1000, ">=", note)


def reweave(repeats: int) -> Outcome:
    """Source A's workloads: never worse than Weave Share, better on a third or more."""
    better, gains = 0, []
    cases = [(n, rate, 50.0, 0.6) for n in (50, 100, 250) for rate in (50.0, 300.0, 2000.0, 10_000.0)]
    cases += [(250, 100.0, 10.0, skew) for skew in (0.0, 0.7, 1.5, 3.0)] + [(500, 300.0, 50.0, 0.6)]
    for queries, rate, overlap, skew in cases:
        example = problem_of(zipf_workload(queries, most_overlap=overlap, skew=skew), rate)
        woven, ours = (example.cost(STRATEGIES[name].choose(example)) for name in ("weave_share", "reweave"))
        assert ours <= woven, (queries, rate, overlap, skew)
        better += ours < woven * (1 - 1e-6)
        gains.append(1 - ours / woven)
    saved = f"saves {np.mean(gains):.1%} on average, {max(gains):.1%} at most"
    note = f"better on {better} of {len(cases)}, worse on none; {saved}"
    return Outcome("reweave better than Weave Share", better / len(cases), "", 1 / 3, ">=", note)


def small_sets(repeats: int) -> Outcome:
    rng, off = random.Random(5), {"weave_share": [], "moves alone": [], "reweave": []}  # type: ignore[var-annotated]
    for _ in range(200):
        longest, windows = rng.choice([12, 60, 1000, 100_000]), []
        for _ in range(rng.randint(2, 8)):
            slide = rng.randint(1, longest)
            length = max(1, round(slide * rng.uniform(1, 20)))
            windows.append(TimeWindow(length * TICKS_PER_SECOND, slide * TICKS_PER_SECOND))
        example = problem_of(tuple(windows), 10 ** rng.uniform(-2, 3))
        best = example.cost(STRATEGIES["exhaustive"].choose(example))
        woven = STRATEGIES["weave_share"].choose(example)
        off["weave_share"].append(example.cost(woven) / best - 1)
        off["moves alone"].append(example.cost(example.trees(refined(example, example.bundles_of(woven)))) / best - 1)
        off["reweave"].append(example.cost(STRATEGIES["reweave"].choose(example)) / best - 1)
    near = {name: float(np.mean(np.array(each) <= 0.01)) for name, each in off.items()}
    note = "; ".join(f"{name} {near[name]:.1%}, at most {max(each):.2%} off" for name, each in off.items())
    return Outcome("200 sets of ≤ 8 queries within 1 % of best", near["reweave"], "", 0.95, ">=", note)


def incremental(repeats: int) -> Outcome:
    windows = zipf_workload(1_050, seed=4)
    example = problem_of(windows[:1000], 300.0)
    plan = IncrementalPlan.of(example, STRATEGIES["weave_share"].choose(example), 0.1, in_background=True)
    plan.add(windows[1000])  # compiles
    times = [1000 * seconds(partial(plan.add, window)) for window in windows[1001:]]
    note = f"median of {len(times)}; longest {max(times):.1f} ms"
    return Outcome("one query more on a plan of 1,000", statistics.median(times), "ms", 20, "<=", note)


PLANS: dict[str, Callable[[int], Outcome]] = {
    "plan_10k": ten_thousand,
    "plan_million": million,
    "plan_zipf": zipf,
    "plan_naive": naive,
    "plan_reweave": reweave,
    "plan_small_sets": small_sets,
    "plan_incremental": incremental,
}
