"""The syntax of every kind of window; a new kind is one file and one line here."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token

from windloom.language.sql.tokens import is_word
from windloom.language.windows.cumulate import CumulateSyntax
from windloom.language.windows.landmark import LandmarkSyntax
from windloom.language.windows.rows import RowsSyntax
from windloom.language.windows.session import SessionSyntax
from windloom.language.windows.syntax import Syntax
from windloom.language.windows.time import TimeSyntax

_TIME = TimeSyntax()

SYNTAXES: dict[str, Syntax] = {
    syntax.window.kind: syntax for syntax in (_TIME, LandmarkSyntax(), CumulateSyntax(), RowsSyntax(), SessionSyntax())
}


def syntax_of(tokens: Sequence[Token]) -> Syntax:
    """Return the syntax whose words a bracket begins with; windows of time refuse what no kind knows."""
    known = (syntax for syntax in SYNTAXES.values() if tokens and is_word(tokens[0], *syntax.words))
    return next(known, _TIME)
