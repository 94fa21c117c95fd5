"""Session windows: `[SESSION GAP 5 minutes]`, or `session_window(ts, '5 minutes')` as Spark writes them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, exp

from windloom.errors import WindloomError
from windloom.language.bracket import Duration, read_duration, split_parts
from windloom.language.statement import Statement
from windloom.language.tokens import Source, Span, is_word
from windloom.model import SessionWindow, Window

_FORM = "write [SESSION GAP 5 minutes]"
_OTHERS = ("RANGE", "WINDOW", "TUMBLE", "SLIDE", "OFFSET", "ROWS")


def is_session_bracket(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and is_word(tokens[0], "SESSION")


def parse_session_bracket(tokens: Sequence[Token], whole: Span, source: Source) -> Window:
    """The window in the tokens between `[` and `]`."""
    rest = tokens[1:]
    if not any(is_word(token, "GAP") for token in rest):
        raise source.error("the session window has no GAP", whole, f"say after which pause a session ends: {_FORM}")
    words = ("GAP", *_OTHERS)
    if not is_word(rest[0], *words):
        raise source.error(f"cannot read '{source.raw(rest[0])}' after SESSION", rest[0], _FORM)
    parts = split_parts(rest, words, whole, source, "a duration is missing", "for example 5 minutes")
    for name, written in parts.items():
        if name != "GAP":
            hint = f"its windows begin and end with the tuples of a group: {_FORM}"
            raise source.error(f"a session window has no {name}", Span.of(written), hint)
    return make_session(read_duration(parts["GAP"], source), source)


def make_session(gap: Duration, source: Source) -> Window:
    """A checked window."""
    ticks = gap.ticks(source)
    try:
        return SessionWindow(ticks)
    except WindloomError as error:
        raise source.wrap(error, gap.at) from None


def check_session_gap(node: exp.Expr, statement: Statement) -> None:
    """Refuses a gap that is computed from each tuple, which Spark would accept."""
    if not isinstance(node, exp.Literal):
        raise statement.error(
            "the gap of session_window() must be a duration, the same for all tuples",
            node,
            "write a constant, for example '5 minutes', and one query for each gap",
        )
