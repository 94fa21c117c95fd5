"""The outline of a query before any SELECT is read: which rows it reports, and SELECTs between set operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from windloom.language.tokens import CLOSE, LITERALS, OPEN, Source, Span, closing, is_name, is_word
from windloom.model.rows import Reports, SetKind

_REPORTS = {"RSTREAM": Reports.STANDING, "ISTREAM": Reports.ENTERING, "DSTREAM": Reports.LEAVING}
_OPERATORS = {TokenType.UNION: "UNION", TokenType.EXCEPT: "EXCEPT", TokenType.INTERSECT: "INTERSECT"}
#: Tokens that are not names and can begin an item of the select list.
_BEGINNING = (
    TokenType.STAR,
    TokenType.L_PAREN,
    TokenType.DASH,
    TokenType.PLUS,
    TokenType.TILDE,
    *LITERALS,
)
#: Words that follow a column, and cannot begin an item.
_FOLLOWING = (
    TokenType.FROM,
    TokenType.ALIAS,
    TokenType.IS,
    TokenType.IN,
    TokenType.BETWEEN,
    TokenType.LIKE,
    TokenType.ILIKE,
    TokenType.RLIKE,
    TokenType.AND,
    TokenType.OR,
)


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT, without the words after it that determine which rows it reports.

    `said` is that word (ISTREAM, …) and `distinct` the word DISTINCT, if they are there.
    """

    tokens: Sequence[Token]
    reports: Reports | None = None
    said: Token | None = None
    distinct: Token | None = None

    @property
    def is_plain(self) -> bool:
        return self.reports is None and self.distinct is None


@dataclass(frozen=True, slots=True)
class Combined:
    """Two bodies of a set operation; `word` is the word of the operation."""

    kind: SetKind
    word: Token
    left: Written
    right: Written


#: The body of a query as it is written.
Written = Select | Combined


def read_written(tokens: Sequence[Token], source: Source) -> Written:
    """Take a query apart at its set operations; INTERSECT binds more tightly than the others, as in Spark."""
    stop = len(tokens)
    while stop > 0 and tokens[stop - 1].token_type is TokenType.SEMICOLON:
        stop -= 1
    tokens = tokens[:stop] if stop else tokens
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


def _combined(tokens: Sequence[Token], operator: int, source: Source) -> Combined:
    word, after = tokens[operator], operator + 1
    name = _OPERATORS[word.token_type]
    is_all = after < len(tokens) and is_word(tokens[after], "ALL")
    after += after < len(tokens) and is_word(tokens[after], "ALL", "DISTINCT")
    if operator == 0 or after == len(tokens):
        side = "before" if operator == 0 else "after"
        raise source.error(f"a SELECT is missing {side} {name}", word, "write SELECT … UNION ALL SELECT …")
    kind = SetKind(f"{name} ALL" if is_all else name)
    return Combined(kind, word, read_written(tokens[:operator], source), read_written(tokens[after:], source))


def _select(tokens: Sequence[Token], source: Source) -> Select:
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
