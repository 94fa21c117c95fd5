"""Reads queries that report rows, and aggregates over joins that cannot be answered from partials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType, exp

from windloom.language.clauses.select_list import aggregated_query, read_answer, read_groups
from windloom.language.rows.selection import SelectionReader, is_interval_join, row_windows
from windloom.language.sql.join_names import JoinNames
from windloom.language.sql.statement import Statement
from windloom.language.sql.tokens import (
    CLOSE,
    LITERALS,
    OPEN,
    SourceText,
    Span,
    closing,
    is_name,
    is_word,
    without_semicolons,
)
from windloom.language.sql.window_calls import is_window_call
from windloom.model import EnrichedStream, JoinKind, Query, RowQuery, Window
from windloom.model.rows import Body, Reports, SetKind, SetOperation

_REPORTS = {"RSTREAM": Reports.STANDING, "ISTREAM": Reports.ENTERING, "DSTREAM": Reports.LEAVING}
_OPERATORS = {TokenType.UNION: "UNION", TokenType.EXCEPT: "EXCEPT", TokenType.INTERSECT: "INTERSECT"}
#: Tokens that are not names and can begin an item of the select list.
_BEGINNING = (TokenType.STAR, TokenType.L_PAREN, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, *LITERALS)
#: Words that follow a column, and cannot begin an item.
_WORDS = ("FROM", "ALIAS", "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "AND", "OR")
_FOLLOWING = tuple(TokenType[word] for word in _WORDS)


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT without ISTREAM, … (`said`) and DISTINCT, which determine the rows that it reports."""

    tokens: Sequence[Token]
    reports: Reports | None = None
    said: Token | None = None
    distinct: Token | None = None


@dataclass(frozen=True, slots=True)
class CombinedSelects:
    """Two bodies of a set operation; `word` is the word of the operation."""

    kind: SetKind
    word: Token
    left: Written
    right: Written


#: The body of a query as it is written.
Written = Select | CombinedSelects


def read_written(tokens: Sequence[Token], source: SourceText) -> Written:
    """Take a query apart at its set operations; INTERSECT binds more tightly than the others, as in Spark."""
    tokens = without_semicolons(tokens) or tokens
    for kinds in ((TokenType.UNION, TokenType.EXCEPT), (TokenType.INTERSECT,)):
        # The last operator outside of brackets: operators of one rank are read from the left.
        depth, operator = 0, None
        for index, token in enumerate(tokens):
            depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
            if depth == 0 and token.token_type in kinds:
                operator = index
        if operator is not None:
            return _combined(tokens, operator, source)
    if tokens and tokens[0].token_type is TokenType.L_PAREN and closing(tokens, 0) == len(tokens) - 1:
        return read_written(tokens[1:-1], source)
    return _select(tokens, source)


def _combined(tokens: Sequence[Token], operator: int, source: SourceText) -> CombinedSelects:
    word, after = tokens[operator], operator + 1
    name = _OPERATORS[word.token_type]
    is_all = after < len(tokens) and is_word(tokens[after], "ALL")
    after += after < len(tokens) and is_word(tokens[after], "ALL", "DISTINCT")
    if operator == 0 or after == len(tokens):
        side = "before" if operator == 0 else "after"
        raise source.error(f"a SELECT is missing {side} {name}", word, "write SELECT … UNION ALL SELECT …")
    kind = SetKind(f"{name} ALL" if is_all else name)
    return CombinedSelects(kind, word, read_written(tokens[:operator], source), read_written(tokens[after:], source))


