"""Turns text into tokens, and gives every error of the language its line, column and caret."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from windloom.errors import QueryError, WindloomError

SPARK = Spark()

_OPENING = {TokenType.L_PAREN: ")", TokenType.L_BRACKET: "]", TokenType.L_BRACE: "}"}
_CLOSING = {TokenType.R_PAREN: ")", TokenType.R_BRACKET: "]", TokenType.R_BRACE: "}"}
#: The brackets as collections.
OPEN, CLOSE = tuple(_OPENING), tuple(_CLOSING)

#: Tokens whose text is a value, never a word of the language.
_LITERAL_WORDS = ("STRING", "RAW_STRING", "NATIONAL_STRING", "HEX_STRING", "NUMBER")
LITERALS = tuple(TokenType[word] for word in _LITERAL_WORDS)

#: The longest source line that is shown completely; of longer ones, only the part around the caret is.
_SHOWN_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open piece of the source text."""

    start: int
    end: int

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Span:
        return cls(tokens[0].start, tokens[-1].end + 1)


@dataclass(frozen=True, slots=True)
class SourceText:
    """The whole text that a user wrote, and its name in errors (`query 'avg_1h'`, `catalog 'demo.cql'`)."""

    text: str
    subject: str
    file: str | None = None

    def about(self, subject: str) -> SourceText:
        return replace(self, subject=subject)

    def raw(self, token: Token) -> str:
        """Return the token as the user spelled it; sqlglot's own text is already unescaped and upper-cased."""
        return self.text[token.start : token.end + 1]

    def error(self, message: str, at: Span | Token, hint: str = "", fact: str = "") -> QueryError:
        span = at if isinstance(at, Span) else Span(at.start, at.end + 1)
        line_start = self.text.rfind("\n", 0, span.start) + 1
        line, column = self.text.count("\n", 0, span.start) + 1, span.start - line_start + 1
        where = f"line {line}, column {column}" + (f" of {self.file}" if self.file else "")
        detail = "\n".join(filter(None, [where, *self._caret_lines(span), fact]))
        return QueryError(f"{self.subject}: {message}", detail, hint)

    def wrap(self, error: WindloomError, at: Span | Token) -> QueryError:
        """Return an error of the model, which does not know the text, with its place in the text."""
        return self.error(error.message, at, error.hint, fact=error.detail)

    def _caret_lines(self, span: Span) -> tuple[str, ...]:
        line_start = self.text.rfind("\n", 0, span.start) + 1
        line_end = self.text.find("\n", span.start)
        line = self.text[line_start : line_end if line_end >= 0 else len(self.text)].rstrip()
        if not line:
            return ()
        column = min(span.start - line_start, len(line))
        width = max(1, min(span.end - span.start, len(line) - column))
        if len(line) > _SHOWN_CHARACTERS:
            cut = max(0, column - _SHOWN_CHARACTERS // 2)
            line = ("…" if cut else "") + line[cut : cut + _SHOWN_CHARACTERS] + "…"
            column = column - cut + (1 if cut else 0)
            width = min(width, len(line) - column)
        # Tabs are kept, so that the caret stands under its token however wide a tab is shown.
        padding = "".join("\t" if character == "\t" else " " for character in line[:column])
        return f"  {line}", f"  {padding}{'^' * width}"


def tokenize(source: SourceText) -> list[Token]:
    """Return the tokens of the text without its comments, all brackets balanced."""
    try:
        tokens = SPARK.tokenize(source.text)
    except SqlglotError as error:
        raise _unreadable(source, str(error.__cause__ or error)) from None
    for token in tokens:
        # sqlglot reads settings for the syntax tree out of comments; ours have no meaning.
        if token.comments:
            token.comments = []
    tokens = [token for token in tokens if token.token_type is not TokenType.HINT]
    # sqlglot reads an unclosed comment to the end of the text, so a whole catalog could vanish in it.
    depth, opened = 0, 0
    tail = tokens[-1].end + 1 if tokens else 0
    for match in re.finditer(r"--[^\n]*|/\*|\*/|\{#|#\}", source.text[tail:]):
        mark = match.group()
        if mark in ("/*", "{#"):
            opened = tail + match.start() if depth == 0 else opened
            depth += 1
        elif mark in ("*/", "#}"):
            depth -= 1
    if depth > 0:
        raise _unclosed_comment(source, opened)
    _check_balanced(source, tokens)
    return tokens


def _unreadable(source: SourceText, reason: str) -> QueryError:
    match = re.search(r"Missing (.+) from \d+:(\d+)", reason)
    opened = source.text.rfind("/*")
    if match is None and opened > source.text.rfind("*/"):
        return _unclosed_comment(source, opened)
    if match is None:
        end = len(source.text.rstrip())
        return source.error("the text cannot be read", Span(end, end + 1), "check quotes and special characters")
    quote, start = match.group(1), min(int(match.group(2)), max(len(source.text) - 1, 0))
    # The reported place is inside the text; the quote opens at or just before it.
    opening = source.text.rfind(quote, 0, start + 1)
    opening = start if opening < 0 else opening
    return source.error(f"the quote {quote} is never closed", Span(opening, opening + 1), f"close it with {quote}")


def _unclosed_comment(source: SourceText, opened: int) -> QueryError:
    return source.error("the comment is never closed", Span(opened, opened + 2), "close it with */")


def _check_balanced(source: SourceText, tokens: Sequence[Token]) -> None:
    """Report unbalanced brackets where they open; a parser would report them anywhere."""
    pending: list[Token] = []
    for token in tokens:
        if token.token_type in _OPENING:
            pending.append(token)
        elif token.token_type in _CLOSING:
            if not pending or _OPENING[pending[-1].token_type] != token.text:
                expected = f"'{pending[-1].text}' is still open" if pending else "nothing is open"
                raise source.error(f"unexpected '{token.text}'", token, f"remove it, or check the brackets: {expected}")
            pending.pop()
        elif token.token_type is TokenType.SEMICOLON and pending:
            break
    if pending:
        token = pending[-1]
        raise source.error(f"'{token.text}' is never closed", token, f"close it with '{_OPENING[token.token_type]}'")


def is_name(token: Token) -> bool:
    """Return whether the token can name a stream, a query or a column: words can, and anything in backticks."""
    if token.token_type is TokenType.IDENTIFIER:
        return bool(token.text)
    return token.token_type not in LITERALS and re.fullmatch(r"\w+", token.text) is not None


#: Words of clauses that sqlglot knows only together with the next one (ORDER BY).
_PAIRED = ("CLUSTER", "DISTRIBUTE", "GROUP", "GROUPING", "ORDER", "PARTITION", "SORT", "WITHIN")


@cache
def spelled(name: str) -> str:
    """Return the name of a column or stream as a query can spell it: in backticks, unless it is a plain word.

    >>> spelled("price"), spelled("order"), spelled("sum(price)")
    ('price', '`order`', '`sum(price)`')
    """
    if (
        name.isidentifier()
        and name.isascii()
        and name.upper() not in _PAIRED
        and [token.token_type for token in SPARK.tokenize(name)] == [TokenType.VAR]
    ):
        return name
    return "`" + name.replace("`", "``") + "`"


def is_word(token: Token, *words: str) -> bool:
    """Return whether the token is one of these (upper-case) words, unquoted."""
    return token.token_type not in (*LITERALS, TokenType.IDENTIFIER) and token.text.upper() in words


def source_end(tokens: Sequence[Token]) -> Span:
    """Return the place just after the last token."""
    return Span(tokens[-1].end + 1, tokens[-1].end + 2)


def without_semicolons(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens without semicolons at their end."""
    stop = len(tokens)
    while stop and tokens[stop - 1].token_type is TokenType.SEMICOLON:
        stop -= 1
    return tokens[:stop]


def replaced(token: Token, kind: TokenType, text: str) -> Token:
    """Return another token at the place of this one."""
    return Token(kind, text, line=token.line, col=token.col, start=token.start, end=token.end)


def closing(tokens: Sequence[Token], index: int) -> int:
    """Return the place where the bracket that opens here is closed."""
    depth = 0
    for stop in range(index, len(tokens)):
        depth += (tokens[stop].token_type in _OPENING) - (tokens[stop].token_type in _CLOSING)
        if depth == 0:
            return stop
    raise AssertionError("the scanner lets only balanced brackets pass")


_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_TYPED = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
#: Spark reads these words in typed literals as the time at which the query runs.
_CLOCK_WORDS = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)

_UNIT_WORDS = "YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND NANOSECOND"
#: Units of time as Spark SQL spells them.
UNITS = {word for unit in _UNIT_WORDS.split() for word in (unit, unit + "S")}


def fold_literals(tokens: Sequence[Token], source: SourceText) -> list[Token]:
    """Return the tokens with strings, numbers, typed literals and intervals folded into one opaque token each.

    So each literal reaches Spark exactly as the user wrote it. sqlglot would unescape strings, turn `10L` into a cast
    and split intervals, which could change the meaning: `-128Y` is a tinyint, but the cast of 128 overflows.
    """
    folded: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        kind = token.token_type
        literal: tuple[int, TokenType, str] | None = None
        if kind in _STRINGS:
            stop, text = _string(tokens, index, source)
            literal = stop, TokenType.STRING, text
        elif kind is TokenType.NUMBER:
            stop = index + 1
            while stop < len(tokens) and tokens[stop].start == tokens[index].start:
                stop += 1
            literal = stop, kind, source.raw(token).upper()
        elif kind is TokenType.HEX_STRING:
            text = source.raw(token)
            if text[0] == "0":
                raise source.error(
                    f"'{text}' is not a number in Spark SQL", token, f"write {int(text, 16)} or X'{text[2:]}'"
                )
            literal = index + 1, TokenType.NUMBER, text.upper()
        elif not (folded and folded[-1].token_type is TokenType.DOT):
            literal = _literal_after_word(tokens, index, source)
        if literal is None:
            folded.append(token)
            index += 1
        else:
            stop, kind, text = literal
            end = tokens[stop - 1].end
            folded.append(Token(kind, text, line=token.line, col=token.col, start=token.start, end=end))
            index = stop
    return folded


def _literal_after_word(tokens: Sequence[Token], index: int, source: SourceText) -> tuple[int, TokenType, str] | None:
    """Return a literal that begins with a word: DATE '…', INTERVAL ….  Any token type but STRING would do for it."""
    token = tokens[index]
    if token.token_type is TokenType.INTERVAL:
        end, text = _interval_end(tokens, index), ""
        if end is None:
            return None
        for part in tokens[index:end]:
            raw = source.raw(part)
            text += "" if not text or text[-1] in "+-" else " "
            text += raw if part.token_type is TokenType.STRING else raw.upper()
        return end, TokenType.NUMBER, text
    if index + 1 < len(tokens) and tokens[index + 1].token_type is TokenType.STRING and is_word(token, *_TYPED):
        word, value = tokens[index], tokens[index + 1]
        if _CLOCK_WORDS.match(value.text):
            hint = "results must not depend on the clock; write the date itself"
            raise source.error(f"{word.text.upper()} '{value.text}' depends on when the query runs", value, hint)
        stop, text = _string(tokens, index + 1, source)
        return stop, TokenType.NUMBER, f"{word.text.upper()} {text}"
    return None


def _string(tokens: Sequence[Token], index: int, source: SourceText) -> tuple[int, str]:
    """Read adjacent strings, which Spark takes as one literal: `'it''s'` (escaped quote), `'a' 'b'` (concatenated)."""
    stop = index
    text = ""
    while stop < len(tokens) and tokens[stop].token_type in _STRINGS:
        touching = stop > index and tokens[stop - 1].end + 1 == tokens[stop].start
        text += ("" if touching or stop == index else " ") + source.raw(tokens[stop])
        stop += 1
    inner = text[1:-1]
    if stop == index + 1 and text[0] == '"' and not re.search(r"[\\'\"]", inner):
        text = f"'{inner}'"
    return stop, text


def _interval_end(tokens: Sequence[Token], index: int) -> int | None:
    """Return the place after `INTERVAL value unit [value unit]…`, `INTERVAL value unit TO unit`, `INTERVAL 'text'`."""
    stop = _value_end(tokens, index + 1)
    if stop is None:
        return None
    if not _is_unit(tokens, stop):
        return stop if tokens[stop - 1].token_type is TokenType.STRING else None
    stop += 1
    if stop + 1 < len(tokens) and is_word(tokens[stop], "TO") and _is_unit(tokens, stop + 1):
        return stop + 2
    while (end := _value_end(tokens, stop)) is not None and _is_unit(tokens, end):
        stop = end + 1
    return stop


def _value_end(tokens: Sequence[Token], index: int) -> int | None:
    if index < len(tokens) and tokens[index].token_type in (TokenType.DASH, TokenType.PLUS):
        index += 1
    if index < len(tokens) and tokens[index].token_type in (TokenType.NUMBER, TokenType.STRING):
        return index + 1
    return None


def _is_unit(tokens: Sequence[Token], index: int) -> bool:
    return index < len(tokens) and is_word(tokens[index], *UNITS)
