"""Chooses the stream of a join that comes first: all others hang on it, and rows are reported for its windows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import TokenType

from windloom.language.joins.clusters import JoinShape
from windloom.language.joins.names import JoinNames, joined_names
from windloom.language.statement import Statement
from windloom.model import JoinKind


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
