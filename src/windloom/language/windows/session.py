"""Session windows: `[SESSION GAP 5 minutes]`, or `session_window(ts, '5 minutes')` as Spark writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from windloom.language.sql.tokens import SourceText, Span, is_word
from windloom.language.windows.syntax import (
    LENGTHS,
    Arguments,
    Bracket,
    Duration,
    Syntax,
    blaming,
    duration_of,
    read_duration,
    split_parts,
)
from windloom.model import SessionWindow, Window

if TYPE_CHECKING:
    from windloom.language.sql.statement import Statement

_FORM = f"write {SessionWindow.example}"


class SessionSyntax(Syntax):
    window = SessionWindow
    words = ("SESSION",)
    arguments = Arguments(1, "one duration", "'5 minutes'")

    def read(self, bracket: Bracket) -> Window:
        rest, source = bracket.tokens[1:], bracket.source
        if not any(is_word(token, "GAP") for token in rest):
            hint = f"say after which pause a session ends: {_FORM}"
            raise source.error("the session window has no GAP", bracket.at, hint)
        words = ("GAP", *LENGTHS, "ROWS")
        if not is_word(rest[0], *words):
            raise source.error(f"cannot read '{source.raw(rest[0])}' after SESSION", rest[0], _FORM)
        parts = split_parts(rest, words, bracket, "a duration is missing", "for example 5 minutes")
        for name, written in parts.items():
            if name != "GAP":
                hint = f"its windows begin and end with the tuples of a group: {_FORM}"
                raise source.error(f"a session window has no {name}", Span.of(written), hint)
        return _checked(read_duration(parts["GAP"], source), source)

    def read_call(self, arguments: Sequence[exp.Expr], statement: Statement) -> Window:
        """Return the window; a gap that is computed from each tuple is refused, although Spark accepts it."""
        [gap] = arguments
        if not isinstance(gap, exp.Literal):
            hint = "write a constant, for example '5 minutes', and one query for each gap"
            raise statement.error("the gap of session_window() must be a duration, the same for all tuples", gap, hint)
        return _checked(duration_of(gap, statement), statement.source)


def _checked(gap: Duration, source: SourceText) -> Window:
    ticks = gap.ticks(source)
    with blaming(gap.at, source):
        return SessionWindow(ticks)
