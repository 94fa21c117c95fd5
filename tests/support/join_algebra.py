"""What a join means, pair by pair, and what its sides, links and folds give: two ways to the same figures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from support.sql_values import Row, evaluate
from windloom.model import Component, Join, JoinKind, Query, Side
from windloom.model.join import Corner, Link, Product, SideComponent, SumOfProducts

#: By group, the figure of each component.
Figures = dict[tuple[Any, ...], list[Any]]


@dataclass(frozen=True)
class Source:
    """One source as it is written; `columns` are those of its stream."""

    alias: str
    columns: tuple[str, ...]
    kind: str = "JOIN"
    on: str = "TRUE"


# ---- the meaning -------------------------------------------------------------------------------------------------


def pairs(sources: Sequence[Source], bags: Sequence[Sequence[Row]], where: str) -> Iterator[Row]:
    """The rows of a join by nested loops, in the order of FROM."""
    rows: list[Row] = [{}]
    for joined, bag in zip(sources, bags, strict=True):
        own = [{f"{joined.alias}.{name}": value for name, value in row.items()} for row in bag]
        nothing = {f"{joined.alias}.{name}": None for name in joined.columns}
        found: list[Row] = []
        for row in rows:
            matching = [{**row, **other} for other in own if evaluate(joined.on, {**row, **other}) is True]
            match joined.kind:
                case "JOIN":
                    found += matching
                case "LEFT JOIN":
                    found += matching or [{**row, **nothing}]
                case "LEFT SEMI JOIN":
                    found += [row] if matching else []
                case "LEFT ANTI JOIN":
                    found += [] if matching else [row]
        if joined.kind == "RIGHT JOIN":
            left = [f"{before.alias}.{name}" for before in sources[: sources.index(joined)] for name in before.columns]
            for other in own:
                matching = [{**row, **other} for row in rows if evaluate(joined.on, {**row, **other}) is True]
                found += matching or [{**dict.fromkeys(left), **other}]
        rows = found
    return (row for row in rows if evaluate(where, row) is True)


def meant(query: Query, rows: Iterator[Row]) -> Figures:
    """The figures of all components, from the rows of the join."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(evaluate(grouping.expression.sql, row) for grouping in query.group_by)].append(row)
    return {group: [_figure(component, members) for component in query.components] for group, members in groups.items()}


def _figure(component: Component, rows: Sequence[Row]) -> Any:
    counted = [row for row in rows if component.where is None or evaluate(component.where.sql, row) is True]
    if component.argument is None:
        return len(counted)
    values = [evaluate(component.argument.sql, row) for row in counted]
    return _summary(component.kind, Counter(value for value in values if value is not None))


def _summary(kind: str, bag: Counter[Any]) -> Any:
    """Sums, counts and extrema as such; of anything else the bag of values, which determines it."""
    if kind == "count":
        return bag.total()
    if kind not in ("sum", "min", "max"):
        return bag
    if not +bag:
        return None
    return (
        sum(value * often for value, often in bag.items()) if kind == "sum" else (min if kind == "min" else max)(+bag)
    )


# ---- sides, links and folds --------------------------------------------------------------------------------------

#: One group of a side: its grouping values and its tuples. None is the row without a match.
Group = tuple[tuple[Any, ...], list[Row]] | None


def folded(query: Query, bags: Sequence[Sequence[Row]]) -> Figures:
    """The figures of all components, from what sides know of each of their groups; `bags` are those of the sides."""
    join = query.join
    assert join is not None
    sides = [_groups(side, bag) for side, bag in zip(join.sides, bags, strict=True)]
    found: dict[tuple[Any, ...], list[dict[int, Group]]] = defaultdict(list)
    for root in sides[0]:
        for row in _expanded(join, sides, 0, root):
            key = tuple(None if (own := row[side]) is None else own[0][place] for side, place in join.groups)
            found[key].append(row)
    return {
        key: [
            _folded_figure(join, component, fold, rows)
            for component, fold in zip(query.components, join.folded, strict=True)
        ]
        for key, rows in found.items()
    }


