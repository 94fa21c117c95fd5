"""Expressions of sides that must be equal: classes of keys, as the equalities of a join imply them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from windloom.errors import QueryError, WrongJoinError
from windloom.expressions.typing import operand_type
from windloom.language.joins.conditions import Conjunct, Equality, JoinCluster, OuterBranch, equality_of
from windloom.language.joins.polynomials import SideBuilder
from windloom.language.sql.join_names import JoinNames
from windloom.language.sql.statement import Statement
from windloom.language.sql.terms import Precedence, Term, all_of, cast_term, compose
from windloom.model import DataType, JoinKind, TypeKind
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.types import DOUBLE


@dataclass(slots=True)
class KeyClass:
    """Expressions that are equal in every row: by side, each with its type if that is known.

    NULL is a value of the class only if no plain equality belongs to it.
    """

    members: dict[int, dict[str, tuple[Term, DataType | None]]] = field(default_factory=dict)
    null_safe: bool = True
    written: list[Conjunct] = field(default_factory=list)

    def kind(self) -> DataType | None:
        """Return the type in which all members are compared; None if unknown, or if they have none in common."""
        kinds = {kind for terms in self.members.values() for _, kind in terms.values()}
        known = {kind for kind in kinds if kind is not None}
        if None in kinds:
            return None
        if len(known) == 1:
            return next(iter(known))
        if {kind.kind for kind in known} == {TypeKind.INTEGER}:
            return max(known, key=lambda kind: kind.bits)
        return DOUBLE if {kind.kind for kind in known} == {TypeKind.FLOAT} else None

    def key(self, side: int) -> Term:
        """Return the member of a side that is compared, in the type of the class."""
        term, own_kind = next(iter(self.members[side].values()))
        kind = self.kind()
        return term if kind is None or own_kind is None or own_kind == kind else cast_term(term, kind)


class KeyClasses:
    """The classes of several equalities; `by_member` has the class of each expression, by its side and text."""

    def __init__(self, equalities: Iterable[Equality], builders: list[SideBuilder], names: JoinNames) -> None:
        self.by_member: dict[tuple[int, str], KeyClass] = {}
        for equality in equalities:
            key_class = KeyClass({}, equality.null_safe, [equality.conjunct])
            for side, node in zip(equality.sides, equality.nodes, strict=True):
                term = builders[side].bind(node, "the condition of a join")
                kind = operand_type(term.tree, builders[side].stream.columns)
                key_class.members.setdefault(side, {})[term.sql] = (term, kind)
            keys = [(side, sql) for side, terms in key_class.members.items() for sql in terms]
            met = [self.by_member[key] for key in keys if key in self.by_member]
            for known in {id(each): each for each in met}.values():
                for side, terms in key_class.members.items():
                    known.members.setdefault(side, {}).update(terms)
                known.null_safe = known.null_safe and key_class.null_safe
                known.written += key_class.written
                key_class = known
            for side, terms in key_class.members.items():
                self.by_member |= {(side, sql): key_class for sql in terms}
        self.classes = list({id(key_class): key_class for key_class in self.by_member.values()}.values())


def check_types(key_class: KeyClass, names: JoinNames, statement: Statement) -> None:
    """Refuse keys whose types are known and differ in more than their width."""
    typed = [
        (f"{names.labels[side]}: {term.sql}", kind)
        for side, terms in key_class.members.items()
        for term, kind in terms.values()
        if kind is not None
    ]
    if key_class.kind() is None and len(typed) == sum(map(len, key_class.members.values())):
        first = typed[0]
        second = next(each for each in typed if each[1] != first[1])
        refused = statement.error(
            f"the keys of a join must have one type, and these are {first[1]} and {second[1]}",
            key_class.written[-1].node,
            f"cast one of them, for example CAST(… AS {first[1].name.upper()})",
        )
        raise WrongJoinError(refused.message, refused.detail, refused.hint)
    for _, kind in typed:
        if not kind.is_groupable:
            hint = "join on plain values: fields or elements of it, or to_json(…)"
            raise statement.error(f"a key of a join cannot be of type {kind}", key_class.written[-1].node, hint)


@dataclass(slots=True)
class LinkPlan:
    """A link between two sides; its keys are terms of both, and `residual` are conditions on pairs of rows."""

    parent: int
    child: int
    kind: JoinKind
    keys: list[tuple[Term, Term, bool]] = field(default_factory=list)  # (parent's, child's, is null-safe)
    residual: list[Conjunct] = field(default_factory=list)


class Linker:
    """Gives each condition to a side or to a link; links form a tree, in which parents come before children."""

    def __init__(self, builders: list[SideBuilder], names: JoinNames, statement: Statement) -> None:
        self._builders = builders
        self._names = names
        self._statement = statement
        self.links: list[LinkPlan] = []

    def link(self, cluster: JoinCluster, root: int) -> None:
        """Link all sides of a cluster, and everything below, into a tree with this root."""
        equalities, residual = [], []
        for conjunct in cluster.conditions:
            if len(conjunct.sides) < 2:
                if not conjunct.is_true:
                    builder = self._builders[next(iter(conjunct.sides), cluster.members[0])]
                    builder.conditions.append(builder.bind(conjunct.node, "the condition of a join"))
            elif (equality := equality_of(conjunct, self._names)) is not None:
                equalities.append(equality)
            else:
                self._check_two_sides(conjunct)
                residual.append(conjunct)
        classes = KeyClasses(equalities, self._builders, self._names)
        for key_class in classes.classes:
            check_types(key_class, self._names, self._statement)
            # In each side, all expressions of one class must be equal.
            for side, terms in key_class.members.items():
                first, *others = (term.fit(Precedence.BIT_OR) for term, _ in terms.values())
                symbol = " <=> " if key_class.null_safe else " = "
                for other in others:
                    self._builders[side].conditions.append(compose(Precedence.COMPARE, first, symbol, other))
        self._span(cluster, root, classes, residual)
        for hanging in cluster.hanging:
            self._hang(hanging, cluster, classes)

    def _span(self, cluster: JoinCluster, root: int, classes: KeyClasses, residual: list[Conjunct]) -> None:
        """Link the sides by the tree with the most keys: a join tree, if there is one (Bernstein and Goodman)."""
        shared = [key_class for key_class in classes.classes if len(key_class.members) > 1]
        linked, left = [root], [side for side in sorted(cluster.members) if side != root]
        weight = 0
        while left:
            pairs = [(parent, child) for parent in linked for child in left]
            conditions_of_pairs = [
                (
                    [key_class for key_class in shared if key_class.members.keys() >= set(pair)],
                    [conjunct for conjunct in residual if conjunct.sides == set(pair)],
                )
                for pair in pairs
            ]
            rank = [(bool(keys), len(keys) + len(conditions)) for keys, conditions in conditions_of_pairs]
            best = rank.index(max(rank))
            (keys, conditions), (parent, child) = conditions_of_pairs[best], pairs[best]
            if not keys:
                raise self._no_key(linked, left, residual)
            weight += len(keys) + len(conditions)
            terms = [(key_class.key(parent), key_class.key(child), key_class.null_safe) for key_class in keys]
            self.links.append(LinkPlan(parent, child, JoinKind.INNER, terms, conditions))
            linked.append(child)
            left.remove(child)
        if weight < sum(len(key_class.members) - 1 for key_class in shared) + len(residual):
            raise self._cyclic(cluster, shared, residual)

    def _no_key(self, linked: list[int], left: list[int], residual: list[Conjunct]) -> QueryError:
        """Return the error for sides without a common key; another condition may still pair their tuples."""
        side_builder, other = self._builders[linked[0]], self._builders[left[0]]
        pairs = 1.0
        for builder in (side_builder, other):  # the tuples in one window, at the rate of the stream
            rate = builder.stream.events_per_second or DEFAULT_EVENTS_PER_SECOND
            pairs *= rate * builder.source.window.range_ticks / TICKS_PER_SECOND
        names = self._names.labels
        refused = self._statement.source.error(
            f"'{names[left[0]]}' is joined without a key: every tuple would be paired with every other",
            self._statement.clause.sides[left[0]].stream,
            f"add an equality with '{names[linked[0]]}', as in ON a.x = b.y",
            fact="" if other.stream.is_relation else f"about {pairs:,.0f} pairs per window are expected",
        )
        is_linked = any(conjunct.sides & set(linked) and conjunct.sides & set(left) for conjunct in residual)
        return refused if is_linked else WrongJoinError(refused.message, refused.detail, refused.hint)

    def _cyclic(self, cluster: JoinCluster, shared: list[KeyClass], residual: list[Conjunct]) -> QueryError:
        """Return the error for sides that form circles: those left without ears, as by Graham, Yu and Özsoyoğlu."""
        keys = {
            side: {
                *(id(key_class) for key_class in shared if side in key_class.members),
                *(id(conjunct) for conjunct in residual if side in conjunct.sides),
            }
            for side in cluster.members
        }
        is_changed = True
        while is_changed:
            is_changed = False
            for side, own_keys in list(keys.items()):
                others = [each for other, each in keys.items() if other != side]
                alone = {key for key in own_keys if not any(key in each for each in others)}
                own_keys -= alone
                is_changed |= bool(alone)
                if any(own_keys <= each for each in others):
                    del keys[side]
                    is_changed = True
                    break
        sides = frozenset(keys)
        conditions = [each for key_class in shared for each in key_class.written] + residual
        last = [
            conjunct for conjunct in cluster.conditions if conjunct in conditions and len(conjunct.sides & sides) > 1
        ][-1]
        circle = ", ".join(f"'{self._names.labels[side]}'" for side in sorted(sides))
        return self._statement.error(
            f"the join is cyclic: {circle} are linked in a circle",
            last.node,
            "the conditions of a join must form a tree; leave one out, or equate one key of all of them",
        )

    def _hang(self, hanging: OuterBranch, above: JoinCluster, classes: KeyClasses) -> None:
        inner = frozenset(hanging.cluster.members)
        across: list[Conjunct] = []
        of_parent: list[Conjunct] = []
        for conjunct in hanging.on:
            if not conjunct.sides & inner and conjunct.sides:
                of_parent.append(conjunct)
            elif conjunct.sides <= inner:
                hanging.cluster.conditions.append(conjunct)
            else:
                self._check_two_sides(conjunct)
                across.append(conjunct)
        equalities = [
            equality for equality in (equality_of(conjunct, self._names) for conjunct in across) if equality is not None
        ]
        residual = [conjunct for conjunct in across if equality_of(conjunct, self._names) is None]
        parent, child = self._ends(hanging, above, classes, equalities, residual, of_parent)
        link = LinkPlan(parent, child, hanging.kind, residual=residual)
        for equality in equalities:
            side = equality.other(link.child)
            added = KeyClasses([equality], self._builders, self._names).classes[0]
            check_types(added, self._names, self._statement)
            key = added.key(side)
            known = classes.by_member.get(
                (side, self._builders[side].bind(equality.nodes[equality.sides.index(side)], "ON").sql)
            )
            if side != link.parent and known is not None:
                key = known.key(link.parent)
            link.keys.append((key, added.key(link.child), equality.null_safe))
        self._guard(link, of_parent, hanging)
        self.links.append(link)
        self.link(hanging.cluster, child)

    def _ends(
        self,
        hanging: OuterBranch,
        above: JoinCluster,
        classes: KeyClasses,
        equalities: list[Equality],
        residual: list[Conjunct],
        of_parent: list[Conjunct],
    ) -> tuple[int, int]:
        """Return the two sides that the condition links; each of the two clusters must have one of them."""
        inner = frozenset(hanging.cluster.members)
        if not equalities:
            message = f"the {hanging.shown} has no key"
            raise self._statement.source.error(message, hanging.word, "add an equality to its condition: ON a.x = b.y")
        child = next(iter(equalities[0].conjunct.sides & inner))
        parents = set(above.members)
        for equality in equalities:
            side, sql = -1, ""
            if child in equality.sides:
                side = equality.other(child)
                sql = self._builders[side].bind(equality.nodes[equality.sides.index(side)], "ON").sql
            known = classes.by_member.get((side, sql))
            parents &= {side} if known is None else set(known.members)
        for conjunct in (*residual, *of_parent):
            parents &= conjunct.sides
        if not parents or any(
            child not in conjunct.sides for conjunct in (*[each.conjunct for each in equalities], *residual)
        ):
            raise self._statement.error(
                f"the condition of the {hanging.shown} must link it to one stream",
                (*of_parent, *residual, *(equality.conjunct for equality in equalities))[0].node,
                "name columns of one stream before it, or columns that are equal to them",
            )
        named = equalities[0].other(child)
        return (named if named in parents else min(parents)), child

    def _guard(self, link: LinkPlan, of_parent: list[Conjunct], hanging: OuterBranch) -> None:
        """Add conditions on the parent alone: if they do not hold, a row of the parent has no match."""
        builder = self._builders[link.parent]
        conditions = [builder.bind(conjunct.node, "ON") for conjunct in of_parent]
        if link.kind is JoinKind.SEMI:
            builder.conditions += conditions
            return
        where = all_of(conditions)
        if where is None:
            return
        index = next((index for index, key in enumerate(link.keys) if not key[2]), None)
        if index is None:
            hint = "write = instead of <=> in one of the equalities, or filter in a query of its own"
            raise self._statement.error("this condition needs a key that is never NULL", of_parent[0].node, hint)
        key, child, _ = link.keys[index]
        link.keys[index] = (compose(Precedence.PRIMARY, "CASE WHEN ", where, " THEN ", key, " END"), child, False)

    def _check_two_sides(self, conjunct: Conjunct) -> None:
        if len(conjunct.sides) > 2:
            names = ", ".join(f"'{self._names.labels[side]}'" for side in sorted(conjunct.sides))
            hint = "conditions of a join are about one stream or about two"
            raise self._statement.error(f"this condition is about {names} at once", conjunct.node, hint)
