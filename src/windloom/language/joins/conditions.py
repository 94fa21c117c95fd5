"""The shape of a join: clusters of sources joined by INNER, on which other clusters hang by LEFT, SEMI and ANTI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sqlglot import Token, TokenType, exp

from windloom.language.joins.null_rows import NullRowValue, on_null_row
from windloom.language.sql.from_clause import Exists
from windloom.language.sql.from_sources import JoinedSource
from windloom.language.sql.join_names import JoinNames
from windloom.language.sql.names import RowScope
from windloom.language.sql.statement import Statement
from windloom.language.sql.syntax import parse_condition
from windloom.language.sql.terms import Term, inside
from windloom.model import JoinKind

#: The parts of a column's name in a syntax tree, the last one first.
_PARTS = ("this", "table", "db", "catalog")


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One part of a condition, over the qualified columns of the join."""

    node: exp.Expr
    term: Term
    sides: frozenset[int]

    def rejects_nulls(self, side: int, names: JoinNames) -> bool:
        """Return whether it cannot hold if all columns of a side are NULL."""
        columns = [column for column in self.term.columns if names.side_of(column) == side]
        return on_null_row(self.term.tree, columns) in (NullRowValue.NULL, NullRowValue.FALSE)

    @property
    def is_true(self) -> bool:
        return isinstance(self.node, exp.Boolean) and bool(self.node.this)


@dataclass(frozen=True, slots=True)
class Equality:
    """A conjunct that equates an expression of one side with one of another; NULL equals NULL if it is `null_safe`."""

    conjunct: Conjunct
    sides: tuple[int, int]
    nodes: tuple[exp.Expr, exp.Expr]
    null_safe: bool

    def other(self, side: int) -> int:
        return self.sides[1 - self.sides.index(side)]


def read_conjuncts(node: exp.Expr, names: JoinNames, place: str, statement: Statement) -> list[Conjunct]:
    """Return the conjuncts of a condition, in their order, with qualified columns, so that they mean the same later."""
    conjuncts, pending = [], [node]
    while pending:  # chains lean to the left and can be long, so this is a loop, not a recursion
        part = inside(pending.pop())
        if isinstance(part, exp.And):
            pending += [part.expression, part.this]
            continue
        term = statement.bind(part, RowScope(names, place))
        conjuncts.append(Conjunct(_qualified(part, names), term, frozenset(map(names.side_of, term.columns))))
    return conjuncts


def _qualified(node: exp.Expr, names: JoinNames) -> exp.Expr:
    def qualify(visited: exp.Expr) -> exp.Expr:
        column = names.find_node(visited)
        if column is None or not isinstance(visited, exp.Column):
            return visited
        label, _ = names.written(column[0])
        written = [part for part in visited.parts if isinstance(part, exp.Identifier)]
        start = len(written) - len(column[1]) - 1  # the index of the column itself, which keeps its place in the text
        parts = [exp.to_identifier(label, quoted=True), *(part.copy() for part in written[start:])]
        if len(parts) > len(_PARTS):
            return visited
        qualified = exp.Column(**dict(zip(_PARTS, reversed(parts), strict=False)))
        qualified.meta.update(visited.meta)
        return qualified

    return node.transform(qualify)


def equality_of(conjunct: Conjunct, names: JoinNames) -> Equality | None:
    """Return the conjunct as an equality between two sides; None if it is not one."""
    node = conjunct.node
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return None
    left, right = inside(node.this), inside(node.expression)
    left_sides, right_sides = node_sides(left, names), node_sides(right, names)
    if len(left_sides) != 1 or len(right_sides) != 1 or left_sides == right_sides:
        return None
    sides = next(iter(left_sides)), next(iter(right_sides))
    return Equality(conjunct, sides, (left, right), isinstance(node, exp.NullSafeEQ))


def node_sides(node: exp.Expr, names: JoinNames) -> frozenset[int]:
    """Return the sides that an expression reads; its names have been checked before."""
    columns = (names.find_node(column) for column in node.find_all(exp.Column))
    return frozenset(names.side_of(column[0]) for column in columns if column is not None)


