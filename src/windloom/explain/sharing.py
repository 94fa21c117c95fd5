"""What queries share, and EXPLAIN SHARING: the cost of every tree and query, what sharing saves, and why not more.

EXPLAIN SHARING as JSON is added to a plan's under `sharing`:

    unit             "seconds of work per second of event time": the unit of every figure below, if no other is given
    constants        where the constants come from
    total, job       the cost of the whole plan; of starting one Spark job per round
    sets[]           {number, strategy, statistics, scan, partials, merge, total, trees[]}
      statistics     as in the plan
      trees[]        {name, own, answers, techniques {component: seconds}, total, weaveability | null,
                      mergers[] {tree, weaveability, more}}
    queries {name}   {seconds, share, alone, saved, added_edges_per_second, hindrance | null, advice[]}; a join has its
                      part of its sides, which are also listed under names of their own
      advice[]       {slide_ticks, saves}
    folds {name}     the cost of folding each join
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from windloom.explain import words
from windloom.explain.costs import SecondsView, common_text, work
from windloom.explain.joins import fold_text, partners_text
from windloom.explain.node import ExplainNode, Fact, Json, json_only, node_json, node_lines, words_only
from windloom.explain.words import NAME_WIDTH, TIME, WIDTH, Measure, one_line, shorten, tree_name, wrapped
from windloom.model.aggregate import COUNT_STAR, Component
from windloom.model.formatting import amount, count, share
from windloom.model.query import Query
from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.costs import QueryShare, SharingReport
from windloom.plan.plan import Member, PartialSet, Plan, Tree
from windloom.slicing.edges import weaveability
from windloom.statistics.set_statistics import Difference

_SHOWN_COMPONENTS = 3


@dataclass(frozen=True, slots=True)
class SharedComponent:
    """A component of one query, and how many other queries use it."""

    component: Component
    in_tree: int
    in_set: int


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What one query shares: slices with its tree, partials with its set."""

    in_tree: int  # other queries of the tree: they share slices
    in_set: int  # other queries of the set: they share the scan and the partials
    same_window: int  # other queries of the tree with the very same window
    components: tuple[SharedComponent, ...]  # COUNT(*) is used by every query, and comes last


def asked(queries: Iterable[Member]) -> Counter[Component]:
    """Return for each component the number of queries that ask for it themselves."""
    return Counter(component for planned in queries for component in planned.query.components)


def sharing(plan: Plan) -> dict[str, SharedParts]:
    """Return what every query shares, by name."""
    shared: dict[str, SharedParts] = {}
    for partial_set in plan.sets:
        members = list(partial_set.queries)
        # Every query uses COUNT(*), which shows the windows with a row.
        of_set = asked(members) | Counter({COUNT_STAR: len(members)})
        for tree in partial_set.trees:
            of_tree = asked(tree.queries) | Counter({COUNT_STAR: len(tree.queries)})
            windows = Counter(planned.query.window for planned in tree.queries)
            for planned in tree.queries:
                own = (*(each for each in planned.query.components if each != COUNT_STAR), COUNT_STAR)
                uses = tuple(SharedComponent(each, of_tree[each] - 1, of_set[each] - 1) for each in own)
                same_window = windows[planned.query.window] - 1
                shared[planned.name] = SharedParts(len(tree.queries) - 1, len(members) - 1, same_window, uses)
    return shared


def shares_text(shared: SharedParts, tree: str) -> str:
    """Return a short text: `shares slices with 41 queries of tree 0; sum(price) with 12, count(*) with all`."""
    if shared.in_set == 0:
        return "shares no partials: alone in its set"
    everyone = shared.in_tree or shared.in_set
    together: dict[int, list[str]] = {}  # names by the number of other queries that use them, the most shared last
    for each in shared.components:
        others = each.in_tree if shared.in_tree else each.in_set
        together.setdefault(others, []).append(words.component_name(str(each.component)))
    named = {0: "none", everyone: "all" if everyone > 1 else "it"}
    parts = ", ".join(
        f"{words.listing(names, _SHOWN_COMPONENTS)} with {named.get(others, f'{others:,}')}"
        for others, names in sorted(together.items())
    )
    if shared.in_tree == 0:
        return f"shares no slices; of the partials of its set {parts}"
    return f"shares slices with {count(shared.in_tree, 'query', 'queries')} of {tree}; {parts}"


