"""Turns a SELECT over several sources into a `model.Join`: the query for each side, and how the answers are folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import TokenType, exp

from windloom.language.clauses.select_list import Group, SelectList
from windloom.language.joins.conditions import JoinShape, node_sides, read_conjuncts
from windloom.language.joins.folds import Folder
from windloom.language.joins.links import Linker, LinkPlan
from windloom.language.joins.polynomials import SideBuilder
from windloom.language.sql.from_sources import FromSource
from windloom.language.sql.join_names import JoinNames, joined_names
from windloom.language.sql.names import RowScope
from windloom.language.sql.statement import Statement, windowed
from windloom.language.sql.terms import Term, all_of, inside
from windloom.language.sql.tokens import SourceText, is_word
from windloom.language.windows.registry import syntax_of
from windloom.language.windows.syntax import Bracket, SlideCadence
from windloom.model import Join, JoinKind, Link, VersionWindow, Window, format_duration
from windloom.model.join import KeyPair

_CONDITION = "the condition of a join"


def read_windows(sources: Sequence[FromSource], source: SourceText) -> list[Window]:
    """Return the window of each source of a join: all have one slide, and end together.

    A source that gives only a range takes slide and ends from the first that gives more.
    """
    otherwise = "; if another source has a SLIDE, a RANGE is enough"
    if len(sources) == 1:
        otherwise = ", or GROUP BY window(…) of its time column"
    for from_source in sources:
        kind = kind_of(from_source, source, otherwise)
        if kind.join_obstacle is not None:
            message = f"{kind.plural} cannot be joined: {kind.join_obstacle}"
            hint = "join windows of time, [RANGE 1 hour SLIDE 5 minutes]"
            raise source.error(message, from_source.bracket_span, hint)
    if len(sources) == 1 and sources[0].called is not None:
        return [sources[0].called]
    with_slide = (each for each in sources if any(is_word(token, "SLIDE", "TUMBLE") for token in each.bracket or ()))
    leader = next(with_slide, sources[0])
    bracket = Bracket(leader.bracket or (), leader.bracket_span, source)
    first = syntax_of(bracket.tokens).read(bracket)
    pace = SlideCadence(first.slide_ticks, first.end_ticks)
    windows = []
    for from_source in sources:
        bracket = Bracket(from_source.bracket or (), from_source.bracket_span, source, pace=pace)
        window = first if from_source is leader else syntax_of(bracket.tokens).read(bracket)
        if window.slide_ticks != pace.slide_ticks:
            raise source.error(
                f"the windows of a query have one slide, and '{from_source.name}' has another than '{leader.name}'",
                from_source.bracket_span,
                f"write SLIDE {format_duration(pace.slide_ticks)}, or the range alone",
            )
        if window.end_ticks != pace.end_ticks:
            mended = (window.offset_ticks + pace.end_ticks - window.end_ticks) % pace.slide_ticks
            message = f"the windows of '{from_source.name}' never end together with those of '{leader.name}'"
            hint = f"write OFFSET {format_duration(mended)}, or the range alone, which then ends with them"
            raise source.error(message, from_source.bracket_span, hint)
        windows.append(window)
    return windows


def kind_of(from_source: FromSource, source: SourceText, otherwise: str) -> type[Window]:
    """Return the kind of a source's window; `otherwise` says how else a source without a window can be written."""
    if from_source.called is not None:
        return type(from_source.called)
    if from_source.bracket is None:
        hint = f"write {from_source.stream.text} [RANGE 1 hour SLIDE 5 minutes]{otherwise}"
        raise source.error(f"'{from_source.name}' has no window", from_source.stream, hint)
    return syntax_of(from_source.bracket).window


def _one_sided_parts(node: exp.Expr, names: JoinNames) -> Iterator[tuple[exp.Expr, int]]:
    """Yield the largest parts that read one side."""
    node = inside(node)
    sides = node_sides(node, names)
    if len(sides) == 1:
        yield node, next(iter(sides))
    elif sides:
        for below in node.iter_expressions():
            yield from _one_sided_parts(below, names)


@dataclass(frozen=True, slots=True)
class _PairScope(RowScope):
    """Expressions on pairs of rows, in which parts that read one side are replaced by placeholders."""

    placeholders: Mapping[str, str]

    def settle(self, term: Term) -> Term:
        placeholder = self.placeholders.get(term.sql)
        return term if placeholder is None else term.as_placeholder(placeholder)


def with_stream_first(statement: Statement, shape: JoinShape) -> Statement | None:
    """Return the statement with another first side, if that is a relation; None if it is a stream.

    All other sides hang on the first one, and rows are reported for its windows. A relation that is joined by INNER
    can come later. One that keeps its rows cannot: nothing determines the ends at which its rows without a match
    would be reported.
    """
    names = statement.names
    assert isinstance(names, JoinNames)
    if not names.is_relation(0):
        return None
    streams = [side for side in shape.top.members if not names.is_relation(side)]
    if not streams:
        relation = statement.clause.sides[0]
        hanging = shape.top.hanging[0]
        hint = f"begin with the stream: FROM orders [RANGE 1 hour SLIDE 5 minutes] o LEFT JOIN {relation.written} ON …"
        if hanging.kind is JoinKind.SEMI:
            hint = f"join it by JOIN, and count its keys with count(DISTINCT …); or {hint}"
        shown = hanging.shown if hanging.word.token_type is TokenType.EXISTS else hanging.kind.words
        shown = "RIGHT JOIN" if hanging.word.token_type is TokenType.RIGHT else shown
        raise statement.source.error(
            f"the {shown} keeps the rows of relation '{relation.stream.text}', which have no windows",
            hanging.word,
            hint,
        )
    clause = statement.clause
    root = clause.sources.index(clause.sides[min(streams)])
    clause = replace(clause, root=root)
    streams_in_order = [names.sides[statement.clause.sides.index(source)].stream for source in clause.sides]
    names = joined_names(clause.sides, streams_in_order, names.aliases, names.own, statement.source)
    return replace(statement, clause=clause, names=names)


