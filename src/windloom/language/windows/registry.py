"""The syntax of every kind of window, by the name of the kind; found by listing this folder."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token

from windloom.language.sql.tokens import is_word
from windloom.language.windows.syntax import Syntax
from windloom.model.windows import TimeWindow
from windloom.model.windows.registry import entries

SYNTAXES: dict[str, Syntax] = {
    syntax_class.window.kind: syntax_class()
    for syntax_class in entries(__name__, Syntax)  # type: ignore[type-abstract]
}


def syntax_of(tokens: Sequence[Token]) -> Syntax:
    """Return the syntax whose words a bracket begins with; windows of time refuse what no kind knows."""
    known = (syntax for syntax in SYNTAXES.values() if tokens and is_word(tokens[0], *syntax.words))
    return next(known, SYNTAXES[TimeWindow.kind])
