"""One SELECT taken apart: its sources, its names, its select list, and how to report errors in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import Token, exp

from windloom.errors import QueryError, near_names
from windloom.language.sql.binder import Binder, Scope
from windloom.language.sql.derived import parse_query_tree
from windloom.language.sql.from_clause import FromClause
from windloom.language.sql.from_sources import FromSource
from windloom.language.sql.join_names import joined_names
from windloom.language.sql.names import Names
from windloom.language.sql.syntax import span_of
from windloom.language.sql.table_functions import CalledWindow
from windloom.language.sql.terms import Term
from windloom.language.sql.tokens import SourceText, Span, tokenize
from windloom.language.sql.window_calls import FLINK_INSTANT, is_window_call, last_instant, named, with_spark_windows
from windloom.model import EnrichedStream, Relation, Stream, UserDefined, Window, WindowedStream
from windloom.model.windows import WINDOW_FUNCTIONS


def _check_relations(sources: Sequence[FromSource], streams: Sequence[Stream], source: SourceText) -> None:
    """Refuse a relation with a window, and a query that reads only relations: nothing would say when to answer."""
    for from_source, stream in zip(sources, streams, strict=True):
        if isinstance(stream, Relation) and from_source.bracket is not None:
            if stream.is_retroactive:
                seen = "version of the round in which it closes"
            else:
                seen = "versions that its tuples were joined with when they came in"
            hint = f"remove the bracket: a window sees the {seen}"
            raise source.error(f"'{stream.name}' is a relation, and has no windows", from_source.bracket_span, hint)
    if all(isinstance(stream, Relation) for stream in streams):
        name = streams[0].name
        raise source.error(
            f"'{name}' is a relation, and the query reads no stream",
            sources[0].stream,
            f"join it with a stream, whose windows say when to answer: FROM orders [RANGE 1 hour SLIDE 5 minutes] o"
            f" JOIN {name} ON …; or ask Spark",
        )


_CLAUSES = {"kind", "expressions", "where", "group", "having", "order"}
#: References to the window, and the aliases they may have, since the columns of the window have fixed names.
_WINDOW_REFERENCES: dict[tuple[str, ...], str] = {
    ("window_start",): "window_start",
    ("window_end",): "window_end",
    **{(function,): function for function in WINDOW_FUNCTIONS},
    **{(function, "start"): "window_start" for function in WINDOW_FUNCTIONS},
    **{(function, "end"): "window_end" for function in WINDOW_FUNCTIONS},
}


@dataclass(frozen=True, slots=True)
class Item:
    """One expression of the select list; `named` is the node that gives it its name."""

    node: exp.Expr
    alias: str | None
    named: exp.Expr


@dataclass(frozen=True, slots=True)
class Statement:
    """The parts of one SELECT; `aliases` maps lower-case aliases to their items.

    `window_calls` are the calls of window() of which the text takes an edge.
    """

    source: SourceText
    clause: FromClause
    tree: exp.Select
    names: Names
    items: tuple[Item, ...]
    aliases: Mapping[str, Item]
    window_calls: tuple[exp.Anonymous, ...] = ()

    @property
    def is_pasted(self) -> bool:
        """Whether the window stands where other systems write it, so that the text decides all columns."""
        return self.clause.first.bracket is None or self.called is not None

    @property
    def called(self) -> CalledWindow | None:
        """The table function that makes its window."""
        return self.clause.first.function if len(self.clause.sources) == 1 else None

    @property
    def stream(self) -> Stream:
        """The stream that it reads; for a join, the columns of all sources."""
        return self.names.stream

    @property
    def where(self) -> exp.Expr | None:
        """The condition of WHERE."""
        where = self.tree.args.get("where")
        return None if where is None else where.this

    @property
    def group_by(self) -> list[exp.Expr]:
        """The expressions of GROUP BY."""
        group = self.tree.args.get("group")
        if group is not None and group.args.get("all"):
            return [item.node for item in self.items if self._is_grouped(item.node)]
        return list(group.expressions) if group else []

    def _is_grouped(self, node: exp.Expr) -> bool:
        """Return whether GROUP BY ALL means this item: one that is neither constant nor aggregates."""
        if isinstance(node, exp.Literal) or (not self.is_pasted and self.window_reference(node) is not None):
            return False
        return not any(self.names.is_aggregate(call.name.lower()) for call in node.find_all(exp.Anonymous))

    def error(self, message: str, node: exp.Expr, hint: str) -> QueryError:
        return self.source.error(message, span_of(node, Span.of(self.clause.rest[:1])), hint)

    def bind(self, node: exp.Expr, scope: Scope) -> Term:
        return Binder(scope, self.source, Span.of(self.clause.rest[:1])).bind(node)

    def window_reference(self, node: exp.Expr) -> str | None:
        """Return the edge that a node refers to, or the function if it is the whole window; None if it is neither."""
        if is_window_call(node):
            return node.name.lower()
        if not isinstance(node, exp.Column):
            return None
        parts = tuple(part.name.lower() for part in node.parts)
        if self.called is not None and len(parts) == 2 and self.names.is_qualified(_identifiers(node)):
            parts = parts[1:]
        named = self.aliases.get(parts[0]) if self.is_pasted and not self.names.owners(parts[0]) else None
        if named is not None and is_window_call(named.node):
            parts = (named.node.name.lower(), *parts[1:])
        # With GROUP BY window(…) the name `window` means the window, even if a column has that name.
        if self.names.owners(parts[0]) and (self.clause.first.bracket is not None or parts[0] not in WINDOW_FUNCTIONS):
            return None
        return _WINDOW_REFERENCES.get(parts)


def _identifiers(node: exp.Column) -> list[exp.Identifier]:
    return [part for part in node.parts if isinstance(part, exp.Identifier)]


def windowed(stream: Stream, window: Window, alias: str | None) -> WindowedStream:
    """Return a stream through a window, enriched or not; or a relation."""
    return WindowedStream(stream.name, window, alias, stream if isinstance(stream, EnrichedStream) else None)


def _check_called(source: FromSource, stream: Stream, text: SourceText) -> None:
    """Refuse a table function over another column than the time of its stream."""
    if source.function is None or stream.find_column(source.function.time.text) == stream.time:
        return
    hint = f"write {stream.time} in its place, or declare the stream with this time column"
    name = source.function.word.text.upper()
    raise text.error(f"{name} must be over the time column of stream '{stream.name}'", source.function.time, hint)


def _with_last_instants(tree: exp.Select) -> None:
    """Write the column window_time of Flink's table functions as the end of the window less a millisecond."""
    for column in list(tree.find_all(exp.Column)):
        if column.name.lower() == "window_time" and column.find_ancestor(exp.Group) is None:
            end = exp.Column(this=exp.Identifier(this="window_end"))
            end.meta.update(column.this.meta)
            named(column, last_instant(end, FLINK_INSTANT), column.name)