def apart(plan: Plan, partial_set: PartialSet, tree: Tree) -> Iterator[tuple[int, str]]:
    """Yield the queries with which those of a tree do not share slices: how many they are, and where, and why."""
    for other in (each for each in partial_set.trees if each.number != tree.number):
        common = share(weaveability(tree.edges, other.edges))
        reason = f"{common} of the edges are common, and {partial_set.strategy} found one tree for both no cheaper"
        if partial_set.strategy == "no_share":
            reason = "strategy no_share puts every query alone"
        queries = count(len(other.queries), "query", "queries")
        yield len(other.queries), f"{tree_name(plan, partial_set, other)} ({queries}): {reason}"
    for far in plan.sets:
        if far.number != partial_set.number:
            members = sum(1 for _ in far.queries)
            place = f"set {far.number} ({count(members, 'query', 'queries')})"
            yield members, f"{place}: {_why_other_set(plan, partial_set, far)}"


def _why_other_set(plan: Plan, partial_set: PartialSet, other: PartialSet) -> str:
    differences = partial_set.identity.differences(other.identity)
    if Difference.STREAM in differences:
        return f"another stream: {one_line(other.stream)}"
    kind = str(other.window) if other.window.set_identity else "of time"
    predicate = "every tuple" if other.where is None else one_line(other.where.sql)
    texts = {
        Difference.PREDICATE: f"another predicate: {predicate}",
        Difference.GROUPING: f"another grouping: {words.grouping(other)}",
        Difference.WINDOWS: f"other windows: {words.counting(other) or kind}",
    }
    both = {partial_set.number, other.number}
    common = [scan.number for scan in plan.scans if both <= {fed.number for fed in scan.feeds}]
    shared = [f"though both are fed by scan {number}" for number in common]
    return ", ".join([*(texts[difference] for difference in differences), *shared])


#: Of queries and of trees, and of trees that others might be merged with, the first few are shown.
_SHOWN, _SHOWN_MERGERS = 8, 3
_SHOW_ALL = "(loom.explain(sharing=True, queries=True) shows all)"


def sharing_json(plan: Plan, report: SharingReport) -> Json:
    """Return the report under the keys that the docstring of this module lists."""
    sets = [_set_node(plan, partial_set, report) for partial_set in plan.sets]
    queries = {
        query.name: node_json(query)
        for partial_set in sets
        for tree in partial_set.children["trees"]
        for query in tree.children["_queries"]
    }
    queries |= {name: node_json(_share_node(name, part, report)) for name, part in report.joins.items()}
    return {
        "unit": "seconds of work per second of event time",
        "constants": report.seconds.source,
        "total": report.seconds.total,
        "job": report.seconds.job,
        "sets": [node_json(partial_set) for partial_set in sets],
        "queries": {name: queries[name] for name in (*report.queries, *report.joins)},
        "folds": dict(report.seconds.folds),
    }


def sharing_text(plan: Plan, report: SharingReport, *, all_queries: bool = False) -> str:
    """Return the report as text; unless all queries are asked for, of many only those with the highest cost."""
    lines = [*_header(plan, report)]
    for partial_set in plan.sets:
        if partial_set.is_relation:  # a version is read once, whichever queries use it
            continue
        node = _set_node(plan, partial_set, report)
        trees = node.children["trees"]
        shown = trees if all_queries else trees[:_SHOWN]
        lines += ["", *node_lines(node)]
        for tree in shown:
            lines += ["", *node_lines(tree, 2), "", *_query_lines(tree.children["_queries"], all_queries)]
        if len(shown) < len(trees):
            lines += ["", f"  … and {count(len(trees) - len(shown), 'more tree')} {_SHOW_ALL}"]
    lines += _join_lines(plan, report, all_queries)
    return "\n".join(lines) + "\n"


def _header(plan: Plan, report: SharingReport) -> Iterator[str]:
    queries = count(sum(1 for _ in plan.queries), "query", "queries")
    trees = count(sum(1 for _ in plan.trees), "tree")
    yield f"Sharing: {queries}, {count(len(plan.sets), 'set')} of partials, {trees}"
    yield f"  strategy {words.strategy_name(plan)}, slicing {plan.slicing}, technique {plan.technique}"
    parts = {**report.queries, **report.joins}
    rows = {planned.name for planned in plan.rows}
    total = report.seconds.total
    alone = sum(parts[query.name].alone for query in plan.queries if query.name not in rows)
    yield f"  predicted {work(total)} of event time (constants: {report.seconds.source})"
    if alone > 0:
        yield f"  every query alone: {work(alone)}; sharing saves {share(max(0.0, 1 - total / alone))}"
    if report.seconds.job:
        yield f"  of this {work(report.seconds.job)} to start a Spark job per round"
    if plan.rows:  # what is predicted of them is what is kept, not how long making their rows takes
        are = "is" if len(plan.rows) == 1 else "are"
        names = [shorten(one_line(planned.name), NAME_WIDTH) for planned in plan.rows[:_SHOWN]]
        more = f" and {len(plan.rows) - len(names):,} more" if len(names) < len(plan.rows) else ""
        left_out = f"{count(len(plan.rows), 'row query', 'row queries')} {are} not among these figures"
        yield from wrapped(f"{left_out}: {', '.join(names)}{more}", "  ", "    ")