def _select(tokens: Sequence[Token], source: SourceText) -> Select:
    if not tokens or tokens[0].token_type is not TokenType.SELECT:
        return Select(tokens)  # its reader reports what is wrong
    rest, reports, said, distinct = list(tokens[1:]), None, None, None
    if len(rest) > 1 and is_word(rest[0], *_REPORTS) and _begins_item(rest[1]):
        said = rest.pop(0)
        reports = _REPORTS[said.text.upper()]
    if rest and is_word(rest[0], "DISTINCT"):
        distinct = rest.pop(0)
        if rest and is_word(rest[0], *_REPORTS) and len(rest) > 1 and _begins_item(rest[1]):
            hint = f"write SELECT {rest[0].text.upper()} DISTINCT …"
            raise source.error(f"{rest[0].text.upper()} comes before DISTINCT", Span.of(rest[:1]), hint)
    return Select([tokens[0], *rest], reports, said, distinct)


def _begins_item(token: Token) -> bool:
    """Return whether an item of the select list begins here, so that the word before is not a column."""
    kind = token.token_type
    return kind in _BEGINNING or (is_name(token) and kind not in _FOLLOWING)


#: Takes the tokens of one SELECT apart.
TakeApart = Callable[[Sequence[Token]], Statement]


def asks_rows(statement: Statement) -> bool:
    """Return whether a SELECT reports tuples as they are: it groups by nothing and aggregates nothing."""
    args = statement.tree.args
    if args.get("group") is not None or args.get("having") is not None:
        return False
    return not any(
        is_window_call(item.node)
        or any(statement.names.is_aggregate(call.name.lower()) for call in item.node.find_all(exp.Anonymous))
        for item in statement.items
    )


def read_rows(name: str, written: Written, take_apart: TakeApart, source: SourceText, text: str) -> Query:
    """Return a query that reports rows of windows."""
    reader = _RowReader(source, {id(select): take_apart(select.tokens) for select in _selects(written)})
    return Query(name, reader.rows(written), None, (), (), (), None, text)


def read_aggregated_rows(name: str, statement: Statement, text: str) -> Query:
    """Read aggregates over a join whose rows must be made, because no partials of single streams answer them."""
    clause, source = statement.clause, statement.source
    _refuse_relations(statement)
    if is_interval_join(clause.sources):
        hint = "give every stream a window, [RANGE 1 hour SLIDE 5 minutes]; WITHIN may stand beside it"
        raise source.error("aggregates need windows, and WITHIN alone makes none", clause.first.stream, hint)
    reader = SelectionReader(statement, row_windows(clause.sources, source))
    joined_statement = replace(statement, names=reader.names)
    groups = read_groups(joined_statement)
    answer = read_answer(joined_statement, None, groups)
    for group in groups:
        reader.use(group.term.columns)
    for aggregate, use in answer.aggregates.items():
        if aggregate.function == "frequent":
            hint = "use top(k, x), which needs none"
            raise statement.error("frequent() over a join needs lists of every slide", use.node, hint)
        for expression in aggregate.expressions:
            reader.use(expression.columns)
    return aggregated_query(name, RowQuery(reader.build()), groups, answer, text)


def _refuse_relations(statement: Statement) -> None:
    """Refuse relations: rows are made from kept tuples, but only the newest version of a relation is kept."""
    names = statement.names
    streams = [side.stream for side in names.sides] if isinstance(names, JoinNames) else [names.stream]
    for source, stream in zip(statement.clause.sides, streams, strict=True):
        joined = stream.relations[0] if isinstance(stream, EnrichedStream) else stream.name
        if stream.is_relation or isinstance(stream, EnrichedStream):
            message = f"rows of windows cannot be joined with relation '{joined}'"
            hint = "aggregate the rows, grouping by columns of the relation; or join the answers where they are read"
            raise statement.source.error(message, source.stream, hint)


def _selects(written: Written) -> Iterator[Select]:
    if isinstance(written, Select):
        yield written
    else:
        yield from _selects(written.left)
        yield from _selects(written.right)


