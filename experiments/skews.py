"""Source A, figure 10: Weave Share against Shared by the skew of slides."""

from __future__ import annotations

from statistics import fmean

from experiments.pages import DIFFERS, REPRODUCED, Cell, Data, Figure, Page, Table, Verdict, spread
from experiments.plans import REPEATED, SETTINGS, ZipfCase, plan_zipf, saved, seeds_of
from windloom.explain.picture.line_charts import Series, line_chart

RATE, OVERLAP = 100.0, 10
FILE = "skews.csv"


def run(quick: bool) -> Page:
    counts = (20, 40) if quick else (50, 100)
    skews = (0.0, 1.0) if quick else (0.0, 0.6, 1.0, 2.0, 3.3)
    rows = []
    for n in counts:
        for skew in skews:
            for seed in seeds_of(n, quick):
                case = ZipfCase(n, RATE, OVERLAP, skew, seed)
                rows.append((n, skew, seed, saved(case), plan_zipf(case, "weave_share").trees))
    table = Table(("queries", "skew", "seed", "weave_share_over_shared", "trees"), rows)
    data = Data({FILE: table.csv()})
    series = [Series(f"{n:,} queries", [(s, 1 - fmean(_saved(data, n, s))) for s in skews]) for n in counts]
    chart = line_chart(series, y_label="cost of Weave Share / cost of Shared", x_label="skew toward long slides")
    shown: list[tuple[Cell, ...]] = [
        (n, *(f"{spread(_saved(data, n, s))}, {data.value(FILE, 'trees', queries=n, skew=s):.2g}" for s in skews))
        for n in counts
    ]
    return Page(
        title="Source A, figure 10: skew of slides",
        settings=f"{SETTINGS}λ = {RATE:g} events/s, range/slide up to {OVERLAP}. {REPEATED} The paper does not say "
        "which numbers of queries it drew.",
        claim="With the skew the gain first grows, to a maximum that is larger the more queries there are, and then "
        "falls until one tree is best.",
        figures=[Figure("skews.svg", "Figure 10: Weave Share's cost as a share of Shared's", chart)],
        tables=[("Saved against Shared, and trees, by skew", Table(("queries", *(f"{s:g}" for s in skews)), shown))],
        data={FILE: table},
        findings=f"Largest gains: {_peaks(data)}.",
        difference="At first, skew adds long slides beside the short ones, which it hurts to share a tree with; "
        "then the short ones vanish. An earlier version of this page, with every whole slide from 1 to 100,000 of "
        "10 ms, only fell: such a workload has few short slides even without skew.",
    )


def _saved(data: Data, queries: int, skew: float) -> list[float]:
    return [1 - share for share in data.values(FILE, "weave_share_over_shared", queries=queries, skew=skew)]


def _line(data: Data, queries: int) -> dict[float, float]:
    """The mean gain by skew."""
    skews = sorted({float(row["skew"]) for row in data.rows(FILE, queries=queries)})
    return {skew: fmean(_saved(data, queries, skew)) for skew in skews}


def _counts(data: Data) -> list[int]:
    return sorted({int(row["queries"]) for row in data.rows(FILE)})


def _peaks(data: Data) -> str:
    lines = {n: _line(data, n) for n in _counts(data)}
    peaks = {n: max(line, key=line.__getitem__) for n, line in lines.items()}
    return ", ".join(f"{lines[n][peak]:.0%} at {peak:g} for {n:,} queries" for n, peak in peaks.items())


def headline(data: Data) -> str:
    most = _counts(data)[-1]
    line = _line(data, most)
    peak, last = max(line, key=line.__getitem__), max(line)
    return (
        f"{most:,} queries: Weave Share saves {line[0.0]:.0%} at skew 0, most at {peak:g} ({line[peak]:.0%}), "
        f"{line[last]:.0%} at {last:g}."
    )


def verdicts(data: Data) -> list[Verdict]:
    lines = {n: _line(data, n) for n in _counts(data)}
    best = [max(line.values()) for line in lines.values()]
    rises = [max(line.values()) > line[0.0] + 0.005 for line in lines.values()]
    falls = [line[max(line)] < max(line.values()) for line in lines.values() if max(line.values()) > 0]
    holds = best == sorted(best) and all(falls) and rises[-1]
    return [
        Verdict(
            "A fig. 10",
            "the gain rises with the skew to a maximum, larger with more queries, then falls to none",
            f"largest gains {_peaks(data)}",
            REPRODUCED if holds and all(rises) else "trend only" if holds else DIFFERS,
            "the paper gives no numbers",
        )
    ]
