"""Turns a SELECT over several sources into a `model.Join`: the query for each side, and how the answers are folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import TokenType, exp

from windloom.language.clauses.select_list import Group, SelectList
from windloom.language.joins.conditions import JoinShape, node_sides, read_conjuncts, sides_of
from windloom.language.joins.folds import Folder
from windloom.language.joins.links import Linker, LinkPlan
from windloom.language.joins.polynomials import SideBuilder
from windloom.language.sql.binder import Binder, Call
from windloom.language.sql.from_sources import FromSource
from windloom.language.sql.join_names import JoinNames, joined_names
from windloom.language.sql.names import RowScope
from windloom.language.sql.statement import Statement, windowed
from windloom.language.sql.terms import Term, all_of, inside
from windloom.language.sql.tokens import SourceText
from windloom.language.windows.registry import read_bracket, syntax_of
from windloom.language.windows.syntax import Bracket, SlideCadence
from windloom.language.windows.time import names_slide
from windloom.model import Expression, Join, JoinKind, Link, VersionWindow, Window, format_duration
from windloom.model.expression import ColumnRef
from windloom.model.join import KeyPair

# The windows of a join: one for each source, all with one slide, so that they end together.


def read_windows(sources: Sequence[FromSource], source: SourceText) -> list[Window]:
    """Return the window of each source. One that gives only a range takes slide and ends from the first that gives
    more.
    """
    for from_source in sources:
        kind = kind_of(from_source, source, "; if another source has a SLIDE, a RANGE is enough")
        if kind.join_obstacle is not None:
            message = f"{kind.plural} cannot be joined: {kind.join_obstacle}"
            hint = "join windows of time, [RANGE 1 hour SLIDE 5 minutes]"
            raise source.error(message, from_source.bracket_span, hint)
    leader = next((source for source in sources if names_slide(source.bracket or ())), sources[0])
    first = read_bracket(Bracket(leader.bracket or (), leader.bracket_span, source))
    pace = SlideCadence(first.slide_ticks, first.end_ticks)
    windows = []
    for from_source in sources:
        window = (
            first
            if from_source is leader
            else read_bracket(Bracket(from_source.bracket or (), from_source.bracket_span, source, pace=pace))
        )
        if window.slide_ticks != pace.slide_ticks:
            raise source.error(
                f"the windows of a query have one slide, and '{from_source.name}' has another than '{leader.name}'",
                from_source.bracket_span,
                f"write SLIDE {format_duration(pace.slide_ticks)}, or the range alone",
            )
        if window.end_ticks != pace.end_ticks:
            mended = (window.offset_ticks + pace.end_ticks - window.end_ticks) % pace.slide_ticks
            raise source.error(
                f"the windows of '{from_source.name}' never end together with those of '{leader.name}'",
                from_source.bracket_span,
                f"write OFFSET {format_duration(mended)}, or the range alone, which then ends with them",
            )
        windows.append(window)
    return windows


def kind_of(from_source: FromSource, source: SourceText, otherwise: str) -> type[Window]:
    """Return the kind of a source's window; `otherwise` says how else a source without a window can be written."""
    if from_source.bracket is None:
        hint = f"write {from_source.stream.text} [RANGE 1 hour SLIDE 5 minutes]{otherwise}"
        raise source.error(f"'{from_source.name}' has no window", from_source.stream, hint)
    return syntax_of(from_source.bracket).window


# Conditions on pairs of rows other than equalities: the parts that read one side become grouping columns of it.

#: Parts of a condition that read one side, by their qualified text, with the text of the side's grouping column.
Parts = Mapping[str, tuple[int, str]]


def group_residual(link: LinkPlan, builders: list[SideBuilder], names: JoinNames, statement: Statement) -> Parts:
    """Make every part of a residual condition that reads one side a grouping column of that side."""
    parts: dict[str, tuple[int, str]] = {}
    for conjunct in link.residual:
        for node, side in _parts(conjunct.node, names):
            term = builders[side].bind(node, "the condition of a join")
            whole = statement.bind(node, RowScope(names, "the condition of a join"))
            parts[whole.sql] = (side, builders[side].group(term))
    return parts


def residual_of(
    link: LinkPlan, parts: Parts, builders: list[SideBuilder], names: JoinNames, statement: Statement
) -> Expression | None:
    """Return the condition over the grouping columns `__p0`, … of the parent and `__c0`, … of the child."""
    placeholders = {
        whole: f"__{'p' if side == link.parent else 'c'}{builders[side].position(sql)}"
        for whole, (side, sql) in parts.items()
    }
    scope = _PairScope(RowScope(names, "the condition of a join"), placeholders)
    condition = all_of([statement.bind(conjunct.node, scope) for conjunct in link.residual])
    return None if condition is None else condition.group_expression()


def _parts(node: exp.Expr, names: JoinNames) -> Iterator[tuple[exp.Expr, int]]:
    """Yield the largest parts that read one side."""
    node = inside(node)
    sides = node_sides(node, names)
    if len(sides) == 1:
        yield node, next(iter(sides))
    elif sides:
        for below in node.iter_expressions():
            yield from _parts(below, names)


