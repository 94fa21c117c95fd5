"""Source A, figure 11: Incremental Weave Share, how far plans are off against how much work they took."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from experiments.pages import DIFFERS, TREND, Data, Figure, Page, Table, Verdict
from experiments.plans import problem_of
from windloom.explain.picture.line_charts import Series, line_chart
from windloom.model.windows import Window
from windloom.optimizer.cost.papers import Load, PaperCost
from windloom.optimizer.sharing.incremental_plan import IncrementalPlan
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import find_strategy
from windloom.optimizer.workloads import zipf_workload
from windloom.slicing.slicings import find_slicing

RATE = 50.0
FILE = "incremental.csv"
TOLERANCES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, inf)


@dataclass(slots=True)
class CountingCost:
    """The papers' cost; counts the trees it was asked about, the comparisons of the paper."""

    model: PaperCost
    asked: int = 0
    name: str = "paper"
    unit: str = "operations per second"

    def tree_cost(self, load: Load, edges_per_second: NDArray[np.float64]) -> NDArray[np.float64]:
        self.asked += len(edges_per_second)
        return self.model.tree_cost(load, edges_per_second)


@dataclass(frozen=True, slots=True)
class Followed:
    """Queries came one by one: costs at some of the steps, trees costed, full plans made."""

    costs: tuple[float, ...]
    comparisons: int
    full_plans: int


def run(quick: bool) -> Page:
    first, last, every = (10, 20, 5) if quick else (50, 130, 8)
    tolerances = (0.0, 0.1, inf) if quick else TOLERANCES
    windows = zipf_workload(last, most_overlap=50, skew=0.6, seed=1)
    counted = _Counted(windows)
    found = {epsilon: _follow(windows, counted, first, every, epsilon) for epsilon in tolerances}
    # Without tolerance every plan is a full one: what the others are measured against.
    full = found[0.0].costs
    error = {e: fmean(a / b - 1 for a, b in zip(outcome.costs, full, strict=True)) for e, outcome in found.items()}
    rows = [
        (
            _shown(e),
            outcome.comparisons,
            outcome.full_plans,
            f"{error[e]:.1%}",
            f"{outcome.comparisons / found[0.0].comparisons:.1%}",
        )
        for e, outcome in found.items()
    ]
    # Infinity has no place on an axis, and a log axis has none for an error of zero.
    points: list[tuple[float, float | None]] = sorted(
        (outcome.comparisons, 100 * error[e]) for e, outcome in found.items()
    )
    chart = line_chart(
        [Series("ε from ∞ to 0", points)], y_label="mean relative error, %", x_label="comparisons", log_x=True
    )
    return Page(
        title="Source A, figure 11: incremental plans",
        settings=f"A Weave Share plan of {first} queries, then {last - first} more, one by one; λ = {RATE:.0f}, skew "
        f"0.6, "
        f"range/slide up to 50, every whole slide up to 100,000 of 10 ms (not templates, as in figures 4 to 10), one "
        f"workload (seed 1). Plans are costed at every {every}th query and "
        f"compared "
        "with full plans of the same queries. Comparisons are trees whose cost was asked for. The paper gives "
        "neither its "
        "workload nor its numbers; the text of its figure breaks off.",
        claim="The tolerance ε trades overhead (comparisons) for the deviation from a full plan: ε = 0 always plans "
        "anew, ε = ∞ "
        "never.",
        figures=[Figure("incremental.svg", "Figure 11: deviation against overhead", chart)],
        tables=[
            (
                "By tolerance",
                Table(("ε", "comparisons", "full plans", "mean error", "comparisons / those of ε = 0"), rows),
            )
        ],
        data={
            FILE: Table(
                ("epsilon", "comparisons", "full_plans", "mean_error"),
                [(_shown(e), outcome.comparisons, outcome.full_plans, error[e]) for e, outcome in found.items()],
            )
        },
        findings="",
        difference="The trade is the paper's; its numbers are not in the text we have. The error may exceed ε, and "
        "need not fall with it: ε bounds the distance from what the slope of the last two full plans lets expect, "
        "not from a "
        "full plan. Costs grow more slowly than that slope here, and a full plan at one moment may serve later queries "
        "better than one at another.",
    )


class _Counted:
    """True costs, edges counted anew; problems are kept, as all tolerances share them."""

    def __init__(self, windows: tuple[Window, ...]) -> None:
        self._problem = cache(lambda queries: problem_of(windows[:queries], RATE))

    def cost(self, queries: int, trees: Trees) -> float:
        return self._problem(queries).cost(trees)


def _follow(windows: tuple[Window, ...], counted: _Counted, first: int, every: int, epsilon: float) -> Followed:
    start = SharingProblem(windows[:first], find_slicing("pairs"), PaperCost(("recalculate",), RATE))
    model = CountingCost(PaperCost(("recalculate",), RATE))
    begun = SharingProblem(start.windows, start.slicing, model)
    plan = IncrementalPlan.of(begun, find_strategy("weave_share").choose(start), epsilon)
    model.asked = 0
    costs = []
    for queries in range(first + 1, len(windows) + 1):
        plan.add(windows[queries - 1])
        if (queries - first) % every == 0:
            costs.append(counted.cost(queries, tuple(sorted(plan.trees.values()))))
    return Followed(tuple(costs), model.asked, plan.full_plans - 1)


def _shown(epsilon: float) -> str:
    return "∞" if epsilon == inf else f"{epsilon:g}"


def _overhead(data: Data, epsilon: str) -> float:
    """The comparisons, as a share of those of planning anew at every query."""
    return data.value(FILE, "comparisons", epsilon=epsilon) / data.value(FILE, "comparisons", epsilon="0")


def headline(data: Data) -> str:
    tenth, never = (data.value(FILE, "mean_error", epsilon=epsilon) for epsilon in ("0.1", "∞"))
    return (
        f"ε = 0.1 takes {_overhead(data, '0.1'):.1%} of the comparisons of planning anew at every query, and its plans "
        f"cost {tenth:.1%} more; ε = ∞ {_overhead(data, '∞'):.2%} and {never:.1%}."
    )


def verdicts(data: Data) -> list[Verdict]:
    errors = {epsilon: data.value(FILE, "mean_error", epsilon=epsilon) for epsilon in ("0.01", "0.2", "∞")}
    trades = errors["0.01"] <= errors["∞"] and _overhead(data, "0.01") >= _overhead(data, "∞")
    return [
        Verdict(
            "A fig. 11",
            "ε trades comparisons for deviation from the full plan (no numbers in the text)",
            "; ".join(f"ε = {each}: {_overhead(data, each):.2%}, {errors[each]:.1%}" for each in errors),
            TREND if trades else DIFFERS,
            "the text of the figure breaks off; one workload",
        )
    ]
