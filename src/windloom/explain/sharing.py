"""What queries share, and EXPLAIN SHARING: the cost of every tree and query, what sharing saves, and why not more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

from windloom.explain.costs import SecondsView, work
from windloom.explain.joins import fold_text, partners_text
from windloom.explain.words import (
    TIME,
    WIDTH,
    Measure,
    about,
    component_name,
    counting,
    fact,
    grouping,
    listing,
    measure_of,
    one_line,
    predicate_text,
    rate_text,
    shorten,
    statistics_json,
    statistics_texts,
    strategy_name,
    techniques,
    tree_name,
    wrapped,
)
from windloom.model.aggregate import COUNT_STAR, Component
from windloom.model.figures import amount, count, share
from windloom.model.query import Query
from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.costs import Advice, QueryShare, SetSeconds, SharingReport
from windloom.plan.identity import Difference
from windloom.plan.physical import Member, PartialSet, Plan, Tree
from windloom.slicing.edges import weaveability

_SHOWN_COMPONENTS = 3


@dataclass(frozen=True, slots=True)
class SharedComponent:
    """A component of one query, and how many other queries use it."""

    component: Component
    in_tree: int
    in_set: int


@dataclass(frozen=True, slots=True)
class Sharing:
    """What one query shares: slices with its tree, partials with its set."""

    in_tree: int  # other queries of the tree: they share slices
    in_set: int  # other queries of the set: they share the scan and the partials
    same_window: int  # other queries of the tree with the very same window
    components: tuple[SharedComponent, ...]  # COUNT(*) is used by every query, and comes last


@dataclass(frozen=True, slots=True)
class Apart:
    """Queries that share nothing (another set), or no slices (another tree), with a query, and why."""

    place: str
    queries: int
    reason: str


def used_components(query: Query) -> tuple[Component, ...]:
    """The components that a query reads: those of its aggregates, and COUNT(*), which shows the windows with a row."""
    return (*(component for component in query.components if component != COUNT_STAR), COUNT_STAR)


def asked(partial_set: PartialSet) -> Counter[Component]:
    """For each component, the number of queries of a set that ask for it themselves."""
    return Counter(component for planned in partial_set.queries for component in planned.query.components)


def sharing(plan: Plan) -> dict[str, Sharing]:
    """What every query shares, by name."""
    found: dict[str, Sharing] = {}
    for partial_set in plan.sets:
        of_set = _used(partial_set.queries)
        for tree in partial_set.trees:
            of_tree = _used(tree.queries)
            windows = Counter(planned.query.window for planned in tree.queries)
            for planned in tree.queries:
                found[planned.name] = Sharing(
                    len(tree.queries) - 1,
                    of_set[COUNT_STAR] - 1,
                    windows[planned.query.window] - 1,
                    tuple(
                        SharedComponent(component, of_tree[component] - 1, of_set[component] - 1)
                        for component in used_components(planned.query)
                    ),
                )
    return found


def _used(queries: Iterable[Member]) -> Counter[Component]:
    return Counter(component for planned in queries for component in used_components(planned.query))


def shares_text(shared: Sharing, tree: str) -> str:
    """A short text, such as `shares slices with 41 queries of tree 0; sum(price) with 12, count(*) with all`."""
    if shared.in_set == 0:
        return "shares no partials: alone in its set"
    if shared.in_tree == 0:
        parts = _by_partners(
            [(shared_component.component, shared_component.in_set) for shared_component in shared.components],
            shared.in_set,
        )
        return f"shares no slices; of the partials of its set {parts}"
    parts = _by_partners(
        [(shared_component.component, shared_component.in_tree) for shared_component in shared.components],
        shared.in_tree,
    )
    return f"shares slices with {count(shared.in_tree, 'query', 'queries')} of {tree}; {parts}"


def _by_partners(partners: list[tuple[Component, int]], everyone: int) -> str:
    """Components that are used by the same number of other queries are listed together, the most shared last."""
    together: dict[int, list[str]] = {}
    for component, others in partners:
        together.setdefault(others, []).append(component_name(str(component)))
    said = {0: "none", everyone: "all" if everyone > 1 else "it"}
    return ", ".join(
        f"{listing(names, _SHOWN_COMPONENTS)} with {said.get(others, f'{others:,}')}"
        for others, names in sorted(together.items())
    )


def apart(plan: Plan, partial_set: PartialSet, tree: Tree) -> Iterator[Apart]:
    """The queries with which those of a tree do not share slices, nearest first."""
    for other in partial_set.trees:
        if other.number != tree.number:
            yield Apart(
                tree_name(plan, partial_set, other),
                len(other.queries),
                _why_other_tree(partial_set.strategy, tree, other),
            )
    for far in plan.sets:
        if far.number != partial_set.number:
            yield Apart(f"set {far.number}", sum(1 for _ in far.queries), _why_other_set(plan, partial_set, far))


def _why_other_tree(strategy: str, tree: Tree, other: Tree) -> str:
    if strategy == "no_share":
        return "strategy no_share puts every query alone"
    common = weaveability(tree.edges, other.edges)
    return f"{share(common)} of the edges are common, and {strategy} found one tree for both no cheaper"


def _why_other_set(plan: Plan, partial_set: PartialSet, other: PartialSet) -> str:
    differences = partial_set.identity.differences(other.identity)
    if Difference.STREAM in differences:
        return f"another stream: {one_line(other.stream)}"
    kind = str(other.window) if other.window.set_identity else "of time"
    said = {
        Difference.PREDICATE: f"another predicate: {predicate_text(other)}",
        Difference.GROUPING: f"another grouping: {grouping(other)}",
        Difference.WINDOWS: f"other windows: {counting(other) or kind}",
    }
    reasons = [said[difference] for difference in differences]
    both = {partial_set.number, other.number}
    fed = [scan.number for scan in plan.scans if both <= {fed.number for fed in scan.feeds}]
    reasons += [f"though both are fed by scan {number}" for number in fed]
    return ", ".join(reasons)


_NAME_WIDTH = 28


_SHOWN_QUERIES = 8


_SHOWN_TREES = 8


_SHOWN_MERGERS = 3


_SHOW_ALL = "(loom.explain(sharing=True, queries=True) shows all)"


def sharing_text(plan: Plan, report: SharingReport, *, all_queries: bool = False) -> str:
    lines = [*_sharing_header(plan, report)]
    for partial_set, costs in zip(plan.sets, report.seconds.sets, strict=True):
        if partial_set.is_relation:  # a version is read once, whichever queries use it
            continue
        lines += ["", *_sharing_set(plan, partial_set, costs)]
        shown = partial_set.trees if all_queries else partial_set.trees[:_SHOWN_TREES]
        for tree in shown:
            lines += ["", *_sharing_tree(plan, partial_set, tree, report, all_queries)]
        if len(shown) < len(partial_set.trees):
            lines += ["", f"  … and {count(len(partial_set.trees) - len(shown), 'more tree')} {_SHOW_ALL}"]
    lines += _sharing_joins(plan, report, all_queries)
    return "\n".join(lines) + "\n"


def _sharing_header(plan: Plan, report: SharingReport) -> Iterator[str]:
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


def _sharing_set(plan: Plan, partial_set: PartialSet, costs: SetSeconds) -> Iterator[str]:
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


def _sharing_tree(
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
    yield from _sharing_queries(shown, slides, report, measure)
    if len(shown) < len(tree.queries):
        yield f"    … and {len(tree.queries) - len(shown):,} that cost less {_SHOW_ALL}"


def _sharing_joins(plan: Plan, report: SharingReport, everything: bool) -> Iterator[str]:
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


def _sharing_queries(
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


Json = dict[str, Any]


def sharing_json(plan: Plan, report: SharingReport) -> Json:
    total = report.seconds.total
    return {
        "unit": "seconds of work per second of event time",
        "constants": report.seconds.source,
        "total": total,
        "job": report.seconds.job,
        "sets": [
            _set_json(plan, partial_set, costs, report)
            for partial_set, costs in zip(plan.sets, report.seconds.sets, strict=True)
        ],
        "queries": {name: _query_json(found, total) for name, found in {**report.queries, **report.joins}.items()},
        "folds": dict(report.seconds.folds),
    }


def _set_json(plan: Plan, partial_set: PartialSet, costs: SetSeconds, report: SharingReport) -> Json:
    return {
        "number": partial_set.number,
        "strategy": partial_set.strategy,
        "statistics": statistics_json(partial_set),
        "scan": costs.scan,
        "partials": costs.partials,
        "merge": costs.merge,
        "total": costs.total,
        "trees": [
            {
                "name": tree_name(plan, partial_set, tree),
                "own": tree_cost.own,
                "answers": tree_cost.answers,
                "techniques": {
                    str(component.component): seconds
                    for component, seconds in zip(partial_set.components, tree_cost.techniques, strict=True)
                    if seconds
                },
                "total": tree_cost.total,
                "weaveability": report.common.get((partial_set.number, tree.number)),
                "mergers": [
                    {"tree": merger.other, "weaveability": merger.weaveability, "more": merger.more}
                    for merger in report.mergers.get((partial_set.number, tree.number), ())
                ],
            }
            for tree, tree_cost in zip(partial_set.trees, costs.trees, strict=True)
        ],
    }


def _query_json(found: QueryShare, total: float) -> Json:
    return {
        "seconds": found.seconds,
        "share": found.seconds / total,
        "alone": found.alone,
        "saved": found.saved,
        "added_edges_per_second": found.added_edges_per_second,
        "hindrance": None
        if found.hindrance is None
        else {"query": found.hindrance[0], "common_ticks": found.hindrance[1]},
        "advice": [{"slide_ticks": advice.slide_ticks, "saves": advice.saves} for advice in found.advice],
    }