def _groups(side: Side, bag: Sequence[Row]) -> list[tuple[tuple[Any, ...], list[Row]]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in bag:
        if side.where is None or evaluate(side.where.sql, row) is True:
            found[tuple(evaluate(grouping.sql, row) for grouping in side.group_by)].append(row)
    return list(found.items())


def _expanded(join: Join, sides: Sequence[Sequence[Group]], side: int, group: Group) -> Iterator[dict[int, Group]]:
    """All combinations of groups of a side and of what hangs on it. A side that only decides is not in them."""
    choices: list[list[dict[int, Group]]] = [[{side: group}]]
    for link in join.links:
        if link.parent == side and group is None:
            # All that hangs on a side without a match has none, too.
            is_named = link.kind in (JoinKind.INNER, JoinKind.LEFT)
            choices.append(list(_expanded(join, sides, link.child, None)) if is_named else [{}])
        elif link.parent == side:
            matching = [
                row
                for child in sides[link.child]
                if _matches(link, group, child)
                for row in _expanded(join, sides, link.child, child)
            ]
            match link.kind:
                case JoinKind.INNER:
                    choices.append(matching)
                case JoinKind.LEFT:
                    choices.append(matching or list(_expanded(join, sides, link.child, None)))
                case JoinKind.SEMI:
                    choices.append([{}] if matching else [])
                case JoinKind.ANTI:
                    choices.append([] if matching else [{}])
    for combination in product(*choices):
        yield {key: value for part in combination for key, value in part.items()}


def _matches(link: Link, parent: Group, child: Group) -> bool:
    assert parent is not None
    assert child is not None
    for pair in link.keys:
        own, its = parent[0][pair.parent], child[0][pair.child]
        if own != its or (own is None and not pair.null_safe):
            return False
    if link.residual is None:
        return True
    values = {f"__p{i}": value for i, value in enumerate(parent[0])} | {
        f"__c{i}": value for i, value in enumerate(child[0])
    }
    return evaluate(link.residual.sql, values) is True


def _known(side: Side, place: int, group: Group) -> Any:
    """A component of one group; of the row without a match, COUNT(*) is 1 and everything else is nothing."""
    component = side.components[place]
    if group is None:
        return 1 if place == 0 else _figure(component, [])
    return _figure(component, group[1])


def _times(join: Join, row: dict[int, Group], factors: Sequence[int], but: tuple[int, ...] = ()) -> int:
    known = (
        _known(join.sides[side], place, row[side])
        for side, place in enumerate(factors)
        if side in row and side not in but
    )
    return prod(0 if value is None else value for value in known)


def _folded_figure(join: Join, component: Component, fold: Any, rows: Sequence[dict[int, Group]]) -> Any:
    if isinstance(fold, SumOfProducts):

        def summed(term: Product) -> int:
            return term.sign * sum(_times(join, row, term.factors) for row in rows)

        total = sum(summed(term) for term in fold.products)
        return None if fold.counted is not None and not summed(fold.counted) else total
    bag: Counter[Any] = Counter()
    for row in rows:
        if isinstance(fold, SideComponent):
            side = join.sides[fold.side]
            own = Component("bag", *_parts(side.components[fold.component]))
            often = _times(join, row, fold.weights, (fold.side,))
            for value, count in _bag(own, row[fold.side]).items():
                bag[value] += count * often
        else:
            assert isinstance(fold, Corner)
            ends = [
                [_known(join.sides[end[0]], place, row[end[0]]) for place in end[1:]] for end in (fold.left, fold.right)
            ]
            often = _times(join, row, fold.weights, (fold.left[0], fold.right[0]))
            if None not in (*ends[0], *ends[1]):
                for low, high in product(*ends):
                    bag[evaluate(f"a {fold.operator} b", {"a": low, "b": high})] += often
    return _summary(component.kind, +bag)


def _parts(component: Component) -> tuple[Any, ...]:
    return component.argument, component.by, component.where


def _bag(component: Component, group: Group) -> Counter[Any]:
    found = _figure(component, [] if group is None else group[1])
    assert isinstance(found, Counter)
    return found
