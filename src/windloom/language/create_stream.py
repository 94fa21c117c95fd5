"""Reads the declarations of streams and relations.

`CREATE STREAM name (column type, …) TIME column [DELAY duration] [UNIT unit] [RATE number]`
`CREATE [NONRETROACTIVE] RELATION name (column type, …)`
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from windloom.errors import WindloomError, near_names
from windloom.language.sql.tokens import SourceText, Span, closing, is_name, is_word, source_end
from windloom.language.windows.syntax import read_duration
from windloom.model import DataType, Relation, Stream, TypeKind
from windloom.model.time import INTEGER_UNITS, unit_ticks

_OPTIONS = ("TIME", "DELAY", "UNIT", "RATE")
_EXAMPLE = "for example CREATE STREAM trades (ts TIMESTAMP, price DOUBLE) TIME ts DELAY 10 seconds;"
_TIME_KINDS = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ, TypeKind.DATE, TypeKind.STRING)
_TYPES = """
    tinyint byte smallint short int integer bigint long float real double decimal dec numeric boolean bool string text
    varchar char binary date timestamp timestamp_ltz timestamp_ntz time interval array map struct variant void
""".split()  # noqa: SIM905 - a table of words

_Options = dict[str, Sequence[Token]]


def read_stream(tokens: Sequence[Token], name: int, source: SourceText) -> Stream:
    """Return the stream declared by the tokens of one statement; the token at `name` is its name."""
    columns, stop = _columns(tokens, name, "stream", _EXAMPLE, source)
    options = _options(tokens[stop + 1 :], source)
    if "TIME" not in options:
        hint = f"say which column is the event time, for example TIME {next(iter(columns))}"
        raise source.error("the TIME column is missing", source_end(tokens), hint)
    time = _time_column(options["TIME"], columns, source)
    delay_ticks, rate = 0, None
    if "DELAY" in options:
        duration = read_duration(options["DELAY"], source)
        delay_ticks = duration.ticks(source)
        if delay_ticks < 0:
            raise source.error("the DELAY is negative", duration.at, "say how late tuples may come: 10 seconds")
    if "RATE" in options:
        token, *more = options["RATE"]
        rate = float(token.text) if token.token_type is TokenType.NUMBER and not more else 0.0
        if rate <= 0:
            hint = "give tuples per second: RATE 1000"
            raise source.error("the RATE must be a positive number", Span.of(options["RATE"]), hint)
    return Stream(
        tokens[name].text,
        columns,
        time=time,
        delay_ticks=delay_ticks,
        time_unit=_unit(time, columns[time], options, source),
        events_per_second=rate,
    )


def _columns(
    tokens: Sequence[Token], name: int, what: str, example: str, source: SourceText
) -> tuple[dict[str, DataType], int]:
    """Return the columns in parentheses after the token at `name`, and the index of the closing parenthesis."""
    first = name + 1
    if len(tokens) <= first or tokens[first].token_type is not TokenType.L_PAREN:
        at = source_end(tokens[:first]) if len(tokens) <= first else tokens[first]
        raise source.error("the columns are missing after the name", at, example)
    end = closing(tokens, first)
    columns: dict[str, DataType] = {}
    start = first + 1
    while start < end:
        # Commas inside decimal(10, 2) and struct<a: int, b: int> do not end a column.
        stop, depth = start, 0
        while stop < end and (depth or tokens[stop].text != ","):
            depth += (tokens[stop].text in ("(", "<")) - (tokens[stop].text in (")", ">"))
            stop += 1
        column = tokens[start:stop]
        if not column or not is_name(column[0]):
            at = tokens[start]
            raise source.error(f"a column name is expected, not '{source.raw(at)}'", at, example)
        column_name = column[0].text
        if column_name.lower() in (known.lower() for known in columns):
            hint = "names are compared without case"
            raise source.error(f"column '{column_name}' is declared twice", column[0], hint)
        columns[column_name] = _type(column, source)
        start = stop + 1
    if not columns:
        raise source.error(f"a {what} needs columns", Span.of(tokens[first : end + 1]), example)
    return columns, end


def _type(column: Sequence[Token], source: SourceText) -> DataType:
    words = _without_constraints(column[1:], source)
    if not words:
        raise source.error(f"the type of column '{column[0].text}' is missing", column[0], "for example DOUBLE")
    if not is_name(words[0]) or words[0].text.lower() not in _TYPES:
        raise source.error(f"unknown type '{source.raw(words[0])}'", words[0], near_names(words[0].text, _TYPES))
    text = ""
    for token in words:
        piece = source.raw(token)
        text += f" {piece}" if text and text[-1].isalnum() and piece[0].isalnum() else piece
    simple = len(words) == 1 or words[1].text in ("(", "<") or is_word(words[0], "INTERVAL")
    if not simple:
        raise source.error(f"cannot read '{source.raw(words[1])}' after the type", words[1], "a comma may be missing")
    try:
        return DataType.parse(text)
    except WindloomError as error:
        raise source.wrap(error, Span.of(words)) from None


def _without_constraints(tokens: Sequence[Token], source: SourceText) -> Sequence[Token]:
    """Return the tokens without NOT NULL and COMMENT, which may come from a table definition and mean nothing here."""
    for index, token in enumerate(tokens):
        rest = tokens[index:]
        if is_word(token, "COMMENT") and len(rest) == 2 and rest[1].token_type is TokenType.STRING:
            return _without_constraints(tokens[:index], source)
        if is_word(token, "NOT") and len(rest) == 2 and is_word(rest[1], "NULL"):
            return tokens[:index]
    return tokens


def _options(tokens: Sequence[Token], source: SourceText) -> _Options:
    options: _Options = {}
    start = 0
    while start < len(tokens):
        word = tokens[start]
        if not is_word(word, *_OPTIONS):
            hint = f"after the columns come {', '.join(_OPTIONS)}, in any order"
            raise source.error(f"cannot read '{source.raw(word)}' here", word, hint)
        stop = start + 2  # the first token after the word is its value even if it is spelled like an option
        while stop < len(tokens) and not is_word(tokens[stop], *_OPTIONS):
            stop += 1
        name = word.text.upper()
        if name in options:
            raise source.error(f"{name} is given twice", word, "give it once")
        if start + 1 >= len(tokens):
            raise source.error(f"a value is missing after {name}", source_end(tokens), _EXAMPLE)
        options[name] = tokens[start + 1 : stop]
        start = stop
    return options


def _time_column(tokens: Sequence[Token], columns: dict[str, DataType], source: SourceText) -> str:
    token = tokens[0]
    if len(tokens) > 1:
        raise source.error(f"cannot read '{source.raw(tokens[1])}' after TIME {token.text}", tokens[1], _EXAMPLE)
    column = next((other for other in columns if other.lower() == token.text.lower()), None)
    if column is None:
        raise source.error(f"unknown column '{source.raw(token)}'", token, near_names(token.text, list(columns)))
    kind = columns[column]
    if kind.kind not in (*_TIME_KINDS, TypeKind.INTEGER):
        hint = "use a timestamp, a date, a string that Spark can cast to a timestamp, or an integer with UNIT"
        raise source.error(f"column '{column}' of type {kind} cannot be the event time", token, hint)
    return column


def _unit(time: str, kind: DataType, options: _Options, source: SourceText) -> str | None:
    tokens = options.get("UNIT")
    units = ", ".join(INTEGER_UNITS)
    if tokens is None:
        if kind.kind is TypeKind.INTEGER:
            at = Span.of(options["TIME"])
            raise source.error(f"the UNIT of the integer column '{time}' is missing", at, f"add UNIT, one of {units}")
        return None
    if kind.kind is not TypeKind.INTEGER:
        raise source.error(f"UNIT is for integer time columns, and '{time}' is a {kind}", Span.of(tokens), "remove it")
    for unit, ticks in INTEGER_UNITS.items():
        try:
            if len(tokens) == 1 and unit_ticks(tokens[0].text) == ticks:
                return unit
        except WindloomError:
            break
    raise source.error(f"unknown unit '{source.raw(tokens[0])}'", Span.of(tokens), f"use one of {units}")


_RELATION_EXAMPLE = "for example CREATE RELATION person (id BIGINT, city STRING);"


def read_relation(tokens: Sequence[Token], name: int, source: SourceText) -> Relation:
    """Return the relation declared by the tokens of one statement; the token at `name` is its name."""
    columns, stop = _columns(tokens, name, "relation", _RELATION_EXAMPLE, source)
    if stop + 1 < len(tokens):
        token = tokens[stop + 1]
        if is_word(token, *_OPTIONS):
            hint = "remove it, or write CREATE STREAM if its rows are events with a time"
            raise source.error(f"{token.text.upper()} is for streams: a relation has no time", token, hint)
        hint = "nothing follows the columns; NONRETROACTIVE stands before RELATION"
        raise source.error(f"cannot read '{source.raw(token)}' here", token, hint)
    return Relation(tokens[name].text, columns, is_retroactive=not is_word(tokens[1], "NONRETROACTIVE"))