@dataclass(slots=True, eq=False)
class JoinCluster:
    """Sides that are joined to each other by INNER, the conditions among them, and the clusters that hang on them."""

    members: list[int]
    conditions: list[Conjunct] = field(default_factory=list)
    hanging: list[OuterBranch] = field(default_factory=list)

    def walk(self) -> Iterator[JoinCluster]:
        yield self
        for hanging in self.hanging:
            yield from hanging.cluster.walk()


@dataclass(slots=True, eq=False)
class OuterBranch:
    """A cluster that is joined to a side of another one by LEFT, SEMI or ANTI; `word` is the token of the join."""

    kind: JoinKind
    cluster: JoinCluster
    on: list[Conjunct]
    word: Token

    @property
    def shown(self) -> str:
        if self.word.token_type is not TokenType.EXISTS:
            return f"{self.kind.upper()} JOIN"
        return "EXISTS" if self.kind is JoinKind.SEMI else "NOT EXISTS"


class JoinShape:
    """Reads FROM source by source, then WHERE. A LEFT join becomes INNER if rows without a match cannot count."""

    def __init__(self, names: JoinNames, statement: Statement) -> None:
        sources, sides = statement.clause.named, statement.clause.sides
        self._statement = statement
        self.names = names.seeing([sides.index(sources[0])])
        self.top = JoinCluster(list(self.names.visible))
        for source in sources[1:]:
            assert source.joined is not None
            side = sides.index(source)
            before = self.names.visible
            self.names = self.names.seeing([*before, side])
            on, self.names = read_condition(self.names, side, source.joined, statement)
            if source.joined.kind is JoinKind.INNER:
                self.top.members.append(side)
                self.top.conditions += on
            elif source.joined.is_right:
                self.require([])
                self.top = JoinCluster([side], hanging=[OuterBranch(JoinKind.LEFT, self.top, on, source.joined.word)])
            else:
                self._hang(OuterBranch(source.joined.kind, JoinCluster([side]), on, source.joined.word))
            if source.joined.kind in (JoinKind.SEMI, JoinKind.ANTI):
                self.names = self.names.seeing(before)

    def _hang(self, hanging: OuterBranch) -> None:
        """Hang a cluster on the sides that its condition names."""
        inner = set(hanging.cluster.members)
        named = {side for conjunct in hanging.on if conjunct.sides & inner for side in conjunct.sides - inner}
        owner = next((cluster for cluster in self.top.walk() if named & set(cluster.members)), self.top)
        if owner is not self.top:
            rejected = any(
                other.rejects_nulls(side, self.names) for other in hanging.on for side in named & other.sides
            )
            if hanging.kind is JoinKind.ANTI or not rejected:
                message = f"this {hanging.shown} looks at columns that are NULL where the join before it has no match"
                hint = "let it look at the stream whose rows are all kept, or make the join before it an INNER one"
                raise self._statement.source.error(message, hanging.word, hint)
            if hanging.kind is JoinKind.SEMI:
                # It drops rows whose columns are NULL, so the LEFT join before it is the same as an INNER one.
                for above in self._path(owner):
                    self._merge(above)
                owner = self.top
        owner.hanging.append(hanging)

    def look_for(self, exists: Exists) -> None:
        """Add `[NOT] EXISTS`, after everything else of WHERE has been added."""
        before, sides = self.names.visible, self._statement.clause.sides
        inner = [sides.index(source) for source in exists.sources]
        on: list[Conjunct] = []
        for index, source in enumerate(exists.sources):
            seen = inner[: index + 1]
            self.names = self.names.seeing([*before, *seen], seen)
            if source.joined is not None:
                conjuncts, self.names = read_condition(self.names, inner[index], source.joined, self._statement)
                on += conjuncts
        if exists.where:
            node = parse_condition(exists.where, self._statement.source)
            on += read_conjuncts(node, self.names, "WHERE", self._statement)
        self.names = self.names.seeing(before)
        self._hang(OuterBranch(exists.kind, JoinCluster(inner), on, exists.word))

    def require(self, conjuncts: list[Conjunct]) -> None:
        """Add the conditions of WHERE, and find the LEFT joins that are INNER or ANTI because of them."""
        self.top.conditions += conjuncts
        while self._simplify():
            pass

    def _simplify(self) -> bool:
        for conjunct in self.top.conditions:
            for side in conjunct.sides - set(self.top.members):
                path = self._path(next(cluster for cluster in self.top.walk() if side in cluster.members))
                if conjunct.rejects_nulls(side, self.names):
                    for above in path:
                        self._merge(above)
                elif self._is_anti(conjunct, path[-1]):
                    path[-1].kind = JoinKind.ANTI
                    self.top.conditions.remove(conjunct)
                    gone = path[-1].cluster.members
                    self.names = self.names.seeing(each for each in self.names.visible if each not in gone)
                else:
                    name = self.names.labels[side]
                    raise self._statement.error(
                        f"rows without a match of '{name}' may satisfy this condition,"
                        " which a LEFT JOIN cannot decide afterwards",
                        conjunct.node,
                        f"move it into ON; for rows without a match write WHERE {name}.key IS NULL"
                        " with a key of the join",
                    )
                return True
        return False

    def _path(self, cluster: JoinCluster) -> list[OuterBranch]:
        """Return the path from the top to a cluster."""

        def search(below: JoinCluster) -> list[OuterBranch] | None:
            if below is cluster:
                return []
            for hanging in below.hanging:
                rest = search(hanging.cluster)
                if rest is not None:
                    return [hanging, *rest]
            return None

        return search(self.top) or []

    def _merge(self, hanging: OuterBranch) -> None:
        """Make a LEFT join of the top an INNER one: its rows without a match do not count anyway."""
        self.top.hanging.remove(hanging)
        self.top.members += hanging.cluster.members
        self.top.conditions += [*hanging.on, *hanging.cluster.conditions]
        self.top.hanging += hanging.cluster.hanging

    def _is_anti(self, conjunct: Conjunct, hanging: OuterBranch) -> bool:
        """Return whether a condition makes a LEFT join ANTI: `a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL`."""
        node = inside(conjunct.node)
        if not (isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)):
            return False
        column = self.names.find_node(inside(node.this))
        keys = [
            side
            for other in hanging.on
            if isinstance(other.node, exp.EQ) and len(other.sides) > 1
            for side in (other.node.this, other.node.expression)
        ]
        is_key = column is not None and any(self.names.find_node(inside(key)) == column for key in keys)
        is_single = not hanging.cluster.hanging and len(hanging.cluster.members) == 1
        return is_key and is_single and hanging.kind is JoinKind.LEFT

    def nullable_sides(self) -> frozenset[int]:
        """Return the sides whose columns may be NULL because a row has no match."""
        hanging = self.top.hanging
        while any(each.kind is not JoinKind.LEFT for each in hanging):
            outer = [each for each in hanging if each.kind is JoinKind.LEFT]
            inner = [each for each in hanging if each.kind is not JoinKind.LEFT]
            hanging = outer + [below for each in inner for below in each.cluster.hanging]
        return frozenset(side for each in hanging for below in each.cluster.walk() for side in below.members)


