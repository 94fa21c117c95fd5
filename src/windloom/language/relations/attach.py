"""Non-retroactive relations in FROM: each is attached to the stream that its condition names, which it enriches.

A query over streams and retroactive relations is left. Its conditions may name columns of the attached relations as if
they were columns of their streams. The condition of an INNER join may be in ON or in WHERE: equalities with the stream
become the condition of the join, and everything else stays a condition on the joined tuples.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from functools import reduce

from sqlglot import Token, exp

from windloom.errors import QueryError
from windloom.expressions.typing import operand_type
from windloom.language.joins.conditions import Conjunct, equality_of, read_condition, read_conjuncts
from windloom.language.relations.names import AttachedNames, EnrichedNames
from windloom.language.sql.from_sources import FromSource, JoinedSource
from windloom.language.sql.join_names import JoinNames, names_of
from windloom.language.sql.names import Names, RowScope
from windloom.language.sql.statement import Statement
from windloom.language.sql.syntax import parse_condition
from windloom.language.sql.terms import condition_of, inside
from windloom.language.windows.registry import syntax_of
from windloom.model import Enrichment, Expression, JoinKind, Relation, Stream, TypeKind
from windloom.model.stream import enriched

_PLACE = "the condition of a join"
_WIDTHS = (TypeKind.INTEGER, TypeKind.FLOAT)


def _condition(nodes: Sequence[exp.Expr], names: Names, columns: Set[str], statement: Statement) -> Expression:
    """Return the conjunction of conditions, over the columns of the enriched stream.

    Conditions are in a fixed order, and equalities have the relation, whose columns are `columns`, on their right, so
    that queries which ask for the same have the same text.
    """
    terms = []
    for node in nodes:
        if isinstance(node, exp.EQ | exp.NullSafeEQ):
            # As for joins of streams, types that are known may differ only in their width.
            sides = (statement.bind(inside(side), RowScope(names, _PLACE)) for side in (node.this, node.expression))
            one, other = (operand_type(side.tree, names.stream.columns) for side in sides)
            if one and other and one != other and not (one.kind is other.kind and one.kind in _WIDTHS):
                message = f"the keys of a join must have one type, and these are {one} and {other}"
                hint = f"cast one of them, for example CAST(… AS {one.name.upper()})"
                raise statement.error(message, node, hint)
            left, right = (
                {found[0] for column in side.find_all(exp.Column) if (found := names.find_node(column)) is not None}
                for side in (node.this, node.expression)
            )
            if right and left & columns and not right & columns:
                node = type(node)(this=node.expression, expression=node.this)
        terms.append(statement.bind(node, RowScope(names, _PLACE)))
    conjunction = condition_of(sorted(terms, key=lambda term: term.sql))
    assert conjunction is not None, "a relation without a key has been refused"
    return conjunction


def attach_relations(statement: Statement) -> Statement:
    """Return the statement without its non-retroactive relations, over streams that are enriched with them."""
    names = statement.names
    if not isinstance(names, JoinNames) or not any(_is_attached(side.stream) for side in names.sides):
        return statement
    return _Attachment(statement, names).attached()


def _is_attached(stream: Stream) -> bool:
    """Return whether it is a relation that tuples are joined with as they come in."""
    return isinstance(stream, Relation) and not stream.is_retroactive


@dataclass(slots=True)
class _Base:
    """A stream, and the relations that enrich it so far; `members` are its own side and those of its relations."""

    names: Names
    side: int
    enrichments: list[Enrichment] = field(default_factory=list)
    attached: list[AttachedNames] = field(default_factory=list)
    hidden: list[AttachedNames] = field(default_factory=list)
    members: set[int] = field(default_factory=set)
    merged: set[str] = field(default_factory=set)

    def scope(self, more: AttachedNames) -> EnrichedNames:
        """Return the names in the condition of one more relation, which may name every column of that relation."""
        names, every = self.names, (*self.attached, more)
        columns = {
            attached.column(name): kind for attached in every for name, kind in attached.relation.columns.items()
        }
        stream = Stream(names.stream.name, {**names.stream.columns, **columns}, names.stream.time)
        return EnrichedNames(stream, names.qualifiers, names.aliases, names.own, names.stream, every)

    def final(self, relations: dict[str, Stream]) -> Names:
        """Return the names of the enriched stream."""
        names, enrichments = self.names, tuple(self.enrichments)
        if not enrichments:
            return names
        stream, hidden = enriched(names.stream, enrichments, relations), tuple(self.hidden)
        attached, merged = tuple(self.attached), frozenset(self.merged)
        return EnrichedNames(stream, names.qualifiers, names.aliases, names.own, names.stream, attached, hidden, merged)


class _Attachment:
    """Attaches relations one by one, by the conditions of each side (`_on`) and of WHERE that are not `_used` yet."""

    def __init__(self, statement: Statement, names: JoinNames) -> None:
        self._statement, self._clause = statement, statement.clause
        self._sides = statement.clause.sides
        self._bases = [
            _Base(side_names, side, members={side})
            for side, side_names in enumerate(names.sides)
            if not _is_attached(side_names.stream)
        ]
        self._on: dict[int, list[Conjunct]] = {}
        # Reads the conditions of FROM, source by source, each over those before it. Returns the names after them.
        visible: list[int] = []
        for source in self._clause.named:
            side = self._side(source)
            names = names.seeing([*visible, side])
            conjuncts: list[Conjunct] = []
            if source.joined is not None:
                conjuncts, names = read_condition(names, side, source.joined, self._statement)
            self._on[side] = conjuncts
            if source.joined is None or source.joined.kind.shows_child:
                visible.append(side)
        self._names = names.seeing(visible)
        where = statement.where
        self._where = [] if where is None else read_conjuncts(where, self._names, "WHERE", statement)
        self._used: list[Conjunct] = []

    def attached(self) -> Statement:
        for source in self._clause.named:
            if self._is_attached(source):
                self._attach(source)
        for exists in self._clause.exists:
            if any(map(self._is_attached, exists.sources)):
                # Attaches by EXISTS, which means SEMI, or NOT EXISTS, which means ANTI.
                source = exists.sources[0]
                if len(exists.sources) > 1:
                    hint = "write one EXISTS for the relation, and another one for the rest"
                    raise self._statement.source.error(
                        "a non-retroactive relation stands alone in EXISTS", exists.word, hint
                    )
                side, on = self._side(source), list[Conjunct]()
                if exists.where:
                    node = parse_condition(exists.where, self._statement.source)
                    names = self._names.seeing([*self._names.visible, side], [side])
                    on = read_conjuncts(node, names, "WHERE", self._statement)
                self._attach_outside(source, JoinedSource(exists.kind, exists.word), on)
        return self._rest()

    def _attach(self, source: FromSource) -> None:
        side, joined = self._side(source), self._joined(source)
        if joined.kind is not JoinKind.INNER:
            self._attach_outside(source, joined, self._conditions(source))
            return
        # The conditions that every row has to satisfy, and that are not used yet.
        inner = [each for each in self._clause.named if each.joined is None or each.joined.kind is JoinKind.INNER]
        conditions = [*(each for other in inner for each in self._on[self._side(other)]), *self._where]
        pool = [each for each in conditions if each not in self._used]
        base = next((base_of for each in pool if (base_of := self._linked(each, side)) is not None), None)
        if base is None:
            raise self._no_key(source, source.stream)
        self._check_present(base, source)
        on = [each for each in self._conditions(source) if side in each.sides and each.sides <= {side} | base.members]
        on += [each for each in pool if self._linked(each, side) is base and each not in on]
        self._add(base, side, joined, on)

    def _attach_outside(self, source: FromSource, joined: JoinedSource, on: Sequence[Conjunct]) -> None:
        """Attach by LEFT, SEMI or ANTI: the whole condition belongs to the join, and names one stream."""
        side = self._side(source)
        base = next((base_of for each in on if (base_of := self._compared(each, side)) is not None), None)
        if base is None:
            raise self._no_key(source, joined.word)
        outside = [each for each in on if not each.sides <= {side} | base.members]
        if outside:
            message = f"'{source.name}' is a non-retroactive relation, and tuples of one stream are joined with it"
            hint = f"name columns of '{base.names.label}' alone, or declare the relation without NONRETROACTIVE"
            raise self._statement.error(message, outside[0].node, hint)
        rejects = any(each.rejects_nulls(member, self._names) for each in on for member in base.members)
        if joined.kind is not JoinKind.LEFT or not rejects:
            self._check_present(base, source)
        self._add(base, side, joined, on)

    def _add(self, base: _Base, side: int, joined: JoinedSource, on: Sequence[Conjunct]) -> None:
        names, relation = self._names.sides[side], self._names.sides[side].stream
        base_source = self._sides[base.side]
        kind = None if base_source.bracket is None else syntax_of(base_source.bracket).window
        if kind is not None and kind.enriched_obstacle is not None:
            message = f"{kind.plural} cannot be joined: {kind.enriched_obstacle}"
            raise self._statement.source.error(message, base_source.bracket_span, "use windows of time, or sessions")
        count = sum(each.relation == relation.name for each in base.enrichments)
        prefix = f"{relation.name} {count + 1}" if count else relation.name
        attached = AttachedNames(relation, names.qualifiers, prefix)
        columns = {attached.column(name) for name in relation.columns}
        condition = _condition([each.node for each in on], base.scope(attached), columns, self._statement)
        base.enrichments.append(Enrichment(relation.name, attached.prefix, joined.kind, condition))
        (base.attached if joined.kind.shows_child else base.hidden).append(attached)
        base.members.add(side)
        base.merged |= {token.text.lower() for token in joined.using}
        self._used += on

    def _joined(self, source: FromSource) -> JoinedSource:
        """Return how a relation is joined. If it comes first, the source after it determines that."""
        joined = source.joined or next(each.joined for each in self._clause.named if each.joined is not None)
        if source.joined is None and joined.is_right:
            return replace(joined, is_right=False)
        if joined.is_right or (source.joined is None and joined.kind is not JoinKind.INNER):
            shown = "RIGHT JOIN" if joined.is_right else joined.kind.words
            message = f"the {shown} keeps the rows of relation '{source.stream.text}', which have no windows"
            example = f"FROM orders [RANGE 1 hour SLIDE 5 minutes] o LEFT JOIN {source.written} ON …"
            raise self._statement.source.error(message, joined.word, f"begin with the stream: {example}")
        return joined

    def _conditions(self, source: FromSource) -> list[Conjunct]:
        """Return the conditions that a source was joined with; for the first source, those of the next one."""
        return self._on[self._side(source if source.joined is not None else self._clause.named[1])]

    def _compared(self, conjunct: Conjunct, side: int) -> _Base | None:
        """Return the stream that a condition compares a relation with; None if there is none, or several."""
        others = conjunct.sides - {side}
        if side not in conjunct.sides or not others:
            return None
        return next(
            (base for base in self._bases if others <= base.members and not base.names.stream.is_relation), None
        )

    def _linked(self, conjunct: Conjunct, side: int) -> _Base | None:
        """Return the stream that an equality compares a relation with; None if it is no equality, or there is none."""
        return None if equality_of(conjunct, self._names) is None else self._compared(conjunct, side)

    def _no_key(self, source: FromSource, at: Token) -> QueryError:
        stream = next(base.names.label for base in self._bases if not base.names.stream.is_relation)
        hint = f"compare a column of '{source.name}' with one of a stream: ON {stream}.x = {source.name}.y"
        return self._statement.source.error(f"relation '{source.name}' is joined without a key", at, hint)

    def _check_present(self, base: _Base, source: FromSource) -> None:
        """Refuse to drop tuples of a stream that may itself have no match: rows without one would also have to go."""
        base_source, named = self._sides[base.side], self._clause.named
        until = named.index(source) if source in named else len(named)
        later = [each.joined for each in named[named.index(base_source) + 1 : until]]
        joined = base_source.joined
        is_left = joined is not None and joined.kind is JoinKind.LEFT and not joined.is_right
        if is_left or any(joined is not None and joined.is_right for joined in later):
            raise self._statement.source.error(
                f"relation '{source.name}' is joined to '{base_source.name}', which may have no match itself",
                source.stream,
                f"join '{base_source.name}' by JOIN, or '{source.name}' by LEFT JOIN on a key",
            )

    def _rest(self) -> Statement:
        """Return the statement of streams, with the conditions that were not used."""
        named: list[FromSource] = []
        moved: list[Conjunct] = []
        for source in self._clause.named:
            conjuncts = self._on[self._side(source)]
            is_inner = source.joined is not None and source.joined.kind is JoinKind.INNER
            is_changed = any(each in self._used for each in conjuncts)
            if self._is_attached(source) or not named or (is_inner and is_changed):
                moved += [each for each in conjuncts if each not in self._used]
                joined = None if not named or source.joined is None else replace(source.joined, on=(), using=())
                source = replace(source, joined=joined) if not self._is_attached(source) else source
            named += [] if self._is_attached(source) else [source]
        rights = [
            source.joined for source in self._clause.named if source.joined is not None and source.joined.is_right
        ]
        if moved and rights:
            hint = "begin with the stream, and join the relation to it alone, before other streams"
            raise self._statement.source.error(
                "a relation cannot be joined like this beside a RIGHT JOIN", rights[0].word, hint
            )
        exists = tuple(each for each in self._clause.exists if not any(map(self._is_attached, each.sources)))
        sources = (*named, *(source for each in exists for source in each.sources))
        clause = replace(self._clause, sources=sources, exists=exists)
        relations = {names.stream.name: names.stream for names in self._names.sides}
        by_side = {base.side: base for base in self._bases}
        sides = tuple(by_side[self._side(source)].final(relations) for source in clause.sides)
        names = sides[0]
        if len(sides) > 1:
            labels, streams = tuple(source.name for source in clause.sides), tuple(each.stream for each in sides)
            names = replace(names_of(labels, streams, self._names.aliases, self._names.own), sides=sides)
        return replace(self._statement, clause=clause, tree=self._tree(moved), names=names)

    def _tree(self, moved: Sequence[Conjunct]) -> exp.Select:
        """Return the rest of the statement with other conditions in WHERE, if there are any."""
        tree = self._statement.tree
        if not moved and not any(each in self._used or each.is_true for each in self._where):
            return tree
        left = [each.node for each in (*moved, *self._where) if each not in self._used and not each.is_true]
        if len(left) > 1:
            left = [exp.Paren(this=node) for node in left]
        conjunction = reduce(lambda before, node: exp.And(this=before, expression=node), left) if left else None
        tree = tree.copy()
        tree.set("where", None if conjunction is None else exp.Where(this=conjunction))
        return tree

    def _side(self, source: FromSource) -> int:
        """Return the side of a source, which may have lost its condition."""
        return next(side for side, each in enumerate(self._sides) if each.stream is source.stream)

    def _is_attached(self, source: FromSource) -> bool:
        names = self._statement.names
        assert isinstance(names, JoinNames)
        return _is_attached(names.sides[self._side(source)].stream)
