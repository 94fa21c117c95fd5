"""Plans of generated workloads by the papers' cost: what every experiment without data is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from time import perf_counter

from windloom.model.time import TICKS_PER_SECOND
from windloom.model.windows import Window
from windloom.optimizer.cost.papers import PaperCost
from windloom.optimizer.sharing.problem import SharingProblem
from windloom.optimizer.sharing.registry import Strategy, find_strategy
from windloom.optimizer.workloads import zipf_workload
from windloom.slicing.slicings import find_slicing

#: The paper draws slides from "pre-specified (i.e., template) window specifications" between 1 and 100,000. How many it
#: has, and what a slide of 1 lasts, it does not say: here five per power of ten, at equal ratios, and a second.
TEMPLATES = 26
#: Workloads per point, up to this many queries.
SEEDS, OFTEN = 5, 250
#: What the pages of source A say about their workload.
SETTINGS = (
    f"Slides Zipf over {TEMPLATES} templates at equal ratios, 1 s to 100,000 s (the paper draws from templates in this "
    "range; how many, and what a slide of 1 lasts, it does not say). "
)
REPEATED = (
    f"Means over {SEEDS} workloads per point (seeds 1 … {SEEDS}) with the lowest and the highest; one workload above "
    f"{OFTEN} queries, where a plan takes half a minute and more. The paper does not say how often it repeated a point."
)

#: Names in the papers.
TITLES = {
    "no_share": "No Share",
    "shared": "Shared",
    "random": "Random",
    "insert_then_weave": "Insert-then-Weave",
    "local_search": "Local Search",
    "weave_share": "Weave Share",
    "tri_weave": "TriWeave",
    "reweave": "Reweave (ours)",
}


@dataclass(frozen=True, slots=True)
class Planned:
    """One plan: operations per second, trees, and the seconds it took to find."""

    cost: float
    trees: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ZipfCase:
    """Source A's workload, Table 1."""

    queries: int
    rate: float
    overlap: float = 50
    skew: float = 0.6
    seed: int = 1

    def problem(self) -> SharingProblem:
        return problem_of(zipf_windows(self.queries, self.overlap, self.skew, self.seed), self.rate)


@cache
def zipf_windows(queries: int, overlap: float, skew: float, seed: int) -> tuple[Window, ...]:
    return zipf_workload(
        queries, most_overlap=overlap, skew=skew, seed=seed, unit=TICKS_PER_SECOND, templates=TEMPLATES
    )


def seeds_of(queries: int, quick: bool = False) -> range:
    """The workloads of a point: several, or one where a plan takes half a minute."""
    return range(1, 2 if quick or queries > OFTEN else SEEDS + 1)


def problem_of(windows: tuple[Window, ...], rate: float, technique: str = "recalculate") -> SharingProblem:
    return SharingProblem(windows, find_slicing("pairs"), PaperCost((technique,), rate))


def planned(problem: SharingProblem, strategy: str | Strategy) -> Planned:
    found = find_strategy(strategy) if isinstance(strategy, str) else strategy
    begun = perf_counter()
    trees = found.choose(problem)
    took = perf_counter() - begun
    costed = problem.one_scan() if found.name == "tri_weave" else problem
    return Planned(costed.cost(trees), len(trees), took)


@cache
def plan_zipf(case: ZipfCase, strategy: str) -> Planned:
    """Kept: several figures show the same case."""
    return planned(case.problem(), strategy)


@cache
def shared_cost(case: ZipfCase) -> float:
    """One tree at another rate has the same edges: C = λ + E·Ω, so it is counted once for all rates."""
    base = ZipfCase(case.queries, 1.0, case.overlap, case.skew, case.seed)
    return plan_zipf(base, "shared").cost - 1.0 + case.rate


def saved(case: ZipfCase) -> float:
    """Weave Share's cost as a share of Shared's."""
    return plan_zipf(case, "weave_share").cost / shared_cost(case)
