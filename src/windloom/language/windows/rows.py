"""Windows of rows: `[ROWS 1000 SLIDE 100]`, `[PARTITION BY symbol ROWS 1000 SLIDE 100 OFFSET 10]`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import Token, TokenType

from windloom.errors import near_names
from windloom.language.sql.tokens import SourceText, Span, is_name, is_word
from windloom.language.windows.syntax import Bracket, Syntax, blaming, split_parts
from windloom.model import Expression, RowsWindow, Window

_NUMBERS = ("ROWS", "SLIDE", "OFFSET")
_FORM = "write [ROWS 1000 SLIDE 100], or [PARTITION BY key ROWS 1000 SLIDE 100]"


class RowsSyntax(Syntax):
    window = RowsWindow
    words = ("ROWS", "PARTITION BY", "PARTITION")

    def read(self, bracket: Bracket) -> Window:
        """Return the window; partitions are columns of the bracket's stream."""
        tokens, source, stream = bracket.tokens, bracket.source, bracket.stream
        assert stream is not None, "windows of rows are not joined"
        keys = []
        for token in _partition_tokens(tokens, source):
            column = stream.find_column(token.text)
            if column is None:
                hint = near_names(token.text, list(stream.columns))
                raise source.error(f"unknown column '{token.text}'", token, hint)
            keys.append(Expression.of_column(column))
        start = next((index for index, token in enumerate(tokens) if is_word(token, "ROWS")), None)
        if start is None:
            raise source.error("the window has no ROWS", bracket.at, _FORM)
        example = "for example ROWS 1000 SLIDE 100"
        parts = split_parts(tokens[start:], _NUMBERS, bracket, "a number is missing", example)
        count = _number(parts["ROWS"], source)
        if "SLIDE" not in parts:
            hint = f"say how often it is reported: [ROWS {count} SLIDE 1] at every tuple; SLIDE {count} tumbles"
            raise source.error("the window has ROWS but no SLIDE", bracket.at, hint)
        slide = _number(parts["SLIDE"], source)
        offset = _number(parts["OFFSET"], source) if "OFFSET" in parts else 0
        with blaming(Span.of(parts["ROWS"]), source):
            RowsWindow(count, 1)
        with blaming(Span.of(parts["SLIDE"]), source):
            return RowsWindow(count, slide, offset, tuple(keys))

    def check(self, bracket: Bracket, grouped: Collection[str | None]) -> None:
        """Refuse a window that counts tuples by key in a query that is not grouped by that key."""
        assert bracket.stream is not None
        for token in _partition_tokens(bracket.tokens, bracket.source):
            column = bracket.stream.find_column(token.text)
            if column not in grouped:
                before = ", ".join("…" if name is None else Expression.of_column(name).sql for name in grouped)
                message = f"PARTITION BY '{column}' counts tuples by a column that is not grouped by"
                hint = f"add it: GROUP BY {before}{', ' if before else ''}{bracket.source.raw(token)}"
                raise bracket.source.error(message, token, hint)


def _partition_tokens(tokens: Sequence[Token], source: SourceText) -> list[Token]:
    """Return the names after PARTITION BY, up to ROWS."""
    if not tokens or is_word(tokens[0], "ROWS"):
        return []
    if not is_word(tokens[0], "PARTITION BY"):
        raise source.error("BY is missing after PARTITION", tokens[0], _FORM)
    names: list[Token] = []
    is_name_expected = True
    for token in tokens[1:]:
        if is_word(token, *_NUMBERS):
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


def _number(tokens: Sequence[Token], source: SourceText) -> int:
    text = source.text[tokens[0].start : tokens[-1].end + 1]
    digits = text.replace(" ", "").removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        hint = "rows are counted in whole numbers, for example [ROWS 1000 SLIDE 100]"
        raise source.error(f"cannot read the number of rows '{' '.join(text.split())}'", Span.of(tokens), hint)
    return -int(digits) if "-" in text else int(digits)
