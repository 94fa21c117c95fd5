"""Finds the FROM clause in the tokens of a query and removes it, because its window bracket is not SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token, TokenType

from windloom.language.tokens import Source, Span, is_name, is_word

_EXAMPLE = "write SELECT … FROM stream [RANGE 1 hour SLIDE 1 minute] …"
_ONE_STREAM = ("a query over more than one stream is not supported yet", "write one query for each stream")
_SORTED = "is not supported: the rows of a window are a set", "sort the results where they are read"

_JOINS = {
    TokenType.COMMA,
    TokenType.JOIN,
    TokenType.INNER,
    TokenType.OUTER,
    TokenType.LEFT,
    TokenType.RIGHT,
    TokenType.FULL,
    TokenType.CROSS,
    TokenType.NATURAL,
    TokenType.SEMI,
    TokenType.ANTI,
    TokenType.STRAIGHT_JOIN,
}
_CLAUSES = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)
_ORDER = "after the stream come WHERE, GROUP BY and HAVING, in this order"
_REFUSED_CLAUSES = {
    TokenType.ORDER_BY: _SORTED,
    TokenType.SORT_BY: _SORTED,
    TokenType.CLUSTER_BY: _SORTED,
    TokenType.DISTRIBUTE_BY: _SORTED,
    TokenType.LIMIT: ("is not supported: every row of a window is reported", "limit the results where they are read"),
    TokenType.UNION: ("is not supported", "write one query for each part"),
    TokenType.EXCEPT: ("is not supported", "write one query for each part"),
    TokenType.INTERSECT: ("is not supported", "write one query for each part"),
    TokenType.LATERAL: ("is not supported", "do it in the DataFrame of the stream"),
    TokenType.QUALIFY: ("is not supported", "filter groups with HAVING"),
    TokenType.CUBE: ("is not supported yet", "write one query for each grouping"),
    TokenType.ROLLUP: ("is not supported yet", "write one query for each grouping"),
    TokenType.GROUPING_SETS: ("is not supported yet", "write one query for each grouping"),
}
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


@dataclass(frozen=True, slots=True)
class FromClause:
    """What a query reads: `bracket` are the tokens of its window, or None; `rest` is the query without the clause."""

    stream: Token
    alias: Token | None
    bracket: Sequence[Token] | None
    bracket_span: Span
    rest: list[Token]


def cut_from_clause(tokens: Sequence[Token], source: Source) -> FromClause:
    tokens = _single_statement(tokens, source)
    _check_start(tokens, source)
    position = find_from(tokens)
    if position is None:
        raise source.error("the query has no FROM", source_end(tokens), _EXAMPLE)
    if position == 1:
        raise source.error("the select list is empty", tokens[position], "name what to report, for example count(*)")
    index = position + 1
    stream = _stream_name(tokens, index, source)
    index += 1
    alias: Token | None = None
    bracket: Sequence[Token] | None = None
    bracket_span = Span(stream.start, stream.end + 1)
    while index < len(tokens):
        token = tokens[index]
        if token.token_type is TokenType.L_BRACKET and bracket is None:
            stop = _closing(tokens, index)
            bracket, bracket_span = tokens[index + 1 : stop], Span.of(tokens[index : stop + 1])
            index = stop + 1
        elif alias is None and (step := _alias_length(tokens, index, source)):
            index += step
            alias = tokens[index - 1]
        else:
            break
    _check_next(tokens, index, source)
    return FromClause(stream, alias, bracket, bracket_span, [*tokens[:position], *tokens[index:]])


def find_from(tokens: Sequence[Token]) -> int | None:
    """The FROM of the query: not the one in EXTRACT(… FROM …), nor that of IS DISTINCT FROM."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.token_type in _OPEN:
            depth += 1
        elif token.token_type in _CLOSE:
            depth -= 1
        elif token.token_type is TokenType.FROM and depth == 0:
            before = [each.text.upper() for each in tokens[max(0, index - 2) : index]]
            if before not in (["IS", "DISTINCT"], ["NOT", "DISTINCT"]):
                return index
    return None


def source_end(tokens: Sequence[Token]) -> Span:
    """The place just after the last token."""
    return Span(tokens[-1].end + 1, tokens[-1].end + 2)


