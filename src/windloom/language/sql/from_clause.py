"""Finds the FROM clause in the tokens of a query and removes it, because its window brackets are not SQL.

It also removes `[NOT] EXISTS (SELECT …)` from WHERE, which means a SEMI or ANTI join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token, TokenType

from windloom.language.sql.from_sources import CLAUSES, EXAMPLE, FromSource, read_sources
from windloom.language.sql.tokens import (
    CLOSE,
    OPEN,
    SourceText,
    Span,
    closing,
    is_word,
    replaced,
    source_end,
    without_semicolons,
)
from windloom.model import JoinKind

_EXAMPLE = "for example WHERE EXISTS (SELECT 1 FROM clicks [RANGE 30 minutes] c WHERE c.user = o.user)"
_ALONE = "[NOT] EXISTS stands in WHERE by itself or beside other conditions, with AND between them"


@dataclass(frozen=True, slots=True)
class Exists:
    """The search of the token EXISTS (`word`): sources joined by INNER, and the tokens of a condition, perhaps none."""

    kind: JoinKind
    word: Token
    sources: tuple[FromSource, ...]
    where: tuple[Token, ...]


def cut_exists(tokens: Sequence[Token], source: SourceText) -> tuple[tuple[Exists, ...], list[Token]]:
    """Return every `[NOT] EXISTS (SELECT …)` among these tokens, and the tokens with TRUE in the place of each."""
    exists: list[Exists] = []
    rest: list[Token] = []
    index = 0
    while index < len(tokens):
        start = index
        index += tokens[index].token_type is TokenType.NOT
        # `exists(array, x -> …)` is a function instead.
        kinds = [token.token_type for token in tokens[index : index + 3]]
        if kinds != [TokenType.EXISTS, TokenType.L_PAREN, TokenType.SELECT]:
            rest.append(tokens[start])
            index = start + 1
            continue
        stop = closing(tokens, index + 1)
        _check_alone(tokens, start, stop, source)
        kind = JoinKind.SEMI if start == index else JoinKind.ANTI
        exists.append(_read(kind, tokens[index], tokens[index + 2 : stop], source))
        rest.append(replaced(tokens[index], TokenType.TRUE, "TRUE"))
        index = stop + 1
    return tuple(exists), rest


def _check_alone(tokens: Sequence[Token], start: int, stop: int, source: SourceText) -> None:
    """Refuse EXISTS unless every row has to satisfy it: a part of WHERE between ANDs, perhaps in parentheses."""
    word = next(token for token in tokens[start:stop] if token.token_type is TokenType.EXISTS)
    while True:
        before, begin = _up_to_bracket(tokens, start, -1)
        after, end = _up_to_bracket(tokens, stop, 1)
        if TokenType.OR in (*before, *after) or _is_operand(tokens, start, stop):
            raise source.error("EXISTS is only part of a condition here", word, _ALONE)
        if begin < 0 or tokens[begin].token_type in CLAUSES:
            if begin >= 0 and tokens[begin].token_type is TokenType.WHERE:
                return
            raise source.error("EXISTS cannot stand here", word, _ALONE)
        # Everything so far is in parentheses, which must be plain ones.
        start, stop = begin, end


def _up_to_bracket(tokens: Sequence[Token], index: int, step: int) -> tuple[list[TokenType], int]:
    """Return the kinds of the tokens at the same depth next to this index, and where the bracket or clause is that
    ends them; `step` is 1 to look ahead and -1 to look back. Without such an end, that is the end of the tokens.
    """
    depth, kinds, index = 0, list[TokenType](), index + step
    while 0 <= index < len(tokens):
        kind = tokens[index].token_type
        depth += step * ((kind in OPEN) - (kind in CLOSE))
        if depth < 0 or (depth == 0 and kind in CLAUSES):
            break
        if depth == 0:
            kinds.append(kind)
        index += step
    return kinds, index


def _is_operand(tokens: Sequence[Token], start: int, stop: int) -> bool:
    """Return whether an operator, a function or BETWEEN takes it as an operand."""
    previous = tokens[start - 1].token_type if start else None
    following = tokens[stop + 1].token_type if stop + 1 < len(tokens) else None
    if previous is TokenType.AND:
        before, _ = _up_to_bracket(tokens, start - 1, -1)
        ands = before.index(TokenType.BETWEEN) if TokenType.BETWEEN in before else -1
        if ands >= 0 and TokenType.AND not in before[:ands]:
            return True
    is_begun = previous in (TokenType.AND, TokenType.L_PAREN, *CLAUSES)
    return not is_begun or following not in (None, TokenType.AND, TokenType.R_PAREN, *CLAUSES)


def _read(kind: JoinKind, word: Token, tokens: Sequence[Token], source: SourceText) -> Exists:
    position = next((i for i, token in enumerate(tokens) if token.token_type is TokenType.FROM), None)
    if position is None:
        raise source.error("the SELECT of EXISTS has no FROM", word, _EXAMPLE)
    for token in tokens[1:position]:
        if token.token_type is TokenType.L_PAREN:
            hint = "EXISTS only asks whether there is a row: write SELECT 1"
            raise source.error("the SELECT of EXISTS computes something", token, hint)
    sources, index = read_sources(tokens, position, source)
    for joined_source in sources[1:]:
        assert joined_source.joined is not None
        if joined_source.joined.kind is not JoinKind.INNER or joined_source.joined.is_right:
            raise source.error(
                "only INNER joins can stand in EXISTS", joined_source.joined.word, "join it in FROM instead"
            )
    where: Sequence[Token] = ()
    if index < len(tokens):
        if tokens[index].token_type is not TokenType.WHERE:
            raise source.error(f"cannot read '{source.raw(tokens[index])}' here", tokens[index], _EXAMPLE)
        where = tokens[index + 1 :]
        if not where:
            raise source.error("a condition is missing after WHERE", tokens[index], _EXAMPLE)
    for position, token in enumerate(where):
        if token.token_type is TokenType.SELECT:
            raise source.error(
                "EXISTS in EXISTS is not supported", token, "join the inner stream: FROM a […] JOIN b […] ON …"
            )
        if token.token_type in CLAUSES and _up_to_bracket(where, position, -1)[1] < 0:
            raise source.error(f"{token.text.upper()} cannot stand in EXISTS", token, _EXAMPLE)
    return Exists(kind, word, tuple(sources), tuple(where))


_SORTED = "is not supported: the rows of a window are a set", "write ORDER BY, for the rows of batch results"

#: The clauses after the sources.
_ORDERED = (*CLAUSES, TokenType.ORDER_BY)
_ORDER = "after the stream come WHERE, GROUP BY, HAVING and ORDER BY, in this order"
_ONE_PER_PART = "write one query for each part"
_ONE_PER_GROUPING = (
    "is not supported yet",
    "write one query for each grouping, for example GROUP BY symbol and one without GROUP BY",
)
_REFUSED_CLAUSES = {
    **dict.fromkeys((TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY), _SORTED),
    TokenType.LIMIT: (
        "is not supported: every row of a window is reported",
        "leave LIMIT out and cut the results where they are read; ORDER BY may stay",
    ),
    **dict.fromkeys((TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT), ("is not supported", _ONE_PER_PART)),
    TokenType.LATERAL: ("is not supported", "do it in the DataFrame of the stream"),
    TokenType.QUALIFY: ("is not supported", "filter groups with HAVING"),
    **dict.fromkeys((TokenType.CUBE, TokenType.ROLLUP, TokenType.GROUPING_SETS), _ONE_PER_GROUPING),
}


@dataclass(frozen=True, slots=True)
class FromClause:
    """The sources that a query reads: one, or several that are joined; `rest` is the query without the clause.

    The sources of `exists` come last. `root` is the place of the source that is the first side of a join, if that is
    decided.
    """

    sources: tuple[FromSource, ...]
    rest: list[Token]
    exists: tuple[Exists, ...] = ()
    root: int | None = None

    @property
    def first(self) -> FromSource:
        return self.sources[0]

    @property
    def named(self) -> tuple[FromSource, ...]:
        """The sources that FROM itself names."""
        return self.sources[: len(self.sources) - sum(len(exists.sources) for exists in self.exists)]

    @property
    def sides(self) -> tuple[FromSource, ...]:
        """The sources as sides of a join: the first one keeps its rows, so it is the last that a RIGHT JOIN names."""
        rights = [source for source in self.named if source.joined is not None and source.joined.is_right]
        root = rights[-1] if rights else self.sources[0]
        root = root if self.root is None else self.sources[self.root]
        return (root, *(source for source in self.sources if source is not root))


def cut_from_clause(tokens: Sequence[Token], source: SourceText) -> FromClause:
    tokens = without_semicolons(tokens)
    if not tokens:
        raise source.error("the text is empty", Span(0, 1), EXAMPLE)
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise source.error("only one query is expected here", token, "register each query under its own name")
    _check_start(tokens, source)
    position = find_from(tokens)
    if position is None:
        raise source.error("the query has no FROM", source_end(tokens), EXAMPLE)
    if position == 1:
        raise source.error("the select list is empty", tokens[position], "name what to report, for example count(*)")
    sources, index = read_sources(tokens, position, source)
    check_clauses(tokens[index:], tokens[index - 1], source)
    exists, rest = cut_exists(tokens[index:], source)
    sources += [source for each in exists for source in each.sources]
    return FromClause(tuple(sources), [*tokens[:position], *rest], exists)


def find_from(tokens: Sequence[Token]) -> int | None:
    """Return the FROM of the query: not the one in EXTRACT(… FROM …), nor that of IS DISTINCT FROM."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.token_type in OPEN:
            depth += 1
        elif token.token_type in CLOSE:
            depth -= 1
        elif token.token_type is TokenType.FROM and depth == 0:
            before = [each.text.upper() for each in tokens[max(0, index - 2) : index]]
            if before not in (["IS", "DISTINCT"], ["NOT", "DISTINCT"]):
                return index
    return None


