"""Durations as they are written, and brackets cut at their words: `RANGE 1 hour SLIDE 1 minute`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType, exp

from windloom.errors import WindloomError
from windloom.language.tokens import Source, Span, is_word
from windloom.language.windows.syntax import Bracket
from windloom.model import parse_duration
from windloom.model.windows import KINDS

if TYPE_CHECKING:
    from windloom.language.statement import Statement

_EXAMPLES = [example for kind in KINDS.values() for example in (kind.example, *kind.further_examples)]
#: For hints: how windows of every kind are written.
FORMS = f"write {', '.join(_EXAMPLES[:-1])} or {_EXAMPLES[-1]}"

#: The words that lengths follow in windows of time; `WINDOW` is another word for `RANGE`.
LENGTHS = ("RANGE", "WINDOW", "TUMBLE", "SLIDE", "OFFSET")


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration as written, and its place."""

    text: str
    at: Span

    def ticks(self, source: Source) -> int:
        with blaming(self.at, source):
            return parse_duration(self.text)


@contextmanager
def blaming(at: Span, source: Source) -> Iterator[None]:
    """Show the place of what was written in errors that a window raises about it."""
    try:
        yield
    except WindloomError as error:
        raise source.wrap(error, at) from None


def read_durations(
    tokens: Sequence[Token], bracket: Bracket, words: Collection[str] = LENGTHS, example: str = "10 minutes"
) -> dict[str, Duration]:
    """Return the duration after each of the words, by word."""
    written = split_parts(tokens, words, bracket, "a duration is missing", f"for example {example}")
    return {name: read_duration(each, bracket.source) for name, each in written.items()}


def split_parts(
    tokens: Sequence[Token], words: Collection[str], bracket: Bracket, missing: str, example: str
) -> dict[str, Sequence[Token]]:
    """Return the tokens that follow each of the words, by word."""
    source = bracket.source
    if not tokens:
        raise source.error("the window is empty", bracket.at, FORMS)
    if not is_word(tokens[0], *words):
        raise source.error(f"a window cannot begin with '{source.raw(tokens[0])}'", tokens[0], FORMS)
    parts: dict[str, Sequence[Token]] = {}
    start = 0
    while start < len(tokens):
        word = tokens[start]
        name = "RANGE" if is_word(word, "WINDOW") else word.text.upper()
        stop = start + 1
        while stop < len(tokens) and not is_word(tokens[stop], *words):
            stop += 1
        if name in parts:
            raise source.error(f"{name} is given twice", word, FORMS)
        if stop == start + 1:
            raise source.error(f"{missing} after {word.text.upper()}", word, example)
        parts[name] = tokens[start + 1 : stop]
        start = stop
    return parts


def read_duration(tokens: Sequence[Token], source: Source) -> Duration:
    """Return the duration in these tokens: `1 hour 30 minutes`, `'10 minutes'`, `-5 s`."""
    text = ""
    last_start = -1
    for token in tokens:
        if token.start == last_start:
            continue  # sqlglot reads the s of `10s` as a type suffix: three tokens at one place
        last_start = token.start
        piece = token.text if token.token_type is TokenType.STRING else source.raw(token)
        text += piece if not text or text[-1] in "+-" else f" {piece}"
    return Duration(text, Span.of(tokens))


def duration_of(node: exp.Expr, statement: Statement) -> Duration:
    """Return the duration that an argument of a function is."""
    if not isinstance(node, exp.Literal) or not (node.is_string or node.this.startswith("INTERVAL ")):
        raise statement.error("a duration is expected here", node, "for example '10 minutes'")
    return Duration(str(node.this).replace("'", ""), statement.span(node))
