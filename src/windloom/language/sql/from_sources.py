"""The sources of a FROM clause: streams with their windows, and how each is joined to those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType

from windloom.language.sql.table_functions import CalledWindow, read_table_function
from windloom.language.sql.tokens import CLOSE, LITERALS, OPEN, SourceText, Span, closing, is_name, is_word, source_end
from windloom.model import JoinKind, Window

EXAMPLE = "write SELECT … FROM stream [RANGE 1 hour SLIDE 1 minute] …"
CLAUSES = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)

#: Where the sources of FROM end.
_END_WORDS = "COMMA ORDER_BY SORT_BY CLUSTER_BY DISTRIBUTE_BY LIMIT UNION EXCEPT INTERSECT LATERAL QUALIFY"
_ENDS = (*CLAUSES, *(TokenType[word] for word in _END_WORDS.split()))
_JOIN_EXAMPLE = (
    "for example FROM orders [RANGE 1 hour SLIDE 5 minutes] o JOIN clicks [RANGE 1 hour] c ON o.user = c.user"
)

#: Words after which an operand follows.
_OPERATOR_WORDS = tuple(
    TokenType[word]
    for word in "ON AND OR XOR NOT IN IS BETWEEN LIKE ILIKE RLIKE DIV".split()  # noqa: SIM905
)

#: Words that may stand before JOIN.
_WORDS = ("INNER", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "CROSS", "NATURAL", "ASOF")
_MODIFIERS = tuple(TokenType[word] for word in _WORDS)
_KINDS: dict[tuple[str, ...], JoinKind] = {
    (): JoinKind.INNER,
    ("INNER",): JoinKind.INNER,
    ("CROSS",): JoinKind.INNER,  # WHERE may have its keys
    ("LEFT",): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT",): JoinKind.LEFT,
    ("RIGHT", "OUTER"): JoinKind.LEFT,
    ("SEMI",): JoinKind.SEMI,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("ANTI",): JoinKind.ANTI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
}
_REFUSED = {
    "NATURAL": ("NATURAL JOIN is not supported", "name the columns that must be equal: JOIN … USING (user)"),
    "FULL": (
        "FULL JOIN is not supported",
        "write two queries: a LEFT JOIN b, and the rows of b without a match, b LEFT ANTI JOIN a",
    ),
    "ASOF": (
        "ASOF JOIN is not supported",
        "pair tuples that are near in time, FROM orders o JOIN clicks c WITHIN 30 minutes ON o.user = c.user;"
        " or take the latest of a window with last(c.page)",
    ),
}


@dataclass(frozen=True, slots=True)
class JoinedSource:
    """How a source is joined: `word` is the token of the join, `on` the tokens of its condition, `using` column names.

    With `is_right`, the source is the one whose rows are all kept. `within` are the tokens of a duration: how far apart
    the tuples of a pair may lie.
    """

    kind: JoinKind
    word: Token
    on: tuple[Token, ...] = ()
    using: tuple[Token, ...] = ()
    is_right: bool = False
    within: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class FromSource:
    """A stream as FROM names it: `bracket` are the tokens of its window, or None.

    `called` is the window of GROUP BY window(…), if a join has its window from there.
    """

    stream: Token
    alias: Token | None
    bracket: Sequence[Token] | None
    bracket_span: Span
    joined: JoinedSource | None = None  # None for the first
    called: Window | None = None
    function: CalledWindow | None = None  # if a table function makes its window

    @property
    def name(self) -> str:
        """The name that qualifies its columns."""
        return (self.alias or self.stream).text

    @property
    def written(self) -> str:
        """The stream with its alias, as it stands in FROM."""
        return self.stream.text if self.alias is None else f"{self.stream.text} {self.alias.text}"


def read_sources(tokens: Sequence[Token], position: int, source: SourceText) -> tuple[list[FromSource], int]:
    """Return all sources after the FROM at this position, and where they end."""
    first, index = _read_source(tokens, position + 1, source, None)
    sources = [first]
    while index < len(tokens) and (tokens[index].token_type is TokenType.COMMA or is_join_word(tokens, index)):
        joined, index = _read_words(tokens, index, source)
        from_source, index = _read_source(tokens, index, source, joined)
        from_source, index = _with_distance(from_source, tokens, index, source)
        from_source, index = _with_condition(from_source, tokens, index, source)
        from_source, index = _with_distance(from_source, tokens, index, source)
        sources.append(from_source)
    return sources, index


def is_join_word(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a join begins here; `left(…)` and `right(…)` are functions."""
    kind = tokens[index].token_type
    if kind not in (*_MODIFIERS, TokenType.JOIN, TokenType.STRAIGHT_JOIN):
        return False
    return index + 1 == len(tokens) or tokens[index + 1].token_type is not TokenType.L_PAREN


