"""EXPLAIN SHARING as text: the predicted cost of every tree and query, what sharing saves, and why not more."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from windloom.explain.cost_views import SecondsView, work
from windloom.explain.joins import fold_text, partners_text
from windloom.explain.labels import strategy_name, techniques, tree_name
from windloom.explain.lines import WIDTH, fact, one_line, shorten, wrapped
from windloom.explain.slices import TIME, Measure, about, measure_of, rate_text
from windloom.explain.statistics import statistics_texts
from windloom.model.figures import amount, count, share
from windloom.model.query import Query
from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.costs import Advice, QueryShare, SetSeconds, SharingReport
from windloom.plan.physical import Member, PartialSet, Plan, Tree

_NAME_WIDTH = 28
_SHOWN_QUERIES = 8
_SHOWN_TREES = 8
_SHOWN_MERGERS = 3
_SHOW_ALL = "(loom.explain(sharing=True, queries=True) shows all)"


def sharing_text(plan: Plan, report: SharingReport, *, all_queries: bool = False) -> str:
    lines = [*_header(plan, report)]
    for partial_set, costs in zip(plan.sets, report.seconds.sets, strict=True):
        if partial_set.is_relation:  # a version is read once, whichever queries use it
            continue
        lines += ["", *_set_lines(plan, partial_set, costs)]
        shown = partial_set.trees if all_queries else partial_set.trees[:_SHOWN_TREES]
        for tree in shown:
            lines += ["", *_tree_lines(plan, partial_set, tree, report, all_queries)]
        if len(shown) < len(partial_set.trees):
            lines += ["", f"  … and {count(len(partial_set.trees) - len(shown), 'more tree')} {_SHOW_ALL}"]
    lines += _join_lines(plan, report, all_queries)
    return "\n".join(lines) + "\n"


def _header(plan: Plan, report: SharingReport) -> Iterator[str]:
    queries = count(sum(1 for _ in plan.queries), "query", "queries")
    trees = count(sum(1 for _ in plan.trees), "tree")
    yield f"Sharing: {queries}, {count(len(plan.sets), 'set')} of partials, {trees}"
    yield f"  strategy {strategy_name(plan)}, slicing {plan.slicing}, technique {plan.technique}"
    parts = {**report.queries, **report.joins}
    rows = {planned.name for planned in plan.rows}
    total = report.seconds.total
    alone = sum(parts[query.name].alone for query in plan.queries if query.name not in rows)
    yield f"  predicted {work(total)} of event time (constants: {report.seconds.source})"
    if alone > 0:
        yield f"  every query alone: {work(alone)}; sharing saves {share(max(0.0, 1 - total / alone))}"
    if report.seconds.job:
        yield f"  of this {work(report.seconds.job)} to start a Spark job per round"
    yield from _row_lines(plan)


def _row_lines(plan: Plan) -> Iterator[str]:
    """Names the row queries: what is predicted of them is what is kept, not how long making their rows takes."""
    if not plan.rows:
        return
    are = "is" if len(plan.rows) == 1 else "are"
    names = [shorten(one_line(planned.name), _NAME_WIDTH) for planned in plan.rows[:_SHOWN_QUERIES]]
    more = f" and {len(plan.rows) - len(names):,} more" if len(names) < len(plan.rows) else ""
    left_out = f"{count(len(plan.rows), 'row query', 'row queries')} {are} not among these figures"
    yield from wrapped(f"{left_out}: {', '.join(names)}{more}", "  ", "    ")


def _set_lines(plan: Plan, partial_set: PartialSet, costs: SetSeconds) -> Iterator[str]:
    known = partial_set.statistics
    yield shorten(f"Set {partial_set.number}: partials of {one_line(partial_set.stream)}", WIDTH)
    strategy = f"{partial_set.strategy}, chosen by predicted time" if plan.strategy == "auto" else partial_set.strategy
    yield from fact("strategy", strategy)
    for label, text in zip(("statistics", ""), statistics_texts(partial_set), strict=True):
        yield from fact(label, text)
    held = known.events_per_second / (partial_set.edges.edges_per_second * known.groups)
    rate = rate_text(partial_set, partial_set.edges)
    yield from fact(
        "slices", f"{rate}, {about(partial_set.edges)}{amount(held, 'tuple')} per slice and group{_thin(held)}"
    )
    yield from fact("once for all", f"{work(costs.scan)} to scan, {work(costs.partials)} to bring partials over,")
    yield from fact("", f"{work(costs.merge)} to put them in order: {share(costs.shared / costs.total)} of the set")


def _thin(held: float) -> str:
    if held >= 2:
        return ""
    return ": slicing hardly reduces, so more edges cost little and coarser trees save little"


def _tree_lines(
    plan: Plan, partial_set: PartialSet, tree: Tree, report: SharingReport, everything: bool
) -> Iterator[str]:
    yield f"  {tree_name(plan, partial_set, tree).capitalize()}: {count(len(tree.queries), 'query', 'queries')}"
    measure = measure_of(partial_set)
    yield from fact("slices", rate_text(partial_set, tree.edges), 4)
    if len(tree.queries) > 1 and partial_set.window.is_sliced:
        common = share(report.common[partial_set.number, tree.number])
        yield from fact("weaveability", f"{about(tree.edges)}{common} of its queries' edges are common", 4)
    for label, text in SecondsView(plan, report.seconds).tree_facts(partial_set, tree):
        yield from fact(label, text, 4)
    yield from fact("technique", techniques(partial_set, tree, tree.queries), 4)
    label = "apart from"
    for merger in report.mergers.get((partial_set.number, tree.number), ())[:_SHOWN_MERGERS]:
        other = partial_set.trees[merger.other]
        common = f"{share(merger.weaveability)} of the edges are common"
        more = f"one tree for both would take {work(abs(merger.more))} {'more' if merger.more >= 0 else 'less'}"
        reason = f"{common}; {more}{_foreign(tree, other, tree_name(plan, partial_set, other), measure)}"
        yield from fact(
            label,
            f"{tree_name(plan, partial_set, other)} ({count(len(other.queries), 'query', 'queries')}): {reason}",
            4,
        )
        label = ""
    yield ""
    shown = tree.queries
    if not everything and len(shown) > _SHOWN_QUERIES:
        shown = tuple(sorted(shown, key=lambda each: (-report.queries[each.name].seconds, each.name))[:_SHOWN_QUERIES])
    slides = {each.name: each.query.window.slide_ticks for each in partial_set.queries}
    yield from _query_lines(shown, slides, report, measure)
    if len(shown) < len(tree.queries):
        yield f"    … and {len(tree.queries) - len(shown):,} that cost less {_SHOW_ALL}"


def _join_lines(plan: Plan, report: SharingReport, everything: bool) -> Iterator[str]:
    """Every join with its part of the plan's cost; if there are many, only the most expensive ones."""
    if not plan.joins:
        return
    ordered = sorted(plan.joins, key=lambda join: (-report.joins[join.name].seconds, join.name))
    shown = ordered if everything or len(ordered) <= _SHOWN_QUERIES else ordered[:_SHOWN_QUERIES]
    yield ""
    yield f"Joins: {count(len(plan.joins), 'query', 'queries')}"
    for join in shown:
        found = report.joins[join.name]
        part = f"{work(found.seconds)}, {share(found.seconds / report.seconds.total)} of the plan"
        fold = f"of this {work(report.seconds.folds[join.name])} to fold"
        yield from wrapped(
            f"{part}, {fold}; {_saves(found)}", f"  {shorten(one_line(join.name), _NAME_WIDTH)}  ", "      "
        )
        yield from wrapped(fold_text(plan, join), "      ", "      ")
        for side, place in zip(join.join.sides, join.sides, strict=True):
            yield from wrapped(f"{side.alias}: {partners_text(plan, join, place)}", "      ", "        ")
    if len(shown) < len(ordered):
        yield f"  … and {len(ordered) - len(shown):,} that cost less {_SHOW_ALL}"


