"""Lines that the text of a whole plan and of one query have in common."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from windloom.explain.reasons import Sharing, output_text, spelled_out
from windloom.explain.words import count, listing, one_line, shorten
from windloom.model.aggregate import Component
from windloom.plan.physical import PartialSet, Plan, PlannedComponent, PlannedQuery, Tree

WIDTH = 110
_LABEL_WIDTH = 12
_COMPONENT_WIDTH = 40
_SHOWN_COMPONENTS = 3


def fact(label: str, text: str, indent: int = 2) -> list[str]:
    """A label and its text, wrapped behind the label."""
    head = " " * indent + f"{label:{_LABEL_WIDTH}}  "
    return wrapped(text, head, " " * len(head)) or [head.rstrip()]


def wrapped(text: str, head: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)


def strategy_name(plan: Plan) -> str:
    """With `auto`, also what that was, which may differ from set to set."""
    chosen = sorted({one.strategy for one in plan.sets} - {plan.strategy})
    return f"{plan.strategy} ({', '.join(chosen)})" if chosen else plan.strategy


def techniques(one: PartialSet, tree: Tree, queries: Iterable[PlannedQuery]) -> str:
    """Which technique answers each component that these queries of the tree ask for."""
    if not one.window.is_sliced:
        return "none: a window is one cell"
    wanted = {part for planned in queries for part in planned.query.components}
    by_technique: dict[str, list[str]] = {}
    for part, technique in zip(one.components, tree.techniques, strict=True):
        if part.component in wanted:
            by_technique.setdefault(technique, []).append(component_name(str(part.component)))
    return "; ".join(f"{', '.join(parts)} by {technique}" for technique, parts in by_technique.items())


def shares_text(shared: Sharing, tree: str) -> str:
    """In short, as in `shares slices with 41 queries of tree 0; sum(price) with 12, count(*) with all`."""
    if shared.in_set == 0:
        return "shares no partials: alone in its set"
    if shared.in_tree == 0:
        parts = _by_partners([(one.component, one.in_set) for one in shared.components], shared.in_set)
        return f"shares no slices; of the partials of its set {parts}"
    parts = _by_partners([(one.component, one.in_tree) for one in shared.components], shared.in_tree)
    return f"shares slices with {count(shared.in_tree, 'query', 'queries')} of {tree}; {parts}"


def _by_partners(partners: list[tuple[Component, int]], everyone: int) -> str:
    """Components that the same number of others use stand together, the most shared last."""
    together: dict[int, list[str]] = {}
    for component, others in partners:
        together.setdefault(others, []).append(component_name(str(component)))
    said = {0: "none", everyone: "all" if everyone > 1 else "it"}
    return ", ".join(
        f"{listing(names, _SHOWN_COMPONENTS)} with {said.get(others, f'{others:,}')}"
        for others, names in sorted(together.items())
    )


def component_name(text: str) -> str:
    return shorten(one_line(text), _COMPONENT_WIDTH)


def answer_text(planned: PlannedQuery) -> str:
    """Columns of the answer, and which rows are reported."""
    text = output_text(planned.query)
    having = planned.query.having
    return text if having is None else f"{text} HAVING {one_line(spelled_out(planned.query, having.sql))}"


def property_names(part: PlannedComponent) -> list[str]:
    """What the operation of a component is known to be."""
    return [str(one.name).lower().replace("_", " ") for one in part.family.has]
