"""What the syntax of every kind of window defines, and how durations are read.

No other code of the language asks for the kind of a window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import Token, TokenType, exp

from windloom.errors import WindloomError
from windloom.language.sql.syntax import span_of
from windloom.language.sql.tokens import SourceText, Span, is_word
from windloom.model import Stream, Window, parse_duration
from windloom.model.windows import KINDS

if TYPE_CHECKING:
    from windloom.language.sql.statement import Statement


@dataclass(frozen=True, slots=True)
class SlideCadence:
    """How often windows end, and where, modulo that time. All sources of one query have the same pace."""

    slide_ticks: int
    end_ticks: int

    def offset(self, range_ticks: int) -> int:
        """Return the offset with which windows of this range keep the pace."""
        return (self.end_ticks - range_ticks) % self.slide_ticks


@dataclass(frozen=True, slots=True)
class Bracket:
    """The tokens between `[` and `]`, and their place.

    `stream` is the one that the bracket follows, if the bracket may name columns. With a pace, a window that gives no
    slide keeps that pace.
    """

    tokens: Sequence[Token]
    at: Span
    source: SourceText
    stream: Stream | None = None
    pace: SlideCadence | None = None


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of Spark's function after the time column: their greatest number, in words, and as an example."""

    most: int
    text: str
    example: str


class Syntax(ABC):
    """How windows of one kind are written."""

    #: The kind.
    window: ClassVar[type[Window]]
    #: The words with which its bracket begins.
    words: ClassVar[tuple[str, ...]]
    #: What its function takes, if it has one (`Window.function`).
    arguments: ClassVar[Arguments | None] = None

    @abstractmethod
    def read(self, bracket: Bracket) -> Window:
        """Return the window in a bracket."""

    def check(self, bracket: Bracket, grouped: Collection[str | None]) -> None:
        """Refuse a bracket in a query that is not grouped by the columns that the bracket needs."""
        return

    def read_call(self, arguments: Sequence[exp.Expr], statement: Statement) -> Window:
        """Return the window of Spark's function, from the arguments after the time column; their number is checked."""
        raise NotImplementedError(f"{self.window.plural} have no function")


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

    def ticks(self, source: SourceText) -> int:
        with blaming(self.at, source):
            return parse_duration(self.text)


@contextmanager
def blaming(at: Span, source: SourceText) -> Iterator[None]:
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


def read_duration(tokens: Sequence[Token], source: SourceText) -> Duration:
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
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():  # as Spark reads a number
        return Duration(f"{node.this} microseconds", span_of(node, Span.of(statement.clause.rest[:1])))
    if not isinstance(node, exp.Literal) or not (node.is_string or node.this.startswith("INTERVAL ")):
        raise statement.error("a duration is expected here", node, "for example '10 minutes'")
    return Duration(str(node.this).replace("'", ""), span_of(node, Span.of(statement.clause.rest[:1])))
