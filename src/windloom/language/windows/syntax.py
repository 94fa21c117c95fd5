"""The definitions that the syntax of every kind of window makes; no other code of the language asks for the kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import Token, exp

from windloom.language.tokens import Source, Span
from windloom.model import Stream, Window

if TYPE_CHECKING:
    from windloom.language.statement import Statement


@dataclass(frozen=True, slots=True)
class Pace:
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
    source: Source
    stream: Stream | None = None
    pace: Pace | None = None


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
