"""A text of another system in our own form, or the construct that stops it; nothing has to be declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from windloom.errors import QueryError, WindloomError
from windloom.language.clauses.emit import cut_emit
from windloom.language.create_stream import read_relation, read_stream
from windloom.language.select import parse_query
from windloom.language.sql.derived import parse_query_tree
from windloom.language.sql.from_clause import FromClause
from windloom.language.sql.tokens import SourceText, Span, is_name, is_word, tokenize
from windloom.language.sql.window_calls import is_window_call, with_spark_windows
from windloom.model import DataType, Query, Stream
from windloom.model.expression import Expression
from windloom.model.join import WindowedStream

#: The systems whose texts are read. Texts show by their constructs from where they are; a name only says what double
#: quotes hold.
DIALECTS = ("spark", "flink", "risingwave", "materialize", "duckdb")
_WITH_QUOTED_NAMES = ("risingwave", "materialize", "duckdb")


@dataclass(frozen=True, slots=True)
class Translation:
    """A query of a text: its name, and its text in our form or what stops it; with the query itself, if it is one."""

    name: str
    text: str
    query: Query | None = None
    error: QueryError | None = None


def translate(text: str, file: str, dialect: str | None = None) -> list[Translation]:
    """Return every query of a text; streams that it does not create have the columns that it names."""
    source = SourceText(text, f"text '{file}'", file)
    if dialect in _WITH_QUOTED_NAMES:
        source = SourceText(_in_backticks(text, source), source.subject, file)
    tokens = [Token(TokenType.SEMICOLON, ";"), *tokenize(source), Token(TokenType.SEMICOLON, ";")]
    ends = [index for index, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON]
    declared: dict[str, Stream] = {}
    found: list[Translation] = []
    for start, end in pairwise(ends):
        statement = tokens[start + 1 : end]
        if not statement:
            continue
        if is_word(statement[0], "CREATE") and len(statement) > 2 and is_word(statement[1], "STREAM", "RELATION"):
            read = read_stream if is_word(statement[1], "STREAM") else read_relation
            stream = read(statement, 2, source)
            declared[stream.name] = stream
            continue
        name, body = _named(statement, f"q{len(found) + 1}")
        found.append(_translated(name, body, source, declared))
    if not found:
        raise source.error("there is no query in the text", Span(0, 1), "write SELECT …")
    return found


def _in_backticks(text: str, source: SourceText) -> str:
    """Return the text with its names in backticks instead of double quotes; every place stays the same."""
    characters = list(text)
    for token in tokenize(source):
        if token.token_type is TokenType.STRING and text[token.start] == text[token.end] == '"':
            characters[token.start] = characters[token.end] = "`"
    return "".join(characters)


def _named(tokens: Sequence[Token], otherwise: str) -> tuple[str, Sequence[Token]]:
    """Return the name and the SELECT of `CREATE [MATERIALIZED] VIEW name AS …`, `INSERT INTO name …`, or a SELECT."""
    select = next((i for i, token in enumerate(tokens) if token.token_type is TokenType.SELECT), 0)
    head = tokens[:select]
    if head and is_word(head[0], "CREATE", "INSERT"):
        names = [
            token for token in head if is_name(token) and not is_word(token, *_HEAD_WORDS) and not token.text.isdigit()
        ]
        if names:
            return names[-1].text, tokens[select:]
    return otherwise, tokens


_HEAD_WORDS = ("CREATE", "MATERIALIZED", "VIEW", "QUERY", "TEMPORARY", "OR", "REPLACE", "AS", "INSERT", "INTO", "TABLE")


def _translated(name: str, tokens: Sequence[Token], source: SourceText, declared: Mapping[str, Stream]) -> Translation:
    # Places of errors are those in the whole text, because everything before the query is blank.
    begin, end = tokens[0].start, tokens[-1].end + 1
    blank = "".join(character if character == "\n" else " " for character in source.text[:begin])
    text = source.text[begin:end]
    try:
        about = source.about(f"query '{name}'")
        clause, tree = parse_query_tree(cut_emit(tokens, about)[0], about, ())
        streams = {**_streams(clause, tree, source), **declared}
        query = parse_query(name, blank + text, streams)
    except QueryError as error:
        return Translation(name, text, error=error)
    except WindloomError as error:
        return Translation(name, text, error=source.wrap(error, tokens[0]))
    return Translation(name, our_text(query) or text, query)


def _streams(clause: FromClause, tree: exp.Select, source: SourceText) -> dict[str, Stream]:
    """Return the streams of a query with the columns that it names: numbers, but for conditions and the time."""
    calls = with_spark_windows(tree, source, Span.of(clause.rest[:1]))
    windows = [*calls, *(call for call in tree.find_all(exp.Anonymous) if is_window_call(call))]
    times = [each.function.time.text for each in clause.sources if each.function is not None]
    times += [call.expressions[0].name for call in windows if call.expressions]
    time = times[0] if times else "ts"
    labels = {label.lower() for each in clause.sources for label in (each.stream.text, each.name)}
    conditions = {
        each.expression.this.name for each in tree.find_all(exp.Filter) if isinstance(each.expression.this, exp.Column)
    }
    columns = {time: DataType.parse("timestamp")}
    aliases = {item.alias.lower() for item in tree.expressions if isinstance(item, exp.Alias)}
    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        if parts[0].lower() in aliases and column.find_ancestor(exp.Group, exp.Having, exp.Order) is not None:
            continue
        parts = parts[1:] if len(parts) > 1 and parts[0].lower() in labels else parts
        if parts[0].lower() not in (*_EDGES, *(name.lower() for name in columns)):
            columns[parts[0]] = DataType.parse("boolean" if parts[0] in conditions else "double")
    return {each.stream.text: Stream(each.stream.text, columns, time=time) for each in clause.sources}


_EDGES = ("window", "session_window", "window_start", "window_end", "window_time")


def our_text(query: Query) -> str | None:
    """Return a query of one stream with its window in brackets; None for joins and rows, which have their own form.

    >>> price = {"ts": DataType.parse("timestamp"), "price": DataType.parse("double")}
    >>> text = "SELECT avg(price) AS p FROM trades GROUP BY window(ts, '1 hour')"
    >>> print(our_text(parse_query("q", text, {"trades": Stream("trades", price, time="ts")})))
    SELECT avg(price) AS p
    FROM trades [TUMBLE 1 hour]
    """
    if not isinstance(query.source, WindowedStream) or query.source.enriched is not None:
        return None
    items = [(grouping.expression.sql, grouping.name) for grouping in query.group_by]
    for output in query.outputs:
        if output.aggregate is not None:
            items.append((str(query.aggregates[output.aggregate]), output.name))
        elif output.expression is not None:
            items.append((_spelled_out(query, output.expression), output.name))
    shown = ", ".join(sql if sql == name else f"{sql} AS {Expression.of_column(name).sql}" for sql, name in items)
    lines = [f"SELECT {shown or 'count(*)'}", f"FROM {Expression.of_column(query.stream).sql} {query.window}"]
    if query.where is not None:
        lines.append(f"WHERE {query.where.sql}")
    if query.group_by:
        lines.append(f"GROUP BY {', '.join(grouping.expression.sql for grouping in query.group_by)}")
    if query.having is not None:
        lines.append(f"HAVING {_spelled_out(query, query.having)}")
    if query.presentation.order:
        order = query.presentation.order
        keys = [str(replace(key, column=Expression.of_column(key.column).sql)) for key in order]
        lines.append(f"ORDER BY {', '.join(keys)}")
    if str(query.emission) != "EMIT FINAL":
        lines.append(str(query.emission))
    return "\n".join(lines)


def _spelled_out(query: Query, expression: Expression) -> str:
    parts = {f"__a{index}": str(aggregate) for index, aggregate in enumerate(query.aggregates)}
    parts |= {f"__g{index}": grouping.expression.sql for index, grouping in enumerate(query.group_by)}
    text = expression.sql
    for name in sorted(parts, key=len, reverse=True):
        text = text.replace(name, parts[name])
    return text
