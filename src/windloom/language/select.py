"""Turns one SELECT into a `model.Query`, clause by clause, in the order in which names depend on each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import Token

from windloom.errors import QueryError, WrongJoinError
from windloom.language.clauses.emit import cut_emit, with_emission
from windloom.language.clauses.select_list import (
    aggregated_query,
    read_answer,
    read_group_by,
    read_groups,
    with_called_window,
)
from windloom.language.clauses.urgency import cut_header
from windloom.language.joins.read import read_join
from windloom.language.relations.attach import attach_relations
from windloom.language.rows.read import Select, asks_rows, read_aggregated_rows, read_rows, read_written
from windloom.language.sql.join_names import JoinNames
from windloom.language.sql.names import RowScope
from windloom.language.sql.predicates import analyse
from windloom.language.sql.statement import Statement, take_apart, windowed
from windloom.language.sql.syntax import too_deep
from windloom.language.sql.tokens import SourceText, Span, tokenize
from windloom.model import Query, Stream, UserDefined


def parse_query(
    name: str, text: str, streams: Mapping[str, Stream], own: Mapping[str, UserDefined] | None = None
) -> Query:
    """Read one query and check it against the streams it may read from; `own` are user-defined aggregates.

    >>> from windloom.model import DataType
    >>> trades = Stream("trades", {"ts": DataType.parse("timestamp"), "price": DataType.parse("double")}, time="ts")
    >>> query = parse_query("q", "SELECT avg(Price) FROM trades [RANGE 1 hour SLIDE 60 s]", {"trades": trades})
    >>> str(query.window), str(query.aggregates[0]), query.outputs[0].name
    ('[RANGE 1 hour SLIDE 1 minute]', 'avg(price)', 'avg(price)')
    """
    if not isinstance(text, str):
        raise QueryError(
            f"query '{name}': the text must be a string, not {type(text).__name__}",
            hint="give SELECT … as text, or a DataFrame: df.groupBy(window(…)).agg(…)",
        )
    source = SourceText(text, f"query '{name}'")
    return read_query(name, tokenize(source), source, streams, text, own)


def read_query(
    name: str,
    tokens: Sequence[Token],
    source: SourceText,
    streams: Mapping[str, Stream],
    text: str,
    own: Mapping[str, UserDefined] | None = None,
) -> Query:
    """Read the query in these tokens of a longer text, perhaps with options before an AS."""
    header = cut_header(tokens, source)

    def taken_apart(tokens: Sequence[Token]) -> Statement:
        return take_apart(tokens, source, streams, own or {})

    body, clause = cut_emit(header.select, source)
    try:
        written = read_written(body, source)
        statement = None
        if isinstance(written, Select) and written.reports is None and written.distinct is None:
            statement = taken_apart(written.tokens)
        if statement is None or asks_rows(statement):
            query = read_rows(name, written, taken_apart, source, text)
        else:
            statement = with_called_window(attach_relations(statement))
            query = (_read_join if isinstance(statement.names, JoinNames) else _read)(name, statement, text)
        return replace(with_emission(query, clause, source), urgency=header.urgency)
    except RecursionError:
        raise too_deep(Span.of(tokens), source) from None


def _read(name: str, statement: Statement, text: str) -> Query:
    scope = RowScope(statement.names, "WHERE")
    where = None if statement.where is None else statement.bind(statement.where, scope).row_expression()
    window, groups = read_group_by(statement)
    answer = read_answer(statement, window, groups)
    for aggregate, use in answer.aggregates.items():
        # FREQUENT needs the lists of sub-windows, and some windows merge their slices as time goes on.
        if aggregate.function == "frequent" and not window.keeps_slices:
            hint = "use top(k, x), or a window of [RANGE … SLIDE …]"
            raise statement.error(f"'{aggregate}' cannot be taken over {window}", use.node, hint)
    alias = statement.clause.first.alias
    source = windowed(statement.stream, window, None if alias is None else alias.text)
    predicate = None if where is None else analyse(where, statement.stream)
    return replace(aggregated_query(name, source, groups, answer, text), where=where, predicate=predicate)


def _read_join(name: str, statement: Statement, text: str) -> Query:
    """Return a query over several sources: folded from partials of each if that is possible, otherwise over rows.

    This is the only place that decides. A join that cannot be taken apart into sides (a circle of conditions, a
    condition on three streams, no key, an aggregate that no fold answers) is joined tuple by tuple. If that is not
    possible either, it is refused with the reason why it cannot be folded.
    """
    if any(source.joined is not None and source.joined.within for source in statement.clause.sources):
        # Partials do not show how far apart two tuples lie.
        return read_aggregated_rows(name, statement, text)
    try:
        # A join from partials; its conditions belong to sides and links of the join.
        reading = read_join(statement)
        groups = read_groups(reading.statement)
        called = next((each.called for each in statement.clause.sources if each.called is not None), None)
        answer = read_answer(reading.statement, called, groups)
        return aggregated_query(name, reading.taken_apart(groups, answer), groups, answer, text)
    except WrongJoinError:
        raise
    except QueryError as refused:
        try:
            return read_aggregated_rows(name, statement, text)
        except QueryError:
            raise refused from None
