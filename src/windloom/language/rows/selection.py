"""Turns one SELECT into a `model.Selection`: its strands, how they are joined, and the columns of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from windloom.errors import WindloomError
from windloom.language.joins.conditions import Conjunct, equality_of, read_condition, read_conjuncts
from windloom.language.joins.read import kind_of, read_windows
from windloom.language.sql.from_clause import Exists
from windloom.language.sql.from_sources import FromSource, JoinedSource
from windloom.language.sql.join_names import JoinNames
from windloom.language.sql.names import WINDOW_COLUMNS, Names, RowScope
from windloom.language.sql.predicates import analyse
from windloom.language.sql.statement import Statement
from windloom.language.sql.syntax import parse_condition
from windloom.language.sql.terms import Term, condition_of
from windloom.language.sql.tokens import SourceText, Span
from windloom.language.windows.syntax import Duration
from windloom.model import JoinKind, RowInput, Selection, TimeWindow, Window, WindowedStream
from windloom.model.rows import AttachedRelation, Condition, ExistsInput, RowColumn

_BOUND = "say how far apart the tuples of a pair may lie: JOIN clicks c WITHIN 30 minutes ON …"

_OR_WITHIN = ", or join without windows: FROM a JOIN b WITHIN 30 minutes ON a.x = b.x"


def row_windows(sources: Sequence[FromSource], source: SourceText) -> list[Window]:
    """Return the window of every source of a query.

    Windows in brackets end together. Without brackets, windows end at every tick, and each is as long as the largest
    distance (WITHIN) that concerns its stream.
    """
    if is_interval_join(sources):
        reach = [0] * len(sources)
        for index, from_source in enumerate(sources[1:], 1):
            ticks = distance_ticks(from_source.joined, source)
            if ticks is None:
                message = f"'{from_source.name}' is joined without a bound: its tuples would have to be kept for ever"
                raise source.error(message, from_source.stream, _BOUND)
            reach = [max(ticks, other) if side <= index else other for side, other in enumerate(reach)]
        return [TimeWindow(ticks, 1) for ticks in reach]
    for from_source in sources:
        kind = kind_of(from_source, source, _OR_WITHIN)
        if not kind.reports_rows:
            hint = "use windows of time, [RANGE 1 hour SLIDE 5 minutes]"
            raise source.error(f"rows are not reported for {kind.plural}", from_source.bracket_span, hint)
    windows = read_windows(sources, source)
    for from_source, window in zip(sources, windows, strict=True):
        if window.extent_ticks is None:
            hint = "rows are kept as long as a window needs them; give it a range, [RANGE 1 hour SLIDE 5 minutes]"
            raise source.error("rows of a landmark window are never dropped", from_source.bracket_span, hint)
    return windows


def is_interval_join(sources: Sequence[FromSource]) -> bool:
    """Return whether pairs are found by WITHIN alone, without windows."""
    has_distance = any(source.joined is not None and source.joined.within for source in sources)
    return has_distance and all(source.bracket is None for source in sources)


def distance_ticks(joined: JoinedSource | None, source: SourceText) -> int | None:
    """Return how far apart the tuples of a pair may lie; None if there is no WITHIN."""
    tokens = () if joined is None else joined.within
    if not tokens:
        return None
    written = Duration(source.text[tokens[0].start : tokens[-1].end + 1].strip("'\""), Span.of(tokens))
    ticks = written.ticks(source)
    try:
        TimeWindow(ticks, 1)
    except WindloomError:
        hint = "for example WITHIN 30 minutes"
        raise source.error(f"WITHIN needs a positive duration, not {written.text}", written.at, hint) from None
    return ticks


#: Columns that every result has, or gets when it is written to a table that several queries share.
_RESERVED = (*WINDOW_COLUMNS, "query")


@dataclass(slots=True)
class _StrandBuilder:
    """One strand while it is being read."""

    source: WindowedStream
    names: Names
    conditions: list[Term] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)

    def build(self) -> RowInput:
        condition = condition_of(self.conditions)
        predicate = None if condition is None else analyse(condition, self.names.stream)
        if condition is not None:
            self.columns.update(condition.columns)
        return RowInput(self.source, tuple(sorted(self.columns)), condition, predicate)


class SelectionReader:
    """Reads FROM source by source, then WHERE; the caller reads the select list, or grouping and aggregates."""

    def __init__(self, statement: Statement, windows: Sequence[Window]) -> None:
        self._statement = statement
        # The sources in the order of FROM, except that a RIGHT join is a LEFT join with its sources exchanged.
        is_join = isinstance(statement.names, JoinNames)
        sources = statement.clause.sides if is_join else statement.clause.sources
        rights = [source for source in sources if source.joined is not None and source.joined.is_right]
        if rights and len(statement.clause.named) > 2:
            assert rights[0].joined is not None
            hint = "begin with the stream whose rows are all kept, and write LEFT JOIN"
            raise statement.source.error("a RIGHT JOIN of rows joins two streams", rights[0].joined.word, hint)
        self._sources = sources
        if isinstance(statement.names, JoinNames):
            labeled: list[tuple[Names, str | None]] = list(
                zip(statement.names.sides, statement.names.labels, strict=True)
            )
        else:
            alias = statement.clause.first.alias
            labeled = [(statement.names, None if alias is None else alias.text)]
        self._builders = []
        for source, (names, label) in zip(sources, labeled, strict=True):
            window = windows[statement.clause.sources.index(source)]
            self._builders.append(_StrandBuilder(WindowedStream(names.stream.name, window, label), names))
        self._made = [0]
        self._attached: list[AttachedRelation] = []
        self._looked: list[ExistsInput] = []
        self._conditions: list[Condition] = []
        self.names = statement.names
        if isinstance(self.names, JoinNames):
            self.names = self.names.seeing([0])
            for strand, source in enumerate(self._sources[1 : len(statement.clause.named)], 1):
                self._add(strand, source)
        where = statement.where
        if where is not None and isinstance(self.names, JoinNames):
            self._keep(read_conjuncts(where, self.names, "WHERE", statement))
        elif where is not None:
            self._builders[0].conditions.append(statement.bind(where, RowScope(self.names, "WHERE")))
        for exists in statement.clause.exists:
            self._add_exists(exists)

    def _add(self, strand: int, source: FromSource) -> None:
        names = self.names
        assert isinstance(names, JoinNames)
        before = names.visible
        # The source that a RIGHT join names last comes first, and carries the condition of the join.
        joined = source.joined or self._sources[0].joined
        assert joined is not None
        conjuncts, self.names = read_condition(names.seeing([*before, strand]), strand, joined, self._statement)
        if joined.kind in (JoinKind.SEMI, JoinKind.ANTI):
            on = self._across(conjuncts, frozenset((strand,)))
            self._looked.append(ExistsInput(joined.kind, (strand,), on))
            self.names = names.seeing(before)
            return
        self._made.append(strand)
        within = distance_ticks(joined, self._statement.source)
        if joined.kind is JoinKind.LEFT:
            self._attached.append(AttachedRelation(joined.kind, self._across(conjuncts, frozenset((strand,))), within))
            return
        self._attached.append(AttachedRelation(within_ticks=within))
        self._keep(conjuncts)

    def _add_exists(self, exists: Exists) -> None:
        """Add `[NOT] EXISTS (SELECT …)`, in which a name means a column of its own streams first."""
        names, statement = self.names, self._statement
        assert isinstance(names, JoinNames)
        visible = names
        inner = [self._sources.index(source) for source in exists.sources]
        conjuncts: list[Conjunct] = []
        for count, source in enumerate(exists.sources, 1):
            if source.joined is not None and source.joined.within:
                at = Span.of(source.joined.within)
                raise statement.source.error("WITHIN cannot stand in EXISTS", at, "join it in FROM instead")
            visible = names.seeing([*names.visible, *inner[:count]], inner[:count])
            if source.joined is not None:
                on, visible = read_condition(visible, inner[count - 1], source.joined, statement)
                conjuncts += on
        if exists.where:
            node = parse_condition(exists.where, statement.source)
            conjuncts += read_conjuncts(node, visible, "WHERE", statement)
        self._looked.append(ExistsInput(exists.kind, tuple(inner), self._across(conjuncts, frozenset(inner))))

    def _keep(self, conjuncts: Iterable[Conjunct]) -> None:
        """Add conditions on rows: a condition on one strand goes to it, unless the strand may be absent from a row."""
        optional = [
            strand
            for strand, attached in zip(self._made[1:], self._attached, strict=True)
            if attached.kind is not JoinKind.INNER
        ]
        present = frozenset(range(len(self._builders))) - set(optional)
        self._conditions += self._across(conjuncts, present, self._made[0])

    def _across(
        self, conjuncts: Iterable[Conjunct], strands: frozenset[int], constants: int | None = None
    ) -> tuple[Condition, ...]:
        """Return the conditions that concern rows; those on one of these strands alone leave out tuples of it.

        A condition without a column goes to the strand `constants`, if there is one.
        """
        names, conditions = self._statement.names, []
        assert isinstance(names, JoinNames)
        for conjunct in conjuncts:
            strand = next(iter(conjunct.sides), constants)
            if conjunct.is_true:
                continue
            if strand is not None and len(conjunct.sides) < 2 and conjunct.sides <= strands:
                builder = self._builders[strand]
                builder.conditions.append(self._statement.bind(conjunct.node, RowScope(builder.names, "WHERE")))
            else:
                self.use(conjunct.term.columns)
                is_key = equality_of(conjunct, names) is not None
                conditions.append(Condition(conjunct.term.row_expression(), tuple(sorted(conjunct.sides)), is_key))
        return tuple(conditions)

    def use(self, columns: Iterable[str]) -> None:
        """Note columns that the rows must have, by their names in terms."""
        names = self._statement.names
        for column in columns:
            side, name = names.places[column] if isinstance(names, JoinNames) else (0, column)
            self._builders[side].columns.add(name)

    def columns(self) -> tuple[RowColumn, ...]:
        """Return the select list; the columns of the window are left out, because they are always reported first."""
        columns_by_name: dict[str, RowColumn] = {}
        for item in self._statement.items:
            if (name := self._statement.window_reference(item.node)) is not None:
                if item.alias is not None and item.alias.lower() != name:
                    hint = "the first columns are always window_start and window_end; leave the alias out"
                    raise self._statement.error(f"the window cannot be called '{item.alias}'", item.named, hint)
                continue
            if _is_star(item.node):
                named = self._all_columns(item.node)
            else:
                term = self._statement.bind(item.node, RowScope(self.names, "the select list"))
                named = [(item.alias or term.name or term.sql, term, item.named)]
            for name, term, node in named:
                if name.lower() in _RESERVED:
                    raise self._statement.error(
                        f"the column name '{name}' is reserved", node, "give it another name with AS"
                    )
                if name.lower() in columns_by_name:
                    hint = "give one of them another name with AS"
                    if _is_star(node):
                        hint = "name the columns instead of '*', and give one of them another name with AS"
                    raise self._statement.error(f"two columns are called '{name}'", node, hint)
                self.use(term.columns)
                columns_by_name[name.lower()] = RowColumn(name, term.row_expression())
        if not columns_by_name:
            hint = "name the columns of the rows, or write SELECT *"
            raise self._statement.error("the select list has no columns", self._statement.tree, hint)
        return tuple(columns_by_name.values())

    def _all_columns(self, node: exp.Expr) -> list[tuple[str, Term, exp.Expr]]:
        """Return the columns that `*` or `o.*` stands for."""
        wanted = node.table if isinstance(node, exp.Column) else ""
        names = self.names
        by_side = {side: names.sides[side] for side in names.visible} if isinstance(names, JoinNames) else {0: names}
        sides = [
            side
            for side, side_names in by_side.items()
            if not wanted or wanted.lower() in (qualifier.lower() for qualifier in side_names.qualifiers)
        ]
        if not sides:
            known = [names.labels[side] for side in by_side] if isinstance(names, JoinNames) else names.qualifiers
            hint = f"known are: {', '.join(known)}"
            raise self._statement.error(f"'{wanted}' is no source of this query", node, hint)
        if not isinstance(names, JoinNames):
            return [(column, names.column_term(column, node), node) for column in names.stream.columns]
        return [
            (column, names.column_term(f"{names.labels[side]}.{column}", node), node)
            for side in sides
            for column in names.sides[side].stream.columns
            if wanted or names.merged.get(column.lower(), side) == side
        ]

    def build(self, columns: tuple[RowColumn, ...] = (), *, is_distinct: bool = False) -> Selection:
        """Return the selection, once all uses of columns have been read; strands that are only searched come last."""
        looked = [strand for looked in self._looked for strand in looked.strands]
        order = [*self._made, *looked]
        positions = {old: new for new, old in enumerate(order)}
        return Selection(
            tuple(self._builders[old].build() for old in order),
            tuple(replace(attached, on=_placed(attached.on, positions)) for attached in self._attached),
            tuple(
                ExistsInput(looked.kind, tuple(positions[old] for old in looked.strands), _placed(looked.on, positions))
                for looked in self._looked
            ),
            _placed(self._conditions, positions),
            columns,
            is_distinct,
        )


def _placed(conditions: Iterable[Condition], positions: dict[int, int]) -> tuple[Condition, ...]:
    return tuple(
        replace(condition, strands=tuple(sorted(positions[old] for old in condition.strands)))
        for condition in conditions
    )


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