def _set_node(plan: Plan, partial_set: PartialSet, report: SharingReport) -> ExplainNode:
    known, costs = partial_set.statistics, report.seconds.sets[partial_set.number]
    shared = costs.shared / costs.total if costs.total else 1.0
    chosen = ", chosen by predicted time" if plan.strategy == "auto" else ""
    tuples = known.events_per_second / (partial_set.edges.edges_per_second * known.groups)
    slices = (
        f"{words.rate_text(partial_set, partial_set.edges)}, {words.about(partial_set.edges)}{amount(tuples, 'tuple')}"
    )
    thin = ": slicing hardly reduces, so more edges cost little and coarser trees save little" if tuples < 2 else ""
    facts = [
        Fact("number", partial_set.number),
        Fact("strategy", partial_set.strategy, f"{partial_set.strategy}{chosen}"),
        Fact("statistics", words.statistics_json(partial_set), list(words.statistics_texts(partial_set))),
        words_only("slices", f"{slices} per slice and group{thin}"),
        words_only(
            "once for all",
            f"{work(costs.scan)} to scan, {work(costs.partials)} to bring partials over,",
            f"{work(costs.merge)} to put them in order: {share(shared)} of the set",
        ),
        *json_only(scan=costs.scan, partials=costs.partials, merge=costs.merge, total=costs.total),
    ]
    name = shorten(f"Set {partial_set.number}: partials of {one_line(partial_set.stream)}", WIDTH)
    slides = {each.name: each.query.window.slide_ticks for each in partial_set.queries}
    trees = [_tree_node(plan, partial_set, tree, report, slides) for tree in partial_set.trees]
    return ExplainNode(name, facts, children={"trees": trees})


def _tree_node(
    plan: Plan, partial_set: PartialSet, tree: Tree, report: SharingReport, slides: Mapping[str, int]
) -> ExplainNode:
    name, measure = tree_name(plan, partial_set, tree), words.measure_of(partial_set)
    costs = report.seconds.sets[partial_set.number].trees[tree.number]
    by_component = {
        str(component.component): seconds
        for component, seconds in zip(partial_set.components, costs.techniques, strict=True)
        if seconds
    }
    common = report.common.get((partial_set.number, tree.number))
    is_common = common is not None and len(tree.queries) > 1 and partial_set.window.is_sliced
    (cost,) = SecondsView(plan, report.seconds).tree_facts(partial_set, tree)
    facts = [
        *json_only(name=name, own=costs.own, answers=costs.answers),
        Fact("techniques", by_component, words.techniques(partial_set, tree, tree.queries), "technique", is_late=True),
        Fact("total", costs.total),
        words_only("slices", words.rate_text(partial_set, tree.edges)),
        Fact("weaveability", common, common_text(tree, common) if common is not None and is_common else ()),
        words_only("cost", *cost.lines),
    ]
    mergers, texts = report.mergers.get((partial_set.number, tree.number), ()), []
    for merger in mergers[:_SHOWN_MERGERS]:
        other = partial_set.trees[merger.other]
        whose = tree_name(plan, partial_set, other)
        more = f"{work(abs(merger.more))} {'more' if merger.more >= 0 else 'less'}"
        reason = f"{share(merger.weaveability)} of the edges are common; one tree for both would take {more}"
        # The slides that keep the two apart: the shortest of each.
        left, right = (min(each.query.window.slide_ticks for each in both.queries) for both in (tree, other))
        if left % right and right % left:
            reason += f" ({relation(left, right, whose, measure)})"
        texts.append(f"{whose} ({count(len(other.queries), 'query', 'queries')}): {reason}")
    values = [{"tree": each.other, "weaveability": each.weaveability, "more": each.more} for each in mergers]
    queries = []
    for member in tree.queries:
        part = report.queries[member.name]
        why = _why(member.query, part, slides, measure)
        queries.append(_share_node(member.name, part, report, str(member.query.window), why))
    title = f"{name.capitalize()}: {count(len(tree.queries), 'query', 'queries')}"
    return ExplainNode(title, facts, [Fact("mergers", values, texts, "apart from")], {"_queries": queries})


def _share_node(
    name: str, part: QueryShare, report: SharingReport, window: str = "", why: Sequence[str] = ()
) -> ExplainNode:
    """Return the part of the plan's cost that a query has, and the reasons why it is not less."""
    of_plan = part.seconds / report.seconds.total
    saves = f"sharing saves {share(part.saved)}" if part.saved > 0 else "sharing saves it nothing"
    hindrance = part.hindrance and {"query": part.hindrance[0], "common_ticks": part.hindrance[1]}
    facts = [
        words_only("window", window),
        Fact("seconds", part.seconds, f"{work(part.seconds)}, {share(of_plan)} of the plan"),
        Fact("share", of_plan),
        Fact("alone", part.alone, f"alone {work(part.alone)}: {saves}"),
        *json_only(saved=part.saved, added_edges_per_second=part.added_edges_per_second),
    ]
    advice = [{"slide_ticks": each.slide_ticks, "saves": each.saves} for each in part.advice]
    return ExplainNode(name, facts, [Fact("hindrance", hindrance, why), Fact("advice", advice)])