def take_apart(
    tokens: Sequence[Token], source: SourceText, streams: Mapping[str, Stream], own: Mapping[str, UserDefined]
) -> Statement:
    clause, tree = parse_query_tree(tokens, source, own)
    streams_of_sides: list[Stream] = []
    for side in clause.sides:
        name = side.stream.text
        matching = [name] if name in streams else [key for key in streams if key.lower() == name.lower()]
        if len(matching) != 1:
            raise source.error(f"unknown stream '{name}'", side.stream, near_names(name, list(streams)))
        streams_of_sides.append(streams[matching[0]])
    _check_relations(clause.sides, streams_of_sides, source)
    for side, stream in zip(clause.sides, streams_of_sides, strict=True):
        _check_called(side, stream, source)
        if side.function is not None and len(clause.sources) > 1:
            name = side.function.word.text.upper()
            hint = (
                "write brackets: FROM a [TUMBLE 1 hour] JOIN b [TUMBLE 1 hour] ON a.x = b.x; windows pair by their ends"
            )
            raise source.error(f"{name} cannot be joined as a table function", side.function.word, hint)
    for over in tree.find_all(exp.Window):
        hint = (
            "aggregates are over windows of a stream: of the last 10 tuples at each of them,"
            " FROM trades [PARTITION BY symbol ROWS 10 SLIDE 1] … GROUP BY symbol; of time, [RANGE 1 h SLIDE 1 min]"
        )
        raise source.error("OVER (…) is not supported", span_of(over, Span.of(clause.rest[:1])), hint)
    calls = with_spark_windows(tree, source, Span.of(clause.rest[:1]))
    if clause.first.function is not None:
        _with_last_instants(tree)
    group = tree.args.get("group")
    clauses = {key for key, value in tree.args.items() if value} - _CLAUSES
    clauses |= (
        {key for key, value in group.args.items() if value and key not in ("expressions", "all")} if group else set()
    )
    if clauses:
        shown = " ".join(sorted(clauses)).strip("_").upper()
        raise source.error(f"{shown} is not supported", span_of(tree, Span.of(clause.rest[:1])), "remove it")
    items = []
    for node in tree.expressions:
        alias = node.args["alias"] if isinstance(node, exp.Alias) else None
        if isinstance(node, exp.Alias) and not (isinstance(alias, exp.Identifier) and alias.name):
            place = span_of(node, Span.of(clause.rest[:1]))
            raise source.error("cannot read the alias", place, "write expression AS name")
        items.append(Item(node, None, node) if alias is None else Item(node.this, alias.name, alias))
    # If two items share an alias, the first is meant; the duplicate is reported when the columns are named.
    aliases = {item.alias.lower(): item for item in reversed(items) if item.alias}
    if len(clause.sources) > 1:
        names: Names = joined_names(clause.sides, streams_of_sides, frozenset(aliases), own, source)
    else:
        first = clause.first
        qualifiers = tuple(token.text for token in (first.stream, first.alias) if token is not None)
        names = Names(streams_of_sides[0], qualifiers, frozenset(aliases), own)
    return Statement(source, clause, tree, names, tuple(items), aliases, calls)


@dataclass(frozen=True, slots=True)
class TableRead:
    """What a text for Spark reads: a table, of which it calls window() on a column; and the text around the table."""

    table: str
    time: str
    before: str
    after: str
    has_alias: bool


def table_read(source: SourceText) -> TableRead:
    """Return what a text reads whose table is not registered yet."""
    tokens = tokenize(source)
    clause, tree = parse_query_tree(tokens, source, ())
    at, first = Span.of(tokens[:1]), clause.first
    if len(clause.sources) > 1:
        raise source.error("the text reads several tables", first.stream, "give it as text, and each table a name")
    times = {
        call.expressions[0].name
        for call in tree.find_all(exp.Anonymous)
        if is_window_call(call) and call.expressions and isinstance(call.expressions[0], exp.Column)
    }
    if len(times) != 1:
        raise source.error("the text has no window over a column", at, "GROUP BY window(ts, '1 hour', '10 minutes')")
    start, end = first.stream.start, first.stream.end + 1
    return TableRead(first.stream.text, times.pop(), source.text[:start], source.text[end:], first.alias is not None)
