"""Windows of rows in brackets: `[ROWS 1000 SLIDE 100]`, `[PARTITION BY symbol ROWS 1000 SLIDE 100 OFFSET 10]`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from windloom.errors import WindloomError, near_names
from windloom.language.bracket import split_parts
from windloom.language.tokens import Source, Span, is_name, is_word
from windloom.model import Expression, RowsWindow, Stream, Window

_PARTS = ("ROWS", "SLIDE", "OFFSET")
_FORM = "write [ROWS 1000 SLIDE 100], or [PARTITION BY key ROWS 1000 SLIDE 100]"


def is_row_bracket(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and is_word(tokens[0], "ROWS", "PARTITION BY", "PARTITION")


def parse_row_bracket(tokens: Sequence[Token], whole: Span, source: Source, stream: Stream) -> Window:
    """The window in the tokens between `[` and `]`; partitions are columns of the stream."""
    keys = [_column(token, source, stream) for token in partition_tokens(tokens, source)]
    start = next((place for place, token in enumerate(tokens) if is_word(token, "ROWS")), None)
    if start is None:
        raise source.error("the window has no ROWS", whole, _FORM)
    parts = split_parts(tokens[start:], _PARTS, whole, source, "a number is missing", "for example ROWS 1000 SLIDE 100")
    count = _number(parts["ROWS"], source)
    if "SLIDE" not in parts:
        hint = f"say how often it is reported: [ROWS {count} SLIDE 1] at every tuple; SLIDE {count} tumbles"
        raise source.error("the window has ROWS but no SLIDE", whole, hint)
    slide = _number(parts["SLIDE"], source)
    offset = _number(parts["OFFSET"], source) if "OFFSET" in parts else 0
    partition = tuple(Expression.of_column(key) for key in keys)
    try:
        RowsWindow(count, 1)
    except WindloomError as error:
        raise source.wrap(error, Span.of(parts["ROWS"])) from None
    try:
        return RowsWindow(count, slide, offset, partition)
    except WindloomError as error:
        raise source.wrap(error, Span.of(parts["SLIDE"])) from None


def partition_tokens(tokens: Sequence[Token], source: Source) -> list[Token]:
    """The names after PARTITION BY, up to ROWS."""
    if not tokens or is_word(tokens[0], "ROWS"):
        return []
    if not is_word(tokens[0], "PARTITION BY"):
        raise source.error("BY is missing after PARTITION", tokens[0], _FORM)
    names: list[Token] = []
    is_name_expected = True
    for token in tokens[1:]:
        if is_word(token, *_PARTS):
            break
        if is_name_expected != is_name(token) or (not is_name_expected and token.token_type is not TokenType.COMMA):
            hint = "give columns of the stream, as in [PARTITION BY symbol, venue ROWS 1000 SLIDE 100]"
            raise source.error(f"cannot read '{source.raw(token)}' in PARTITION BY", token, hint)
        if is_name_expected:
            names.append(token)
        is_name_expected = not is_name_expected
    if is_name_expected:
        raise source.error("a column is missing in PARTITION BY", tokens[0], _FORM)
    return names


def _column(token: Token, source: Source, stream: Stream) -> str:
    found = stream.find_column(token.text)
    if found is None:
        hint = near_names(token.text, list(stream.columns))
        raise source.error(f"unknown column '{token.text}'", token, hint)
    return found


def _number(tokens: Sequence[Token], source: Source) -> int:
    text = source.text[tokens[0].start : tokens[-1].end + 1]
    digits = text.replace(" ", "").removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        hint = "rows are counted in whole numbers, for example [ROWS 1000 SLIDE 100]"
        raise source.error(f"cannot read the number of rows '{' '.join(text.split())}'", Span.of(tokens), hint)
    return -int(digits) if "-" in text else int(digits)
