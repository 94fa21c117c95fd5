"""Joins: their sides, where these are answered, who shares them, and how they are folded."""

from __future__ import annotations

from dataclasses import asdict

from windloom.explain.costs import CostView
from windloom.explain.node import ExplainNode, Fact, json_only
from windloom.explain.words import WIDTH, answer_text, having_sql, listing, one_line, output_text, shorten, tree_name
from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.model.formatting import count, number, share
from windloom.model.join import Join, Link
from windloom.model.stream import JoinKind
from windloom.plan.division import division_of
from windloom.plan.joins import early_sides, plan_name
from windloom.plan.plan import Member, Plan, PlannedJoin, PlannedSide, SidePlace

_NAMED_PARTNERS = 4
_SYMBOLS = {JoinKind.INNER: "⋈", JoinKind.LEFT: "⟕", JoinKind.SEMI: "⋉", JoinKind.ANTI: "▷"}


def join_node(plan: Plan, planned: PlannedJoin, costs: CostView) -> ExplainNode:
    query, join, early = planned.query, planned.join, early_sides(plan, planned)
    sides, side_lines, links, link_lines = [], [], [], []
    for side, place, is_early in zip(join.sides, planned.sides, early, strict=True):
        partners = partners_text(plan, planned, place)
        of_side = {
            "alias": side.alias,
            "stream": side.source.stream,
            "window": str(side.window),
            "where": None if side.where is None else side.where.sql,
            "group_by": [key.sql for key in side.group_by],
            "components": [str(component) for component in side.components],
        }
        answered = {"set": place.set, "tree": place.tree, "query": place.name}
        sides.append({**of_side, **answered, "early": is_early, "shared_with": partners})
        partial_set, tree, _ = plan.side(place)
        source = f"relation {side.source.stream}" if side.is_relation else f"{side.source.stream} {side.window}"
        where = "" if side.where is None else f" where {one_line(side.where.sql)}"
        keys = ", ".join(one_line(key.sql) for key in side.group_by)
        reads = f"{tree_name(plan, partial_set, tree)} of set {partial_set.number}"
        side_lines += [f"{side.alias}: {source}{where}, by {keys}: {reads}", partners]
    for i, link in enumerate(join.links):
        parent, child, text = join.sides[link.parent].alias, join.sides[link.child].alias, link_text(join, link)
        known = planned.observed[i] if planned.observed else None
        of_link = {"parent": parent, "child": child, "kind": str(link.kind), "text": text}
        links.append({**of_link, "observed": None if known is None else asdict(known)})
        link_lines.append(text)
        if known is not None:
            link_lines.append(
                f"{number(known.parent_keys)} keys in {parent}, {number(known.child_keys)} in {child};"
                f" {share(known.matching)} of the groups of {parent} match,"
                f" with {number(known.fan_out)} of {child} on average"
                f" (observed, the same for {count(known.rounds, 'round')})"
            )
    fold, buckets = [fold_text(plan, planned)], _buckets_text(plan, planned)
    if planned.tuples:  # a batch run may fold tuples instead of cells
        (pair,) = join.links[0].keys
        ordered = zip(join.sides, (pair.parent, pair.child), strict=True)
        keys = " and ".join(f"{side.alias}.{one_line(side.group_by[key].sql)}" for side, key in ordered)
        fold.append(f"a batch run folds tuples in order of {keys}, unless cells are clearly fewer")
    window = f"{join.window}: window_end is common to all sides, window_start the earliest"
    facts = [
        *json_only(name=planned.name, text=query.text),
        Fact("window", str(query.window), window, is_late=True),
        Fact("sides", sides, side_lines),
        Fact("links", links, link_lines),
        Fact("plan", plan_name(early), _early_text(plan, planned, early)),
        Fact("fold", planned.fold, fold),
        *json_only(tuples=[list(place) for place in planned.tuples]),
        *json_only(matrix_with=[other.name for other in _sharing_matrix(plan, planned)], order=list(planned.order)),
        costs.join_fact(planned),
        Fact("executors", buckets, buckets),
        Fact("answer", output_text(query), answer_text(planned), is_late=True),
        *json_only(having=having_sql(query), shape=planned.shape),
    ]
    return ExplainNode(shorten(f"Join {one_line(planned.name)}: {joined_text(join)}", WIDTH), facts)