def read_condition(
    names: JoinNames, side: int, joined: JoinedSource, statement: Statement
) -> tuple[list[Conjunct], JoinNames]:
    """Return the condition with which a side is joined to the others that may be named, and the names after it."""
    source = statement.source
    if joined.on:
        node = parse_condition(joined.on, source)
        return read_conjuncts(node, names, "ON", statement), names
    conjuncts = []
    for token in joined.using:
        left = names.seeing(visible_side for visible_side in names.inner or names.visible if visible_side != side)
        columns = []
        for each in (left, names.seeing([side])):
            name = exp.Identifier(this=token.text, quoted=True)
            name.meta.update(start=token.start, end=token.end)
            read_conjuncts(exp.Column(this=name), each, "USING", statement)  # refuses what is unknown or ambiguous
            column_fields = each.find([name])
            assert column_fields is not None
            columns.append((column_fields[0], name))
        qualified = [
            exp.Column(this=name.copy(), table=exp.to_identifier(names.written(column)[0], quoted=True))
            for column, name in columns
        ]
        conjuncts += read_conjuncts(exp.EQ(this=qualified[0], expression=qualified[1]), names, "USING", statement)
        merged_column = columns[1][0] if joined.is_right else columns[0][0]
        names = replace(names, merged={**names.merged, token.text.lower(): names.side_of(merged_column)})
    return conjuncts, names
