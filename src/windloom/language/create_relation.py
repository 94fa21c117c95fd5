"""`CREATE [NONRETROACTIVE] RELATION name (column type, …)`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token

from windloom.language.create_stream import read_columns
from windloom.language.tokens import Source, is_word
from windloom.model import Relation

_EXAMPLE = "for example CREATE RELATION person (id BIGINT, city STRING);"
_OF_STREAMS = ("TIME", "DELAY", "UNIT", "RATE")


def read_relation(tokens: Sequence[Token], name: int, source: Source) -> Relation:
    """Return the relation declared by the tokens of one statement; the token at `name` is its name."""
    columns, stop = read_columns(tokens, name, "relation", _EXAMPLE, source)
    if stop + 1 < len(tokens):
        token = tokens[stop + 1]
        if is_word(token, *_OF_STREAMS):
            hint = "remove it, or write CREATE STREAM if its rows are events with a time"
            raise source.error(f"{token.text.upper()} is for streams: a relation has no time", token, hint)
        hint = "nothing follows the columns; NONRETROACTIVE stands before RELATION"
        raise source.error(f"cannot read '{source.raw(token)}' here", token, hint)
    return Relation(tokens[name].text, columns, is_retroactive=not is_word(tokens[1], "NONRETROACTIVE"))