def _read_words(tokens: Sequence[Token], index: int, source: SourceText) -> tuple[JoinedSource, int]:
    """Read how a source is joined: `,`, `JOIN`, `LEFT SEMI JOIN`, …"""
    start = index
    if tokens[start].token_type is TokenType.COMMA:
        return JoinedSource(JoinKind.INNER, tokens[start]), index + 1
    while index < len(tokens) and tokens[index].token_type in _MODIFIERS:
        index += 1
    words = tuple(token.text.upper() for token in tokens[start:index])
    for word in words:
        if word in _REFUSED:
            raise source.error(_REFUSED[word][0], Span.of(tokens[start : index + 1]), _REFUSED[word][1])
    if index == len(tokens) or tokens[index].token_type is not TokenType.JOIN:
        at = source_end(tokens) if index == len(tokens) else tokens[index]
        raise source.error("JOIN is expected here", at, _JOIN_EXAMPLE)
    if words not in _KINDS:
        shown = " ".join((*words, "JOIN"))
        hint = "use [INNER] JOIN, LEFT [OUTER] JOIN, LEFT SEMI JOIN or LEFT ANTI JOIN"
        raise source.error(f"{shown} is not supported", Span.of(tokens[start : index + 1]), hint)
    return JoinedSource(_KINDS[words], tokens[start], is_right=words[:1] == ("RIGHT",)), index + 1


def _read_source(
    tokens: Sequence[Token], index: int, source: SourceText, joined: JoinedSource | None
) -> tuple[FromSource, int]:
    alias: Token | None = None
    bracket: Sequence[Token] | None = None
    found, start = read_table_function(tokens, index, source), index
    called = None if found is None else found[0]
    if found is None:
        stream = _stream_name(tokens, index, source)
        span, index = Span(stream.start, stream.end + 1), index + 1
    else:
        index, stream, bracket = found[1], found[0].stream, found[0].bracket
        span = Span.of(tokens[start:index])
    while index < len(tokens):
        token = tokens[index]
        if token.token_type is TokenType.L_BRACKET and bracket is None:
            stop = closing(tokens, index)
            bracket, span = tokens[index + 1 : stop], Span.of(tokens[index : stop + 1])
            index = stop + 1
        elif alias is None and (step := _alias_length(tokens, index, source)):
            index += step
            alias = tokens[index - 1]
        else:
            break
    return FromSource(stream, alias, bracket, span, joined, function=called), index


def _stream_name(tokens: Sequence[Token], index: int, source: SourceText) -> Token:
    after = tokens[index - 1].text.upper()
    after = "the comma" if after == "," else after
    if index == len(tokens):
        raise source.error(f"a stream is missing after {after}", source_end(tokens), EXAMPLE)
    token = tokens[index]
    if token.token_type is TokenType.L_PAREN:
        raise source.error("subqueries are not supported", token, "read from a stream: " + EXAMPLE)
    if not is_name(token) or token.token_type in CLAUSES:
        raise source.error(f"a stream is expected after {after}, not '{source.raw(token)}'", token, EXAMPLE)
    following = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    if following is TokenType.DOT:
        raise source.error("the name of a stream has one part", token, "put a name with dots in backticks")
    if following is TokenType.L_PAREN:
        hint = "use TUMBLE, HOP, CUMULATE or SESSION; or read from a stream: " + EXAMPLE
        raise source.error(f"the table function {token.text} is not supported", token, hint)
    return token