def _single_statement(tokens: Sequence[Token], source: Source) -> Sequence[Token]:
    stop = len(tokens)
    while stop > 0 and tokens[stop - 1].token_type is TokenType.SEMICOLON:
        stop -= 1
    if stop == 0:
        raise source.error("the text is empty", Span(0, 1), _EXAMPLE)
    for token in tokens[:stop]:
        if token.token_type is TokenType.SEMICOLON:
            raise source.error("only one query is expected here", token, "register each query under its own name")
    return tokens[:stop]


def _check_start(tokens: Sequence[Token], source: Source) -> None:
    first = tokens[0]
    if is_word(first, "WITH"):
        raise source.error("WITH is not supported", first, "write one SELECT over one stream")
    if is_word(first, "CREATE"):
        raise source.error("a query begins with SELECT", first, "give the SELECT alone, or load the text as a catalog")
    if first.token_type is not TokenType.SELECT:
        raise source.error(f"a query begins with SELECT, not with '{source.raw(first)}'", first, _EXAMPLE)
    if len(tokens) > 1 and is_word(tokens[1], "DISTINCT", "ALL"):
        hint = "groups are distinct already: write SELECT a, b … GROUP BY a, b"
        raise source.error(f"SELECT {tokens[1].text.upper()} is not supported", tokens[1], hint)


def _stream_name(tokens: Sequence[Token], index: int, source: Source) -> Token:
    if index == len(tokens):
        raise source.error("a stream is missing after FROM", source_end(tokens), _EXAMPLE)
    token = tokens[index]
    if token.token_type is TokenType.L_PAREN:
        raise source.error("subqueries are not supported", token, "read from a stream: " + _EXAMPLE)
    if not is_name(token) or token.token_type in _CLAUSES:
        raise source.error(f"a stream is expected after FROM, not '{source.raw(token)}'", token, _EXAMPLE)
    following = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    if following is TokenType.DOT:
        raise source.error("the name of a stream has one part", token, "put a name with dots in backticks")
    if following is TokenType.L_PAREN:
        raise source.error("table functions are not supported", token, "read from a stream: " + _EXAMPLE)
    return token


def _alias_length(tokens: Sequence[Token], index: int, source: Source) -> int:
    """How many tokens of `AS alias` or `alias` stand here; 0 when none."""
    token = tokens[index]
    if token.token_type is TokenType.ALIAS:
        if index + 1 == len(tokens) or not is_name(tokens[index + 1]):
            raise source.error("a name is missing after AS", token, "for example FROM trades [TUMBLE 1 hour] AS t")
        return 2
    return 1 if token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) else 0


def _closing(tokens: Sequence[Token], index: int) -> int:
    depth = 0
    for stop in range(index, len(tokens)):
        depth += (tokens[stop].token_type in _OPEN) - (tokens[stop].token_type in _CLOSE)
        if depth == 0:
            return stop
    raise AssertionError("the scanner lets only balanced brackets pass")


def _check_next(tokens: Sequence[Token], index: int, source: Source) -> None:
    """What follows the FROM clause must be a known clause; so must everything after it."""
    if index < len(tokens):
        token = tokens[index]
        if token.token_type in _JOINS:
            raise source.error(_ONE_STREAM[0], token, _ONE_STREAM[1])
        if token.token_type not in _CLAUSES and token.token_type not in _REFUSED_CLAUSES:
            raise source.error(f"cannot read '{source.raw(token)}' here", token, _ORDER)
    depth, clauses = 0, list(_CLAUSES)
    for before, token in pairwise(tokens[index - 1 :]):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if before.token_type is TokenType.GROUP_BY and is_word(token, "ALL", "DISTINCT"):
            raise source.error(f"GROUP BY {token.text.upper()} is not supported", token, "name the grouping columns")
        if depth == 0 and token.token_type in _CLAUSES:
            if token.token_type not in clauses:
                raise source.error(f"{token.text.upper()} cannot stand here", token, _ORDER)
            clauses = clauses[clauses.index(token.token_type) + 1 :]
        refused = _REFUSED_CLAUSES.get(token.token_type) if depth == 0 else None
        if refused is not None:
            raise source.error(f"{token.text.upper()} {refused[0]}", token, refused[1])
