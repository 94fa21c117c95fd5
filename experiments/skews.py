"""Source A, figure 10: Weave Share against Shared by the skew of slides."""

from __future__ import annotations

from experiments.pages import Figure, Page, Table
from experiments.plans import ZipfCase, plan_zipf, saved
from windloom.report import Series, line_chart


def run(quick: bool) -> Page:
    counts = (20, 40) if quick else (50, 100, 250)
    skews = (0.0, 1.0, 3.3) if quick else (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.3)
    cases = [ZipfCase(n, 100.0, 10, skew) for n in counts for skew in skews]
    found = {(case.queries, case.skew): (saved(case), plan_zipf(case, "weave_share").trees) for case in cases}
    series = [Series(f"{n} queries", [(skew, found[n, skew][0]) for skew in skews]) for n in counts]
    chart = line_chart(series, y_label="cost of Weave Share / cost of Shared", x_label="skew toward long slides")
    rows = [(n, *(f"{1 - found[n, skew][0]:.0%}, {found[n, skew][1]}" for skew in skews)) for n in counts]
    best = {n: max(skews, key=lambda skew, n=n: 1 - found[n, skew][0]) for n in counts}  # type: ignore[misc]
    most = counts[-1]
    peaks = ", ".join(f"{1 - found[n, best[n]][0]:.0%} at {best[n]:g} for {n} queries" for n in counts)
    return Page(
        title="Source A, figure 10: skew of slides",
        summary=f"{most} queries: Weave Share saves {1 - found[most, 0.0][0]:.0%} at skew 0, most at {best[most]:g} "
        f"({1 - found[most, best[most]][0]:.0%}), {1 - found[most, skews[-1]][0]:.0%} at {skews[-1]:g}.",
        settings="λ = 100 events/s, range/slide up to 10, slides Zipf over 1 … 100,000, a slide of 1 lasts 10 ms, seed 1, one "
        "workload a point. The paper does not say which numbers of queries it drew.",
        claim="With the skew the gain first grows, to a maximum that is larger the more queries there are, and then falls "
        "until one tree is best.",
        figures=[Figure("skews.svg", "Figure 10: Weave Share's cost as a share of Shared's", chart)],
        tables=[("Saved against Shared, and trees, by skew", Table(("queries", *(f"{s:g}" for s in skews)), rows))],
        data={
            "skews.csv": Table(
                ("queries", "skew", "weave_share_over_shared", "trees"), [(*key, *one) for key, one in found.items()]
            )
        },
        findings=f"Largest gains: {peaks}.",
        difference="The fall to one tree comes out. Before it, lines are not smooth: a workload is one draw, and a single "
        "query with a very short slide decides what one tree costs; the paper does not say over how many draws it averaged.",
    )