def _alias_length(tokens: Sequence[Token], index: int, source: SourceText) -> int:
    """Return the number of tokens of `AS alias` or `alias` here; 0 if there is no alias."""
    token = tokens[index]
    if token.token_type is TokenType.ALIAS:
        if index + 1 == len(tokens) or not is_name(tokens[index + 1]):
            raise source.error("a name is missing after AS", token, "for example FROM trades [TUMBLE 1 hour] AS t")
        return 2
    if index + 1 < len(tokens) and is_word(token, "WITHIN"):
        # `WITHIN 30 minutes` begins here; it is an alias if neither a duration nor a condition follows.
        following = (TokenType.NUMBER, TokenType.STRING, TokenType.DASH, TokenType.ON, TokenType.USING)
        if tokens[index + 1].token_type in following:
            return 0
    return 1 if token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) else 0


def _with_distance(
    from_source: FromSource, tokens: Sequence[Token], index: int, source: SourceText
) -> tuple[FromSource, int]:
    """Read `WITHIN 30 minutes`, which may stand before the condition of a joined source, or after it."""
    if index >= len(tokens) or not is_word(tokens[index], "WITHIN"):
        return from_source, index
    if from_source.joined is not None and from_source.joined.within:
        raise source.error("WITHIN is given twice", tokens[index], "write it before ON, or after the condition")
    stop, ends = index + 1, (TokenType.ON, TokenType.USING, *_ENDS)
    while stop < len(tokens) and tokens[stop].token_type not in ends and not is_join_word(tokens, stop):
        stop += 1
    assert from_source.joined is not None
    if stop == index + 1:
        hint = "say how far apart the tuples of a pair may lie: JOIN clicks c WITHIN 30 minutes ON …"
        raise source.error("WITHIN has no duration", tokens[index], hint)
    return replace(from_source, joined=replace(from_source.joined, within=tuple(tokens[index + 1 : stop]))), stop


def _begins_distance(tokens: Sequence[Token], index: int) -> bool:
    """Return whether `WITHIN 30 minutes` begins here, inside or after a condition.

    A column of that name follows an operator; no operator stands between the end of a condition and this word.
    """
    if not is_word(tokens[index], "WITHIN") or index + 1 == len(tokens):
        return False
    before = tokens[index - 1]
    ends_operand = before.token_type in (*CLOSE, *LITERALS) or (
        is_name(before) and before.token_type not in _OPERATOR_WORDS
    )
    return ends_operand and tokens[index + 1].token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH)


def _with_condition(
    from_source: FromSource, tokens: Sequence[Token], index: int, source: SourceText
) -> tuple[FromSource, int]:
    """Read what follows a joined source: ON with a condition, USING with columns, or nothing."""
    joined = from_source.joined
    assert joined is not None
    kind = tokens[index].token_type if index < len(tokens) else None
    if joined.word.token_type is TokenType.COMMA and kind in (TokenType.ON, TokenType.USING):
        hint = "write the condition in WHERE, or JOIN instead of the comma"
        raise source.error(f"{tokens[index].text.upper()} cannot follow a comma", tokens[index], hint)
    if kind is TokenType.ON:
        # The condition ends at another join, at a clause, or with the text.
        stop, depth = index + 1, 0
        while stop < len(tokens):
            kind = tokens[stop].token_type
            if depth == 0 and (kind in _ENDS or is_join_word(tokens, stop) or _begins_distance(tokens, stop)):
                break
            depth += (kind in OPEN) - (kind in CLOSE)
            stop += 1
        if stop == index + 1:
            raise source.error("a condition is missing after ON", tokens[index], _JOIN_EXAMPLE)
        read = replace(joined, on=tuple(tokens[index + 1 : stop]))
    elif kind is TokenType.USING:
        is_open = index + 1 < len(tokens) and tokens[index + 1].token_type is TokenType.L_PAREN
        stop = closing(tokens, index + 1) if is_open else index
        inside = tokens[index + 2 : stop]
        names, commas = inside[::2], inside[1::2]
        is_list = len(inside) % 2 == 1 and all(map(is_name, names))
        if not is_list or any(token.token_type is not TokenType.COMMA for token in commas):
            raise source.error("USING takes a list of columns", tokens[index], "for example USING (user, shop)")
        read, stop = replace(joined, using=tuple(names)), stop + 1
    elif joined.kind is JoinKind.INNER:
        return from_source, index
    else:
        shown = f"{joined.kind.upper()} JOIN"
        raise source.error(f"a {shown} needs a condition", from_source.stream, "write ON a.x = b.y, or USING (x)")
    return replace(from_source, joined=read), stop