def _why(query: Query, part: QueryShare, slides: Mapping[str, int], measure: Measure) -> Sequence[str]:
    """Return why a query needs edges of its own, and with which slide it would need fewer."""
    if part.added_edges_per_second <= 0:
        return ()
    text = f"adds {amount(part.added_edges_per_second, 'edge/s', 'edges/s')} that no other query needs"
    slide = query.window.slide_ticks
    if part.hindrance is not None:
        text += f": {relation(slide, slides[part.hindrance[0]], one_line(part.hindrance[0]), measure)}"
    elif query.window.range_ticks % slide:
        text += ": its range is not a multiple of its slide"
    if part.advice:
        least = share(min(each.saves for each in part.advice) / part.seconds)
        better = " or ".join(measure.short(each.slide_ticks) for each in part.advice)
        text += f"; a slide of {better} would save {'' if len(part.advice) == 1 else 'at least '}{least} of its cost"
    return [text]


def _cost_and_name(query: ExplainNode) -> tuple[float, str]:
    """Return what to sort by, so that queries with the highest cost are the first."""
    return -query["seconds"].value, query.name


def _query_lines(queries: Sequence[ExplainNode], everything: bool) -> Iterator[str]:
    shown = queries
    if not everything and len(queries) > _SHOWN:
        shown = sorted(queries, key=_cost_and_name)[:_SHOWN]
    names = [shorten(one_line(query.name), NAME_WIDTH) for query in shown]
    windows = [query.facts[0].first_line for query in shown]
    name_width, window_width = max(map(len, names)), max(map(len, windows))
    indent = " " * (6 + name_width)
    for query, name, window in zip(shown, names, windows, strict=True):
        head = f"    {name:{name_width}}  {window:{window_width}}  "
        yield from wrapped(f"{query['seconds'].first_line}; {query['alone'].first_line}", head, indent)
        for line in query["hindrance"].lines:
            yield from wrapped(line, indent, indent)
    if len(shown) < len(queries):
        yield f"    … and {len(queries) - len(shown):,} that cost less {_SHOW_ALL}"


def _join_lines(plan: Plan, report: SharingReport, everything: bool) -> Iterator[str]:
    """Yield every join with its part of the plan's cost; if there are many, only the most expensive ones."""
    joins = {join.name: join for join in plan.joins}
    nodes = sorted((_share_node(name, report.joins[name], report) for name in joins), key=_cost_and_name)
    if joins:
        yield from ("", f"Joins: {count(len(joins), 'query', 'queries')}")
    for node in nodes if everything else nodes[:_SHOWN]:
        join = joins[node.name]
        fold = f"of this {work(report.seconds.folds[join.name])} to fold"
        head = f"  {shorten(one_line(join.name), NAME_WIDTH)}  "
        yield from wrapped(f"{node['seconds'].first_line}, {fold}; {node['alone'].first_line}", head, "      ")
        yield from wrapped(fold_text(plan, join), "      ", "      ")
        for side, place in zip(join.join.sides, join.sides, strict=True):
            yield from wrapped(f"{side.alias}: {partners_text(plan, join, place)}", "      ", "        ")
    if not everything and len(joins) > _SHOWN:
        yield f"  … and {len(joins) - _SHOWN:,} that cost less {_SHOW_ALL}"


def relation(left: int, right: int, whose: str, measure: Measure = TIME) -> str:
    """Return how two slides that keep trees apart are related.

    >>> relation(7_000_000, 10_000_000, "tree 0"), relation(6_000_000, 10_000_000, "tree 0")
    ("slide 7 s is coprime to tree 0's 10 s", "slide 6 s and tree 0's 10 s have only 2 s in common")
    """
    common, unit = gcd(left, right), 1
    if not measure.is_of_positions:  # the longest unit of time of which both are whole multiples
        units = (*(seconds * TICKS_PER_SECOND for seconds in (86_400, 3_600, 60, 1)), 1_000, 1)
        unit = next(ticks for ticks in units if common % ticks == 0)
    if common == unit:
        return f"slide {measure.short(left)} is coprime to {whose}'s {measure.short(right)}"
    both = f"slide {measure.short(left)} and {whose}'s {measure.short(right)}"
    return f"{both} have only {measure.short(common)} in common"
