"""Makes every literal one opaque token, so that it reaches Spark exactly as the user wrote it.

sqlglot would unescape strings, turn `10L` into a cast and split intervals. Each of these could change the meaning
(`-128Y` is a tinyint, but the cast of 128 overflows), so literals are not interpreted here at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import Token, TokenType

from windloom.language.tokens import Source, is_word

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_TYPED = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
#: Spark reads these words in typed literals as the time at which the query runs.
_CLOCK_WORDS = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)

#: Units of time as Spark SQL spells them.
UNITS = {
    word
    for unit in (
        "YEAR",
        "QUARTER",
        "MONTH",
        "WEEK",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MILLISECOND",
        "MICROSECOND",
        "NANOSECOND",
    )
    for word in (unit, unit + "S")
}


def fold_literals(tokens: Sequence[Token], source: Source) -> list[Token]:
    """Return the tokens with strings, numbers, typed literals and intervals folded into one token each."""
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
            literal = _worded(tokens, index, source)
        if literal is None:
            folded.append(token)
            index += 1
        else:
            stop, kind, text = literal
            end = tokens[stop - 1].end
            folded.append(Token(kind, text, line=token.line, col=token.col, start=token.start, end=end))
            index = stop
    return folded


def _worded(tokens: Sequence[Token], index: int, source: Source) -> tuple[int, TokenType, str] | None:
    """Return a literal that begins with a word: DATE '…', INTERVAL ….  Any token type but STRING would do for it."""
    token = tokens[index]
    if token.token_type is TokenType.INTERVAL:
        end = _interval_end(tokens, index)
        return None if end is None else (end, TokenType.NUMBER, _interval_text(tokens[index:end], source))
    if index + 1 < len(tokens) and tokens[index + 1].token_type is TokenType.STRING and is_word(token, *_TYPED):
        word, value = tokens[index], tokens[index + 1]
        if _CLOCK_WORDS.match(value.text):
            raise source.error(
                f"{word.text.upper()} '{value.text}' depends on when the query runs",
                value,
                "results must not depend on the clock; write the date itself",
            )
        stop, text = _string(tokens, index + 1, source)
        stop, text = stop, f"{word.text.upper()} {text}"
        return stop, TokenType.NUMBER, text
    return None


def _string(tokens: Sequence[Token], index: int, source: Source) -> tuple[int, str]:
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


def _interval_text(tokens: Sequence[Token], source: Source) -> str:
    text = ""
    for token in tokens:
        glued = not text or text[-1] in "+-"
        raw = source.raw(token)
        text += ("" if glued else " ") + (raw if token.token_type is TokenType.STRING else raw.upper())
    return text