@dataclass(frozen=True, slots=True)
class _PairScope:
    """Expressions on pairs of rows, in which parts that read one side are replaced by placeholders."""

    row: RowScope
    placeholders: Mapping[str, str]

    def column(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder) -> Term:
        return self.row.column(parts, node, binder)

    def is_aggregate(self, function: str) -> bool:
        return self.row.is_aggregate(function)

    def aggregate(self, call: Call, binder: Binder) -> Term:
        return self.row.aggregate(call, binder)

    def settle(self, term: Term) -> Term:
        placeholder = self.placeholders.get(term.sql)
        if placeholder is None:
            return term
        return replace(term, over=placeholder, uses=frozenset((placeholder,)), loose=None, tree=ColumnRef(placeholder))


# Chooses the stream of a join that comes first: all others hang on it, and rows are reported for its windows.


def with_stream_first(statement: Statement, shape: JoinShape) -> Statement | None:
    """Return the statement with another first side, if that is a relation; None if it is a stream.

    A relation that is joined by INNER can come later. One that keeps its rows cannot: nothing determines the ends at
    which its rows without a match would be reported.
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
    order = [statement.clause.sides.index(source) for source in clause.sides]
    streams_in_order = [names.sides[side].stream for side in order]
    return replace(
        statement,
        clause=clause,
        names=joined_names(clause.sides, streams_in_order, names.aliases, names.own, statement.source),
    )


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
        pending = [_PendingLink.of(link, self.builders, self.names, self.statement) for link in linker.links]
        # From here on, every side has all of its grouping columns, so their positions are known.
        return Join(
            tuple(builder.build() for builder in self.builders),
            tuple(pending_link.finished(self.builders, self.names, self.statement) for pending_link in pending),
            tuple((side, self.builders[side].position(sql)) for side, sql in grouped),
            folded,
        )

    def _group(self, group: Group, folder: Folder) -> tuple[int, str]:
        """Return the side of a grouping expression, and its text there."""
        sides = sides_of(group.term, self.names)
        if len(sides) > 1:
            owners = " and ".join(f"'{self.names.labels[side]}'" for side in sorted(sides))
            raise self.statement.error(
                f"cannot group by '{group.term.sql}': it is made of columns of {owners}",
                group.named,
                "a side of a join is grouped before they meet; group by the parts of each stream instead",
            )
        side = next(iter(sides), 0)
        term = (
            folder.bind_strictly(side, group.node, "GROUP BY")
            if sides
            else self.builders[0].bind(group.node, "GROUP BY")
        )
        return side, self.builders[side].group(term)


@dataclass(frozen=True, slots=True)
class _PendingLink:
    """A link whose keys and conditions refer to grouping columns by their texts, which have no positions yet."""

    plan: LinkPlan
    keys: tuple[tuple[str, str, bool], ...]
    parts: Parts

    @classmethod
    def of(cls, plan: LinkPlan, builders: list[SideBuilder], names: JoinNames, statement: Statement) -> _PendingLink:
        parent, child = builders[plan.parent], builders[plan.child]
        keys = dict.fromkeys((parent.group(term), child.group(other), safe) for term, other, safe in plan.keys)
        return cls(plan, tuple(keys), group_residual(plan, builders, names, statement))

    def finished(self, builders: list[SideBuilder], names: JoinNames, statement: Statement) -> Link:
        parent, child = builders[self.plan.parent], builders[self.plan.child]
        return Link(
            self.plan.parent,
            self.plan.child,
            self.plan.kind,
            tuple(
                KeyPair(parent.position(parent_key), child.position(child_key), safe)
                for parent_key, child_key, safe in self.keys
            ),
            residual_of(self.plan, self.parts, builders, names, statement),
        )


def read_join(statement: Statement) -> JoinReading:
    """Read windows, conditions and the links between sides."""
    assert isinstance(statement.names, JoinNames)
    names = statement.names
    windows = _windows(statement, names)
    shape = JoinShape(names, statement)
    where = statement.tree.args.get("where")
    shape.require([] if where is None else read_conjuncts(where.this, shape.names, "WHERE", statement))
    for exists in statement.clause.exists:
        shape.look_for(exists)
    if (reordered := with_stream_first(statement, shape)) is not None:
        return read_join(reordered)
    statement = replace(statement, names=shape.names)
    builders = [
        SideBuilder(windowed(names.sides[side].stream, windows[side], source.name), names.sides[side], statement)
        for side, source in enumerate(statement.clause.sides)
    ]
    everything = shape.names.seeing(range(len(builders)))
    return JoinReading(statement, everything, shape, builders)


def _windows(statement: Statement, names: JoinNames) -> list[Window]:
    """Return the window of every side; a relation has its version instead."""
    sides = statement.clause.sides
    windowed = [source for source in statement.clause.sources if not names.is_relation(sides.index(source))]
    windows = read_windows(windowed, statement.source)
    return [
        VersionWindow() if names.is_relation(side) else windows[windowed.index(source)]
        for side, source in enumerate(sides)
    ]