def joined_text(join: Join) -> str:
    """Return the streams as they are joined: `orders o ⋈ clicks c`."""

    def aliased(number: int) -> str:
        side = join.sides[number]
        return side.alias if side.alias == side.source.stream else f"{side.source.stream} {side.alias}"

    return one_line(" ".join([aliased(0), *(f"{_SYMBOLS[link.kind]} {aliased(link.child)}" for link in join.links)]))


def partners_text(plan: Plan, planned: PlannedJoin, place: SidePlace) -> str:
    """Return who shares a side: joins that ask the same of the stream, and queries of the same set."""
    partial_set, _, _ = plan.side(place)
    joins = [one_line(join.name) for join in plan.joins if join is not planned and place in join.sides]
    others = [_asking(plan, member) for member in partial_set.queries if member.name != place.name]
    parts = [f"answered once for {listing(joins, _NAMED_PARTNERS)} too"] if joins else []
    parts += [f"partials shared with {listing(others, _NAMED_PARTNERS)}"] if others else []
    return "; ".join(parts) or "shared with nobody"


def _asking(plan: Plan, member: Member) -> str:
    """Return the name of a query; for a side, which has no name that users know, those of its joins."""
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
    text = f"{parent.alias} {_SYMBOLS[link.kind]} {child.alias} ({link.kind}) on {' and '.join(pairs)}"
    if link.residual is None:
        return one_line(text)
    residual = link.residual.sql  # with columns in place of `__p0` and `__c0`
    for letter, side in (("p", parent), ("c", child)):
        for position in reversed(range(len(side.group_by))):
            residual = residual.replace(f"__{letter}{position}", f"{side.alias}.{side.group_by[position]}")
    return one_line(f"{text}, and where {residual}")


def _early_text(plan: Plan, planned: PlannedJoin, early: tuple[bool, ...]) -> str:
    """Return the sides that Spark aggregates before anything leaves it, and the name of such a plan in source D."""
    sides = planned.join.sides
    chosen = [side.alias for side, is_early in zip(sides, early, strict=True) if is_early]
    others = [side.alias for side, is_early in zip(sides, early, strict=True) if not is_early and not side.is_relation]
    parts = [f"Spark aggregates {', '.join(chosen)} early"] if chosen else []
    parts += [f"kernels aggregate {', '.join(others)} late, from tuples"] if others else []
    parts += [f"relation {side.alias} is read as a whole" for side in sides if side.is_relation]
    asked = "" if plan.join_plan in ("auto", plan_name(early)) else f" (asked for was {plan.join_plan})"
    return f"{plan_name(early)}: {', '.join(parts)}{asked}"


def fold_text(plan: Plan, planned: PlannedJoin) -> str:
    join = planned.join
    links = [join.links[i] for i in planned.order]
    steps = [f"{join.sides[link.child].alias} into {join.sides[link.parent].alias}" for link in links]
    others = [one_line(planned_join.name) for planned_join in _sharing_matrix(plan, planned)]
    shared = f"; one matrix for {listing(others, _NAMED_PARTNERS)} too" if others else ""
    return f"{planned.fold}: {', then '.join(steps)}{shared}"


def _sharing_matrix(plan: Plan, planned: PlannedJoin) -> list[PlannedJoin]:
    """Return the other joins that are folded by the same slice matrix."""
    if planned.fold != SliceMatrix.name:
        return []
    others = (join for join in plan.joins if join is not planned)
    return [join for join in others if join.fold == planned.fold and join.pairing == planned.pairing]


def _buckets_text(plan: Plan, planned: PlannedJoin) -> str:
    """Return how the sides of a join meet in the Spark operator."""
    division = division_of(plan)
    partial_set, _, _ = plan.side(planned.sides[0])
    columns = division.of(partial_set.number)
    merged = "; what buckets fold is merged" if plan.joins.index(planned) in division.divided else ""
    if any(side.is_relation for side in planned.join.sides) and columns is None:
        return f"every bucket has its relations as a whole{merged}"
    if not columns:
        return "its sides are in one bucket: their joins have no key in common"
    keys = ", ".join(f"{planned.join.sides[0].alias}.{one_line(partial_set.group_by[place].sql)}" for place in columns)
    return f"its sides meet in buckets by {keys}{merged}"
