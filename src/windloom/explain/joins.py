"""EXPLAIN of joins: their sides, where these are answered, who shares them, and how they are folded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from windloom.explain.costs import CostView
from windloom.explain.words import (
    WIDTH,
    answer_text,
    fact,
    having_sql,
    listing,
    one_line,
    output_text,
    shorten,
    tree_name,
)
from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.model.figures import count, number, share
from windloom.model.join import Join, JoinKind, Link
from windloom.plan.bits import early_sides, plan_name
from windloom.plan.links import LinkEstimate
from windloom.plan.physical import Member, PartialSet, Plan, PlannedJoin, PlannedSide, SidePlace, Tree
from windloom.plan.sharding import Sharding, sharding_of

#: A plan with more joins shows the first few only, unless all are asked for.
_MANY_JOINS = 12


_FEW_JOINS = 6


_NAMED_PARTNERS = 4


_SHOW_ALL = "(loom.explain(queries=True) shows all)"


_WORDS = {JoinKind.INNER: "⋈", JoinKind.LEFT: "⟕", JoinKind.SEMI: "⋉", JoinKind.ANTI: "▷"}


def join_lines(plan: Plan, costs: CostView, everything: bool) -> Iterator[str]:
    """Every join of a plan, each after an empty line."""
    shown = plan.joins if everything or len(plan.joins) <= _MANY_JOINS else plan.joins[:_FEW_JOINS]
    for join in shown:
        yield ""
        yield shorten(f"Join {one_line(join.name)}: {joined_text(join.join)}", WIDTH)
        yield from join_facts(plan, join, costs)
    if len(shown) < len(plan.joins):
        yield ""
        yield f"… and {count(len(plan.joins) - len(shown), 'more join')} {_SHOW_ALL}"


def join_facts(plan: Plan, planned: PlannedJoin, costs: CostView) -> Iterator[str]:
    join = planned.join
    label = "sides"
    for side, place in enumerate(planned.sides):
        yield from fact(label, side_text(plan, planned, side))
        yield from fact("", partners_text(plan, planned, place))
        label = ""
    label = "links"
    for i, link in enumerate(join.links):
        yield from fact(label, link_text(join, link))
        label = ""
        if planned.observed:
            yield from fact("", observed_text(join, link, planned.observed[i]))
    yield from fact("plan", bits_text(plan, planned))
    yield from fact("fold", fold_text(plan, planned))
    if planned.tuples:
        yield from fact("", tuples_text(planned))
    for name, text in costs.join_facts(planned):
        yield from fact(name, text)
    yield from fact("executors", shards_text(plan, planned, sharding_of(plan)))
    yield from fact("window", f"{join.window}: window_end is common to all sides, window_start the earliest")
    yield from fact("answer", answer_text(planned))


def joined_text(join: Join) -> str:
    """The streams as they are joined: `orders o ⋈ clicks c`."""
    parts = [f"{_WORDS[link.kind]} {_aliased(join, link.child)}" for link in join.links]
    return one_line(" ".join([_aliased(join, 0), *parts]))


def _aliased(join: Join, number: int) -> str:
    side = join.sides[number]
    return side.alias if side.alias == side.source.stream else f"{side.source.stream} {side.alias}"


def side_text(plan: Plan, planned: PlannedJoin, number: int) -> str:
    side, (partial_set, tree, _) = planned.join.sides[number], plan.side(planned.sides[number])
    where = "" if side.where is None else f" where {one_line(side.where.sql)}"
    keys = ", ".join(one_line(key.sql) for key in side.group_by)
    source = f"relation {side.source.stream}" if side.is_relation else f"{side.source.stream} {side.window}"
    return f"{side.alias}: {source}{where}, by {keys}: {_of_tree(plan, partial_set, tree)}"


def _of_tree(plan: Plan, partial_set: PartialSet, tree: Tree) -> str:
    return f"{tree_name(plan, partial_set, tree)} of set {partial_set.number}"


def partners_text(plan: Plan, planned: PlannedJoin, place: SidePlace) -> str:
    """Who shares a side: joins that ask the same of the stream, and queries of the same set."""
    partial_set, _, _ = plan.side(place)
    joins = [one_line(join.name) for join in plan.joins if join is not planned and place in join.sides]
    others = [_who(plan, member) for member in partial_set.queries if member.name != place.name]
    parts = []
    if joins:
        parts.append(f"answered once for {listing(joins, _NAMED_PARTNERS)} too")
    if others:
        parts.append(f"partials shared with {listing(others, _NAMED_PARTNERS)}")
    return "; ".join(parts) or "shared with nobody"


def _who(plan: Plan, member: Member) -> str:
    if not isinstance(member, PlannedSide):
        return one_line(member.name)
    joins = [one_line(join.name) for join in plan.joins if any(place.name == member.name for place in join.sides)]
    return f"a side of {listing(joins, 2)}"


def link_text(join: Join, link: Link) -> str:
    parent, child = join.sides[link.parent], join.sides[link.child]
    pairs = [
        f"{parent.alias}.{parent.group_by[pair.parent]} {'<=>' if pair.null_safe else '='} "
        f"{child.alias}.{child.group_by[pair.child]}"
        for pair in link.keys
    ]
    text = f"{parent.alias} {_WORDS[link.kind]} {child.alias} ({link.kind}) on {' and '.join(pairs)}"
    return one_line(text if link.residual is None else f"{text}, and where {residual_text(join, link)}")


def observed_text(join: Join, link: Link, known: LinkEstimate) -> str:
    """What rounds have shown of a link, and for how many rounds that has held."""
    parent, child = join.sides[link.parent].alias, join.sides[link.child].alias
    return (
        f"{number(known.parent_keys)} keys in {parent}, {number(known.child_keys)} in {child};"
        f" {share(known.matching)} of the groups of {parent} match, with {number(known.fan_out)} of {child} on average"
        f" (observed, the same for {count(known.rounds, 'round')})"
    )


def residual_text(join: Join, link: Link) -> str:
    """The residual condition with columns in place of `__p0` and `__c0`."""
    assert link.residual is not None
    text = link.residual.sql
    for letter, side in (("p", join.sides[link.parent]), ("c", join.sides[link.child])):
        for position in reversed(range(len(side.group_by))):
            text = text.replace(f"__{letter}{position}", f"{side.alias}.{side.group_by[position]}")
    return text


def bits_text(plan: Plan, planned: PlannedJoin) -> str:
    """The sides that Spark aggregates before anything leaves it, and the name of such a plan in source D."""
    early, sides = early_sides(plan, planned), planned.join.sides
    chosen = [side.alias for side, is_early in zip(sides, early, strict=True) if is_early]
    others = [side.alias for side, is_early in zip(sides, early, strict=True) if not is_early and not side.is_relation]
    parts = [f"Spark aggregates {listing(chosen, len(chosen))} early"] if chosen else []
    parts += [f"kernels aggregate {listing(others, len(others))} late, from tuples"] if others else []
    parts += [f"relation {side.alias} is read as a whole" for side in sides if side.is_relation]
    asked = "" if plan.join_plan in ("auto", plan_name(early)) else f" (asked for was {plan.join_plan})"
    return f"{plan_name(early)}: {', '.join(parts)}{asked}"


def fold_text(plan: Plan, planned: PlannedJoin) -> str:
    join = planned.join
    steps = [
        f"{join.sides[join.links[i].child].alias} into {join.sides[join.links[i].parent].alias}" for i in planned.order
    ]
    others = [one_line(planned_join.name) for planned_join in sharing_matrix(plan, planned)]
    shared = f"; one matrix for {listing(others, _NAMED_PARTNERS)} too" if others else ""
    return f"{planned.fold}: {', then '.join(steps)}{shared}"


def tuples_text(planned: PlannedJoin) -> str:
    """The text for a join of which a batch run may fold tuples instead of cells."""
    join = planned.join
    (pair,) = join.links[0].keys
    keys = [
        f"{side.alias}.{one_line(side.group_by[key].sql)}"
        for side, key in zip(join.sides, (pair.parent, pair.child), strict=True)
    ]
    return f"a batch run folds tuples in order of {' and '.join(keys)}, unless cells are clearly fewer"


def sharing_matrix(plan: Plan, planned: PlannedJoin) -> list[PlannedJoin]:
    """Other joins that are folded by the same slice matrix."""
    if planned.fold != SliceMatrix.name:
        return []
    return [
        planned_join
        for planned_join in plan.joins
        if planned_join is not planned and planned_join.fold == planned.fold and planned_join.pairing == planned.pairing
    ]


def shards_text(plan: Plan, planned: PlannedJoin, sharding: Sharding) -> str:
    """How the sides of a join meet if the step runs on executors."""
    partial_set, _, _ = plan.side(planned.sides[0])
    if any(side.is_relation for side in planned.join.sides) and sharding.of(partial_set.number) is None:
        folded = "; what shards fold is merged" if plan.joins.index(planned) in sharding.divided else ""
        return f"every shard has its relations as a whole{folded}"
    columns = sharding.of(partial_set.number) or ()
    if not columns:
        return "its sides are in one shard: their joins have no key in common"
    keys = ", ".join(f"{planned.join.sides[0].alias}.{one_line(partial_set.group_by[place].sql)}" for place in columns)
    merged = plan.joins.index(planned) in sharding.divided
    return f"its sides meet in shards by {keys}" + ("; what shards fold is merged" if merged else "")


def joins_json(plan: Plan, costs: CostView) -> list[dict[str, Any]]:
    return [_join_json(plan, planned, costs) for planned in plan.joins]


def _join_json(plan: Plan, planned: PlannedJoin, costs: CostView) -> dict[str, Any]:
    query, join = planned.query, planned.join
    early = early_sides(plan, planned)
    return {
        "name": planned.name,
        "text": query.text,
        "window": str(query.window),
        "sides": [
            {
                "alias": side.alias,
                "stream": side.source.stream,
                "window": str(side.window),
                "where": None if side.where is None else side.where.sql,
                "group_by": [key.sql for key in side.group_by],
                "components": [str(component) for component in side.components],
                "set": place.set,
                "tree": place.tree,
                "query": place.name,
                "early": is_early,
                "shared_with": partners_text(plan, planned, place),
            }
            for side, place, is_early in zip(join.sides, planned.sides, early, strict=True)
        ],
        "links": [
            {
                "parent": join.sides[link.parent].alias,
                "child": join.sides[link.child].alias,
                "kind": str(link.kind),
                "text": link_text(join, link),
                "observed": asdict(planned.observed[i]) if planned.observed else None,
            }
            for i, link in enumerate(join.links)
        ],
        "plan": plan_name(early),
        "fold": planned.fold,
        "tuples": [list(place) for place in planned.tuples],
        "matrix_with": [planned_join.name for planned_join in sharing_matrix(plan, planned)],
        "order": list(planned.order),
        "cost": costs.join_json(planned),
        "executors": shards_text(plan, planned, sharding_of(plan)),
        "answer": output_text(query),
        "having": having_sql(query),
        "shape": planned.shape,
    }
