"""What a query shares with other queries, and why it does not share more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from windloom.explain.labels import component_name, counting, grouping, predicate_text, tree_name
from windloom.explain.lines import listing, one_line
from windloom.model.aggregate import COUNT_STAR, Component
from windloom.model.figures import count, share
from windloom.model.query import Query
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
