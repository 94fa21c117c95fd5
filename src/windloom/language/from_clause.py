"""Finds the FROM clause in the tokens of a query and removes it, because its window brackets are not SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token, TokenType

from windloom.language.exists import Exists, cut_exists
from windloom.language.from_sources import CLAUSES, EXAMPLE, FromSource, read_sources
from windloom.language.tokens import CLOSE, OPEN, Source, Span, is_word, source_end

_SORTED = "is not supported: the rows of a window are a set", "sort the results where they are read"

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
    def is_join(self) -> bool:
        return len(self.sources) > 1

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


def cut_from_clause(tokens: Sequence[Token], source: Source) -> FromClause:
    stop = len(tokens)
    while stop > 0 and tokens[stop - 1].token_type is TokenType.SEMICOLON:
        stop -= 1
    if stop == 0:
        raise source.error("the text is empty", Span(0, 1), EXAMPLE)
    for token in tokens[:stop]:
        if token.token_type is TokenType.SEMICOLON:
            raise source.error("only one query is expected here", token, "register each query under its own name")
    tokens = tokens[:stop]
    _check_start(tokens, source)
    position = find_from(tokens)
    if position is None:
        raise source.error("the query has no FROM", source_end(tokens), EXAMPLE)
    if position == 1:
        raise source.error("the select list is empty", tokens[position], "name what to report, for example count(*)")
    sources, index = read_sources(tokens, position, source)
    _check_next(tokens, index, source)
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


def _check_start(tokens: Sequence[Token], source: Source) -> None:
    first = tokens[0]
    if is_word(first, "WITH"):
        raise source.error("WITH is not supported", first, "write one SELECT over one stream")
    if is_word(first, "CREATE"):
        raise source.error("a query begins with SELECT", first, "give the SELECT alone, or load the text as a catalog")
    if first.token_type is not TokenType.SELECT:
        raise source.error(f"a query begins with SELECT, not with '{source.raw(first)}'", first, EXAMPLE)
    if len(tokens) > 1 and is_word(tokens[1], "DISTINCT", "ALL"):
        hint = "groups are distinct already: write SELECT a, b … GROUP BY a, b"
        raise source.error(f"SELECT {tokens[1].text.upper()} is not supported", tokens[1], hint)


def _check_next(tokens: Sequence[Token], index: int, source: Source) -> None:
    """Refuse unknown clauses after the FROM clause."""
    if index < len(tokens):
        token = tokens[index]
        if token.token_type not in CLAUSES and token.token_type not in _REFUSED_CLAUSES:
            raise source.error(f"cannot read '{source.raw(token)}' here", token, _ORDER)
    depth, clauses = 0, list(CLAUSES)
    for before, token in pairwise(tokens[index - 1 :]):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if before.token_type is TokenType.GROUP_BY and is_word(token, "ALL", "DISTINCT"):
            raise source.error(f"GROUP BY {token.text.upper()} is not supported", token, "name the grouping columns")
        if depth == 0 and token.token_type in CLAUSES:
            if token.token_type not in clauses:
                raise source.error(f"{token.text.upper()} cannot stand here", token, _ORDER)
            clauses = clauses[clauses.index(token.token_type) + 1 :]
        refused = _REFUSED_CLAUSES.get(token.token_type) if depth == 0 else None
        if refused is not None:
            raise source.error(f"{token.text.upper()} {refused[0]}", token, refused[1])
