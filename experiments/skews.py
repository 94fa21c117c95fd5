"""Source A, figure 10: Weave Share against Shared by the skew of slides."""

from __future__ import annotations

from statistics import fmean

from experiments.pages import Figure, Page, Table
from experiments.plans import ZipfCase, plan_zipf, saved
from windloom.explain.picture.line_charts import Series, line_chart

#: Workloads per point; beyond skew LONG one, and none with more than MANY queries: nearly all slides are then close to
#: the longest, and a plan takes half a minute.
SEEDS, LONG, MANY = 3, 1.5, 100

Found = dict[tuple[int, float], tuple[float, float]]


def run(quick: bool) -> Page:
    counts = (20, 40) if quick else (50, 100, 250)
    skews = (0.0, 1.0) if quick else (0.0, 0.3, 0.6, 1.0, 1.5, 2.0, 3.3)
    found: Found = {}
    for n in counts:
        for skew in skews:
            if n <= MANY or skew <= LONG:
                found[n, skew] = _mean(n, skew, 1 if quick or skew > LONG else SEEDS)
    series = [
        Series(f"{n} queries", [(skew, found[n, skew][0]) for skew in skews if (n, skew) in found]) for n in counts
    ]
    chart = line_chart(series, y_label="cost of Weave Share / cost of Shared", x_label="skew toward long slides")
    rows = [(n, *(_shown(found.get((n, skew))) for skew in skews)) for n in counts]
    best = {n: min((part, skew) for (m, skew), (part, _) in found.items() if m == n)[1] for n in counts}
    most = counts[-1]
    last = max(skew for n, skew in found if n == most)
    peaks = ", ".join(f"{1 - found[n, best[n]][0]:.0%} at {best[n]:g} for {n} queries" for n in counts)
    return Page(
        title="Source A, figure 10: skew of slides",
        summary=f"{most} queries: Weave Share saves {1 - found[most, 0.0][0]:.0%} at skew 0, most at {best[most]:g} "
        f"({1 - found[most, best[most]][0]:.0%}), {1 - found[most, last][0]:.0%} at {last:g}.",
        settings="λ = 100 events/s, range/slide up to 10, slides Zipf over 1 … 100,000, a slide of 1 lasts 10 ms, "
        "mean of "
        f"{SEEDS} workloads per point (seeds 1 … {SEEDS}), one beyond skew {LONG}, and there at most {MANY} queries, "
        f"for time. "
        "The paper does not say which numbers of queries it drew, nor how many workloads per point.",
        claim="With the skew the gain first grows, to a maximum that is larger the more queries there are, and then "
        "falls "
        "until one tree is best.",
        figures=[Figure("skews.svg", "Figure 10: Weave Share's cost as a share of Shared's", chart)],
        tables=[("Saved against Shared, and trees, by skew", Table(("queries", *(f"{s:g}" for s in skews)), rows))],
        data={
            "skews.csv": Table(
                ("queries", "skew", "weave_share_over_shared", "trees"),
                [(*key, *values) for key, values in found.items()],
            )
        },
        findings=f"Largest gains: {peaks}.",
        difference="The fall to one tree (50 and 100 queries) and larger gains for more queries come out. "
        "The rise before it does not: "
        "here the "
        "gain is largest where there is little skew. With a slide of 1 at 10 ms and 100 events/s, what one tree "
        "costs is decided by its few shortest slides, and every bit of skew makes these rarer. A workload of 100,000 "
        "possible slides has few short ones even at skew 0; where the paper's maximum lies it does not say in numbers.",
    )


def _mean(queries: int, skew: float, seeds: int) -> tuple[float, float]:
    cases = [ZipfCase(queries, 100.0, 10, skew, seed) for seed in range(1, seeds + 1)]
    return fmean(saved(case) for case in cases), fmean(plan_zipf(case, "weave_share").trees for case in cases)


def _shown(gain: tuple[float, float] | None) -> str | None:
    return None if gain is None else f"{1 - gain[0]:.0%}, {gain[1]:.2g}"
