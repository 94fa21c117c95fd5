"""Cuts `[NOT] EXISTS (SELECT …)` out of WHERE: like SEMI and ANTI joins, it asks for rows with or without a match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from windloom.language.from_sources import CLAUSES, FromSource, read_sources
from windloom.language.tokens import CLOSE, OPEN, Source, closing
from windloom.model import JoinKind

_EXAMPLE = "for example WHERE EXISTS (SELECT 1 FROM clicks [RANGE 30 minutes] c WHERE c.user = o.user)"
_ALONE = "[NOT] EXISTS stands in WHERE by itself or beside other conditions, with AND between them"


@dataclass(frozen=True, slots=True)
class Exists:
    """The search of EXISTS: `sources`, joined by INNER, and `where`, the tokens of a condition that may be empty.

    `word` is the token EXISTS.
    """

    kind: JoinKind
    word: Token
    sources: tuple[FromSource, ...]
    where: tuple[Token, ...]


def cut_exists(tokens: Sequence[Token], source: Source) -> tuple[tuple[Exists, ...], list[Token]]:
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
        at = tokens[index]
        rest.append(Token(TokenType.TRUE, "TRUE", line=at.line, col=at.col, start=at.start, end=at.end))
        index = stop + 1
    return tuple(exists), rest


# ---- where it stands ------------------------------------------------------------------------------------------------


def _check_alone(tokens: Sequence[Token], start: int, stop: int, source: Source) -> None:
    """Refuse EXISTS unless every row has to satisfy it: a part of WHERE between ANDs, perhaps in parentheses."""
    word = next(token for token in tokens[start:stop] if token.token_type is TokenType.EXISTS)
    while True:
        before, begin = _up_to_bracket(tokens, start, -1)
        after, end = _up_to_bracket(tokens, stop, 1)
        if TokenType.OR in (*before, *after) or _is_taken(tokens, start, stop):
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


def _is_taken(tokens: Sequence[Token], start: int, stop: int) -> bool:
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


# ---- what it says ---------------------------------------------------------------------------------------------------


def _read(kind: JoinKind, word: Token, tokens: Sequence[Token], source: Source) -> Exists:
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
