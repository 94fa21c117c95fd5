"""The options before the AS of a query: `WITHIN 30 seconds PRIORITY 2 AS SELECT …`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import Token, TokenType

from windloom.errors import WindloomError
from windloom.language.sql.tokens import SourceText, Span, is_word, source_end
from windloom.language.windows.syntax import read_duration
from windloom.model.clauses import Urgency

#: The words that introduce options.
HEADER_WORDS = ("WITHIN", "PRIORITY")
_FORM = "write WITHIN 30 seconds PRIORITY 2 AS SELECT …"


@dataclass(frozen=True, slots=True)
class Header:
    """The options of a query; `select` are the tokens after its AS."""

    select: Sequence[Token]
    urgency: Urgency = field(default_factory=Urgency)


def cut_header(tokens: Sequence[Token], source: SourceText) -> Header:
    """Return a query's options and its SELECT; without options, there is no AS."""
    if not tokens or not is_word(tokens[0], *HEADER_WORDS):
        return Header(tokens)
    options: dict[str, Sequence[Token]] = {}
    start = 0
    while start < len(tokens) and tokens[start].token_type is not TokenType.ALIAS:
        word = tokens[start]
        if not is_word(word, *HEADER_WORDS):
            raise source.error(f"cannot read '{source.raw(word)}' here", word, f"before AS, {_FORM}")
        stop = start + 1
        while stop < len(tokens) and not is_word(tokens[stop], "AS", *HEADER_WORDS, "SELECT", "FROM"):
            stop += 1
        name = word.text.upper()
        if name in options:
            raise source.error(f"{name} is given twice", word, "give it once")
        if stop == start + 1:
            raise source.error(f"a value is missing after {name}", word, _FORM)
        options[name] = tokens[start + 1 : stop]
        start = stop
    if start == len(tokens) or start + 1 == len(tokens):
        missing = "AS is missing after its options" if start == len(tokens) else "the query is missing after AS"
        raise source.error(missing, source_end(tokens), _FORM)
    urgency = Urgency()
    if "WITHIN" in options:
        within = read_duration(options["WITHIN"], source)
        ticks = within.ticks(source)
        try:
            urgency = Urgency(ticks)
        except WindloomError as error:
            raise source.wrap(error, within.at) from None
    if "PRIORITY" in options:
        words = options["PRIORITY"]
        if len(words) != 1 or words[0].token_type is not TokenType.NUMBER or not words[0].text.isdecimal():
            hint = "1 is answered first, 9 last: PRIORITY 2"
            raise source.error("a PRIORITY is a whole number", Span.of(words), hint)
        try:
            urgency = replace(urgency, priority=int(words[0].text))
        except WindloomError as error:
            raise source.wrap(error, words[0]) from None
    return Header(tokens[start + 1 :], urgency)