@dataclass(frozen=True, slots=True)
class JoinReading:
    """A join whose FROM and WHERE have been read; `statement` has the names that the other clauses may use."""

    statement: Statement
    names: JoinNames
    shape: JoinShape
    builders: list[SideBuilder]

    def taken_apart(self, groups: list[Group], answer: SelectList) -> Join:
        """Return the join with these groupings and aggregates."""
        linker = Linker(self.builders, self.names, self.statement)
        linker.link(self.shape.top, 0)
        folder = Folder(self.builders, self.shape.names, self.statement, self.shape.nullable_sides())
        grouped = [self._group(group, folder) for group in groups]
        folded = folder.fold(answer.aggregates)
        pending = [self._group_link(link) for link in linker.links]
        # From here on, every side has all of its grouping columns, so their positions are known.
        return Join(
            tuple(builder.build() for builder in self.builders),
            tuple(self._link(link) for link in pending),
            tuple((side, self.builders[side].position(sql)) for side, sql in grouped),
            folded,
        )

    def _group(self, group: Group, folder: Folder) -> tuple[int, str]:
        """Return the side of a grouping expression, and its text there."""
        sides = set(map(self.names.side_of, group.term.columns))
        if len(sides) > 1:
            owners = " and ".join(f"'{self.names.labels[side]}'" for side in sorted(sides))
            message = f"cannot group by '{group.term.sql}': it is made of columns of {owners}"
            hint = "a side of a join is grouped before they meet; group by the parts of each stream instead"
            raise self.statement.error(message, group.named, hint)
        side = next(iter(sides), 0)
        bind = partial(folder.bind_strictly, side) if sides else self.builders[0].bind
        return side, self.builders[side].group(bind(group.node, "GROUP BY"))

    def _group_link(self, plan: LinkPlan) -> _PendingLink:
        """Make the keys of a link grouping columns, and every part of its residual condition that reads one side."""
        parent, child = self.builders[plan.parent], self.builders[plan.child]
        keys = dict.fromkeys((parent.group(term), child.group(other), safe) for term, other, safe in plan.keys)
        parts: dict[str, tuple[int, str]] = {}
        for conjunct in plan.residual:
            for node, side in _one_sided_parts(conjunct.node, self.names):
                term = self.builders[side].bind(node, _CONDITION)
                whole = self.statement.bind(node, RowScope(self.names, _CONDITION))
                parts[whole.sql] = (side, self.builders[side].group(term))
        return _PendingLink(plan, tuple(keys), parts)

    def _link(self, pending: _PendingLink) -> Link:
        """Return a link; its residual reads grouping columns, `__p0`, … of the parent and `__c0`, … of the child."""
        plan, builders = pending.plan, self.builders
        parent, child = builders[plan.parent], builders[plan.child]
        keys = ((parent.position(key), child.position(other), safe) for key, other, safe in pending.keys)
        placeholders = {
            whole: f"__{'p' if side == plan.parent else 'c'}{builders[side].position(sql)}"
            for whole, (side, sql) in pending.parts.items()
        }
        scope = _PairScope(self.names, _CONDITION, placeholders)
        condition = all_of([self.statement.bind(conjunct.node, scope) for conjunct in plan.residual])
        residual = None if condition is None else condition.group_expression()
        return Link(plan.parent, plan.child, plan.kind, tuple(KeyPair(*key) for key in keys), residual)


@dataclass(frozen=True, slots=True)
class _PendingLink:
    """A link whose keys and conditions refer to grouping columns by their texts, which have no positions yet.

    `parts` are those parts of the conditions that read one side, by their qualified text.
    """

    plan: LinkPlan
    keys: tuple[tuple[str, str, bool], ...]
    parts: Mapping[str, tuple[int, str]]


def read_join(statement: Statement) -> JoinReading:
    """Read windows, conditions and the links between sides."""
    assert isinstance(statement.names, JoinNames)
    names = statement.names
    clause = statement.clause
    streams = [source for source in clause.sources if not names.is_relation(clause.sides.index(source))]
    windows = dict(zip(map(id, streams), read_windows(streams, statement.source), strict=True))
    shape, where = JoinShape(names, statement), statement.where
    shape.require([] if where is None else read_conjuncts(where, shape.names, "WHERE", statement))
    for exists in clause.exists:
        shape.look_for(exists)
    if (reordered := with_stream_first(statement, shape)) is not None:
        return read_join(reordered)
    statement = replace(statement, names=shape.names)
    builders = []
    for source, side_names in zip(clause.sides, names.sides, strict=True):
        window = windows.get(id(source), VersionWindow())  # that of a relation
        builders.append(SideBuilder(windowed(side_names.stream, window, source.name), side_names, statement))
    return JoinReading(statement, shape.names.seeing(range(len(builders))), shape, builders)