def _foreign(tree: Tree, other: Tree, whose: str, measure: Measure) -> str:
    """The slides that keep two trees apart, the shortest of each."""
    left, right = (min(each.query.window.slide_ticks for each in both.queries) for both in (tree, other))
    if left % right == 0 or right % left == 0:
        return ""
    return f" ({relation(left, right, whose, measure)})"


def relation(left: int, right: int, whose: str, measure: Measure = TIME) -> str:
    """
    >>> relation(7_000_000, 10_000_000, "tree 0"), relation(6_000_000, 10_000_000, "tree 0")
    ("slide 7 s is coprime to tree 0's 10 s", "slide 6 s and tree 0's 10 s have only 2 s in common")
    """
    common = gcd(left, right)
    if common == (1 if measure.is_of_positions else _unit(left, right)):
        return f"slide {measure.short(left)} is coprime to {whose}'s {measure.short(right)}"
    both = f"slide {measure.short(left)} and {whose}'s {measure.short(right)}"
    return f"{both} have only {measure.short(common)} in common"


def _unit(left: int, right: int) -> int:
    """The longest unit of time of which both are whole multiples."""
    for seconds in (86_400, 3_600, 60, 1):
        ticks = seconds * TICKS_PER_SECOND
        if left % ticks == 0 and right % ticks == 0:
            return ticks
    return 1_000 if left % 1_000 == 0 and right % 1_000 == 0 else 1


def _query_lines(
    queries: tuple[Member, ...], slides: dict[str, int], report: SharingReport, measure: Measure
) -> Iterator[str]:
    names = [shorten(one_line(planned.name), _NAME_WIDTH) for planned in queries]
    windows = [str(planned.query.window) for planned in queries]
    name_width, window_width = max(map(len, names)), max(map(len, windows))
    for planned, name, window in zip(queries, names, windows, strict=True):
        found = report.queries[planned.name]
        part = f"{work(found.seconds)}, {share(found.seconds / report.seconds.total)} of the plan"
        head = f"    {name:{name_width}}  {window:{window_width}}  "
        indent = " " * (6 + name_width)
        yield from wrapped(f"{part}; {_saves(found)}", head, indent)
        for line in _why(planned.query, found, slides, measure):
            yield from wrapped(line, indent, indent)


def _saves(found: QueryShare) -> str:
    if found.saved <= 0:
        return f"alone {work(found.alone)}: sharing saves it nothing"
    return f"alone {work(found.alone)}: sharing saves {share(found.saved)}"


def _why(query: Query, found: QueryShare, slides: dict[str, int], measure: Measure) -> Iterator[str]:
    if found.added_edges_per_second <= 0:
        return
    said = f"adds {amount(found.added_edges_per_second, 'edge/s', 'edges/s')} that no other query needs"
    slide = query.window.slide_ticks
    if found.hindrance is not None:
        said += f": {relation(slide, slides[found.hindrance[0]], one_line(found.hindrance[0]), measure)}"
    elif query.window.range_ticks % slide:
        said += ": its range is not a multiple of its slide"
    if found.advice:
        said += f"; {_advice(found.advice, found.seconds, measure)}"
    yield said


def _advice(advice: tuple[Advice, ...], seconds: float, measure: Measure) -> str:
    least = min(each.saves for each in advice) / seconds
    slides = " or ".join(measure.short(each.slide_ticks) for each in advice)
    return f"a slide of {slides} would save {'' if len(advice) == 1 else 'at least '}{share(least)} of its cost"