def _check_start(tokens: Sequence[Token], source: SourceText) -> None:
    first = tokens[0]
    if is_word(first, "WITH"):
        hint = "if it only renames, computes and filters, write it in FROM: SELECT … FROM (SELECT … FROM trades) AS x"
        raise source.error("WITH is not supported", first, hint)
    if is_word(first, "CREATE"):
        raise source.error("a query begins with SELECT", first, "give the SELECT alone, or load the text as a catalog")
    if first.token_type is not TokenType.SELECT:
        raise source.error(f"a query begins with SELECT, not with '{source.raw(first)}'", first, EXAMPLE)
    if len(tokens) > 1 and is_word(tokens[1], "DISTINCT", "ALL"):
        hint = "groups are distinct already: write SELECT a, b … GROUP BY a, b"
        raise source.error(f"SELECT {tokens[1].text.upper()} is not supported", tokens[1], hint)


def check_clauses(tokens: Sequence[Token], last: Token, source: SourceText) -> None:
    """Refuse unknown clauses after the FROM clause, which ends with the token `last`."""
    if tokens:
        token = tokens[0]
        if TokenType.JOIN in [each.token_type for each in tokens[:3]] and tokens[0].token_type not in _ORDERED:
            hint = "join the stream, and filter in WHERE: JOIN clicks [TUMBLE 1 hour] c ON o.user = c.user WHERE …"
            raise source.error("a subquery cannot be joined", token, hint)
        if token.token_type not in _ORDERED and token.token_type not in _REFUSED_CLAUSES:
            raise source.error(f"cannot read '{source.raw(token)}' here", token, _ORDER)
    depth, clauses = 0, list(_ORDERED)
    for before, token in pairwise([last, *tokens]):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if before.token_type is TokenType.GROUP_BY and is_word(token, "DISTINCT"):
            raise source.error(f"GROUP BY {token.text.upper()} is not supported", token, "name the grouping columns")
        if depth == 0 and token.token_type in _ORDERED:
            if token.token_type not in clauses:
                raise source.error(f"{token.text.upper()} cannot stand here", token, _ORDER)
            clauses = clauses[clauses.index(token.token_type) + 1 :]
        refused = _REFUSED_CLAUSES.get(token.token_type) if depth == 0 else None
        if refused is not None:
            raise source.error(f"{token.text.upper()} {refused[0]}", token, refused[1])
