"""A catalog file: statements `CREATE STREAM …;`, `CREATE RELATION …;` and `CREATE QUERY … AS SELECT …;`.

A query may state its urgency before AS: `CREATE QUERY … WITHIN 30 seconds PRIORITY 2 AS SELECT …;`.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sqlglot import Token, TokenType

from windloom.errors import QueryError
from windloom.language.clauses.urgency import HEADER_WORDS
from windloom.language.create_stream import read_relation, read_stream
from windloom.language.select import read_query
from windloom.language.sql.from_clause import find_from
from windloom.language.sql.from_sources import read_sources
from windloom.language.sql.tokens import SourceText, Span, is_name, is_word, source_end, tokenize
from windloom.model import Query, Stream, UserDefined

_STATEMENTS = (
    "a statement is CREATE STREAM name (…) TIME column; or CREATE [NONRETROACTIVE] RELATION name (…);"
    " or CREATE QUERY name AS SELECT …;"
)
_KINDS = ("STREAM", "RELATION", "QUERY")


@dataclass(frozen=True, slots=True)
class CatalogStream:
    """A stream or a relation as declared, and the line of its declaration."""

    stream: Stream
    line: int


@dataclass(frozen=True, slots=True)
class CatalogQuery:
    """A query as written, not yet checked, because its stream may be given outside of the catalog."""

    name: str
    text: str
    line: int
    column: int
    _source: SourceText = field(repr=False, compare=False)
    _tokens: Sequence[Token] = field(repr=False, compare=False)

    def parse(self, streams: Mapping[str, Stream], own: Mapping[str, UserDefined] | None = None) -> Query:
        """Check the query against the streams; errors give the place in the catalog."""
        return read_query(self.name, self._tokens, self._source, streams, self.text, own)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The statements of a catalog, in their order."""

    streams: tuple[CatalogStream, ...]
    queries: tuple[CatalogQuery, ...]
    source: str = "catalog"
    relations: tuple[CatalogStream, ...] = ()

    def parse(self, streams: Mapping[str, Stream] | None = None) -> tuple[Query, ...]:
        """Return all queries, checked against these streams and relations, then against those of the catalog."""
        known = {each.stream.name: each.stream for each in (*self.streams, *self.relations)} | dict(streams or {})
        return tuple(query.parse(known) for query in self.queries)


def parse_catalog(text: str, source: str = "catalog") -> Catalog:
    """Read a catalog; `source` is the name of its file, for errors.

    >>> catalog = parse_catalog('''
    ...     CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE) TIME ts DELAY 10 seconds;
    ...     CREATE QUERY avg_1h AS SELECT avg(price) FROM trades [RANGE 1 hour SLIDE 1 minute];
    ... ''')
    >>> catalog.streams[0].stream.delay_ticks, catalog.queries[0].name, catalog.queries[0].line
    (10000000, 'avg_1h', 3)
    """
    # A byte-order mark is not part of the text; a space in its place keeps all positions.
    text = " " + text[1:] if text.startswith("\ufeff") else text
    whole = SourceText(text, f"catalog '{source}'", None if source == "catalog" else source)
    streams: list[CatalogStream] = []
    relations: list[CatalogStream] = []
    queries: list[CatalogQuery] = []
    places: dict[tuple[str, str], int] = {}
    line_ends = [match.start() for match in re.finditer("\n", text)]
    later_streams: list[tuple[CatalogQuery, Token]] = []
    tokens_of_text = [Token(TokenType.SEMICOLON, ";"), *tokenize(whole), Token(TokenType.SEMICOLON, ";")]
    ends = [index for index, token in enumerate(tokens_of_text) if token.token_type is TokenType.SEMICOLON]
    for tokens in (tokens_of_text[start + 1 : end] for start, end in pairwise(ends) if end > start + 1):
        kind, position = _head(tokens, whole)
        name = tokens[position]
        line = bisect(line_ends, tokens[0].start) + 1
        # Streams and relations are called by their names in FROM.
        key = (kind, name.text) if kind == "QUERY" else ("SOURCE", name.text.lower())
        if key in places:
            hint = f"the first is at line {places[key]}; give one of them another name"
            raise whole.error(f"{kind.lower()} '{name.text}' is created twice", name, hint)
        places[key] = line
        if kind == "QUERY":
            query = _read_query_statement(tokens, name, whole, line_ends)
            queries.append(query)
            unknown = (read for read in _streams_read(query) if ("SOURCE", read.text.lower()) not in places)
            later_streams += ((query, read) for read in unknown)
            continue
        read_source = read_stream if kind == "STREAM" else read_relation
        stream = read_source(tokens, position, whole.about(f"{kind.lower()} '{name.text}'"))
        # A query before its stream: statements are in the wrong order or, more often, a name is used twice.
        for query, token in later_streams:
            if token.text.lower() == stream.name.lower():
                message = f"{kind.lower()} '{token.text}' is created only later, at line {line}"
                raise query._source.error(message, token, f"move CREATE {kind} above the queries that read it")
        (streams if kind == "STREAM" else relations).append(CatalogStream(stream, line))
    if not streams and not relations and not queries:
        raise whole.error("no CREATE STREAM or CREATE QUERY statement found", Span(0, 1), _STATEMENTS)
    return Catalog(tuple(streams), tuple(queries), source, tuple(relations))