@dataclass(frozen=True, slots=True)
class _RowReader:
    source: SourceText
    statements: Mapping[int, Statement]  # by id of the `Select`

    def rows(self, written: Written) -> RowQuery:
        selects = list(_selects(written))
        first = selects[0]
        for select in selects:
            _refuse_relations(self.statements[id(select)])
            self._check(select, is_first=select is first)
        sources = [each for select in selects for each in self.statements[id(select)].clause.sources]
        windows = row_windows(sources, self.source)
        within = is_interval_join(sources)
        if within:
            self._check_interval_join(written, first)
        by_source = {id(source): window for source, window in zip(sources, windows, strict=True)}
        body = self._body(written, by_source)
        return RowQuery(body, Reports.ENTERING if within else first.reports or Reports.STANDING, within)

    def _body(self, written: Written, windows: Mapping[int, Window]) -> Body:
        if isinstance(written, CombinedSelects):
            left, right = self._body(written.left, windows), self._body(written.right, windows)
            counts = [len(RowQuery(body).columns) for body in (left, right)]
            if counts[0] != counts[1]:
                hint = "select the same columns on both sides, in the same order"
                message = (
                    f"both sides of {written.kind} need the same number of columns, not {counts[0]} and {counts[1]}"
                )
                raise self.source.error(message, written.word, hint)
            return SetOperation(written.kind, left, right)
        statement = self.statements[id(written)]
        reader = SelectionReader(statement, [windows[id(source)] for source in statement.clause.sources])
        return reader.build(reader.columns(), is_distinct=written.distinct is not None)

    def _check(self, select: Select, *, is_first: bool) -> None:
        statement = self.statements[id(select)]
        if select.said is not None and not is_first:
            hint = "write it after the first SELECT: it is about the rows of the whole query"
            raise self.source.error(f"{select.said.text.upper()} cannot stand here", select.said, hint)
        if asks_rows(statement):
            if statement.called is not None:
                name = statement.called.word.text.upper()
                hint = "group by window_start and window_end; or read rows as FROM trades [TUMBLE 10 minutes]"
                raise self.source.error(f"{name} reports rows here", statement.called.word, hint)
            order = statement.tree.args.get("order")
            if order is not None:
                hint = "leave ORDER BY out, and sort the rows where they are read"
                raise statement.error("ORDER BY is for aggregates, and this query reports rows", order, hint)
            return
        if select.said is not None:
            word = select.said.text.upper()
            hint = "leave it out: an aggregate is reported once for every window"
            raise self.source.error(f"{word} reports rows, and this query aggregates", select.said, hint)
        if select.distinct is not None:
            hint = "groups are distinct already: leave DISTINCT out"
            raise self.source.error("DISTINCT cannot stand before aggregates", select.distinct, hint)
        hint = "write one query for each part, and combine their answers where they are read"
        raise self.source.error("set operations combine rows, and this SELECT aggregates", select.tokens[0], hint)

    def _check_interval_join(self, written: Written, first: Select) -> None:
        if isinstance(written, CombinedSelects):
            hint = "give every stream a window instead: [RANGE 30 minutes SLIDE 1 minute]"
            raise self.source.error(f"{written.kind} needs windows, and WITHIN alone makes none", written.word, hint)
        if first.reports in (Reports.STANDING, Reports.LEAVING):
            assert first.said is not None
            hint = "leave it out: pairs are reported once, when both tuples are there; windows are written in brackets"
            raise self.source.error(f"{first.said.text.upper()} needs windows", first.said, hint)
        if first.distinct is not None:
            hint = "give every stream a window: DISTINCT is about the rows of one window"
            raise self.source.error("DISTINCT needs windows, and WITHIN alone makes none", first.distinct, hint)
        clause = self.statements[id(first)].clause
        for source in clause.named[1:]:
            assert source.joined is not None
            if source.joined.kind is not JoinKind.INNER:
                hint = "give every stream a window: whether a row has no match depends on one"
                shown = f"a {source.joined.kind.upper()} JOIN"
                raise self.source.error(
                    f"{shown} needs windows, and WITHIN alone makes none", Span.of([source.joined.word]), hint
                )
        for exists in clause.exists:
            hint = "give every stream a window: whether a row has a match depends on one"
            raise self.source.error("EXISTS needs windows, and WITHIN alone makes none", exists.word, hint)