def _head(tokens: Sequence[Token], source: SourceText) -> tuple[str, int]:
    """Return the kind of a statement, and the place of the name it creates."""
    if is_word(tokens[0], "SELECT", "FROM"):
        raise source.error("a query in a catalog needs a name", tokens[0], "write CREATE QUERY name AS SELECT …;")
    word = 2 if len(tokens) > 1 and is_word(tokens[1], "NONRETROACTIVE") else 1
    known = _KINDS if word == 1 else ("RELATION",)
    if len(tokens) <= word or not is_word(tokens[0], "CREATE") or not is_word(tokens[word], *known):
        at = tokens[0] if not is_word(tokens[0], "CREATE") or len(tokens) < 2 else tokens[min(word, len(tokens) - 1)]
        raise source.error(f"unknown statement '{source.raw(at)}'", at, _STATEMENTS)
    kind, position = tokens[word].text.upper(), word + 1
    if len(tokens) <= position or not is_name(tokens[position]):
        at_name = source_end(tokens[:position]) if len(tokens) <= position else tokens[position]
        raise source.error(f"a name is missing after CREATE {kind}", at_name, _STATEMENTS)
    for before, token, after in zip(tokens[2:], tokens[3:], tokens[4:], strict=False):
        if token.token_type is TokenType.CREATE and is_word(after, *_KINDS, "NONRETROACTIVE"):
            raise source.error("a ';' is missing before this statement", token, f"end with ';' after '{before.text}'")
    return kind, position


def _read_query_statement(
    tokens: Sequence[Token], name: Token, source: SourceText, line_ends: list[int]
) -> CatalogQuery:
    source = source.about(f"query '{name.text}'")
    has_options = len(tokens) > 3 and is_word(tokens[3], *HEADER_WORDS)
    if len(tokens) < 4 or not (has_options or tokens[3].token_type is TokenType.ALIAS):
        at = source_end(tokens[:3]) if len(tokens) < 4 else tokens[3]
        raise source.error("AS is missing after the name", at, f"write CREATE QUERY {source.raw(name)} AS SELECT …;")
    # Options are part of the text, so that it means the same wherever a query is registered.
    body = tokens[3:] if has_options else tokens[4:]
    if not body:
        raise source.error("the query is missing after AS", source_end(tokens), "write AS SELECT … FROM stream […]")
    start = body[0].start
    line = bisect(line_ends, start)
    column = start - (line_ends[line - 1] if line else -1)
    return CatalogQuery(name.text, source.text[start : body[-1].end + 1], line + 1, column, source, body)


def _streams_read(query: CatalogQuery) -> list[Token]:
    """Return the names after FROM, after JOIN and after commas between sources, whether the query is right or not."""
    tokens = query._tokens
    position = find_from(tokens)
    if position is None:
        return []
    try:
        return [source.stream for source in read_sources(tokens, position, query._source)[0]]
    except QueryError:
        return list(tokens[position + 1 : position + 2])
