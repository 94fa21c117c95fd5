"""Windows as table functions in FROM, read as our brackets.

Flink writes `TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES))`, RisingWave and
Materialize `hop(bids, ts, INTERVAL '1 minute', INTERVAL '5 minutes')`: in our brackets
`bids [RANGE 5 minutes SLIDE 1 minute]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from windloom.language.sql.tokens import CLOSE, OPEN, SourceText, closing, is_name, is_word, replaced


@dataclass(frozen=True, slots=True)
class _Form:
    """A table function: what its durations are, in the order in which they stand, and an example."""

    durations: tuple[str, ...]
    example: str
    needed: int


_FORMS = {
    "TUMBLE": _Form(("SIZE", "OFFSET"), "TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' MINUTES)", 1),
    "HOP": _Form(
        ("SLIDE", "SIZE", "OFFSET"), "HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES)", 2
    ),
    "CUMULATE": _Form(
        ("STEP", "SIZE", "OFFSET"), "CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)", 2
    ),
    "SESSION": _Form(("GAP",), "SESSION(TABLE bids PARTITION BY bidder, DESCRIPTOR(ts), INTERVAL '5' MINUTES)", 1),
}
#: The words of our brackets, before the durations that they take.
_BRACKETS = {
    "TUMBLE": (("TUMBLE", "SIZE"), ("OFFSET", "OFFSET")),
    "HOP": (("RANGE", "SIZE"), ("SLIDE", "SLIDE"), ("OFFSET", "OFFSET")),
    "CUMULATE": (("CUMULATE", "SIZE"), ("SLIDE", "STEP"), ("OFFSET", "OFFSET")),
    "SESSION": (("SESSION", ""), ("GAP", "GAP")),
}


@dataclass(frozen=True, slots=True)
class CalledWindow:
    """A window that a table function makes: its stream, its time column, our bracket, and the keys of its sessions."""

    word: Token
    stream: Token
    time: Token
    bracket: tuple[Token, ...]
    keys: tuple[Token, ...] = ()

    @property
    def is_session(self) -> bool:
        return is_word(self.word, "SESSION")

    @property
    def is_cumulative(self) -> bool:
        return is_word(self.word, "CUMULATE")


def read_table_function(tokens: Sequence[Token], index: int, source: SourceText) -> tuple[CalledWindow, int] | None:
    """Return the window that a table function makes here, and the place after it; None if there is none."""
    if index + 1 >= len(tokens) or tokens[index + 1].token_type is not TokenType.L_PAREN:
        return None
    stop = closing(tokens, index + 1)
    if tokens[index].token_type is TokenType.TABLE:
        found = read_table_function(tokens[:stop], index + 2, source)
        if found is not None and found[1] != stop:
            raise source.error("cannot read the table function", tokens[found[1]], f"write {_FORMS['TUMBLE'].example}")
        return None if found is None else (found[0], stop + 1)
    if not is_word(tokens[index], *_FORMS):
        return None
    return _read(tokens[index], tokens[index + 2 : stop], source), stop + 1


def _read(word: Token, inside: Sequence[Token], source: SourceText) -> CalledWindow:
    name = word.text.upper()
    form = _FORMS[name]
    arguments = _arguments(inside)
    given: dict[str, Sequence[Token]] = {}
    for place, argument in enumerate(arguments):
        names = ("DATA", "TIMECOL", *form.durations)
        if len(argument) > 2 and argument[1].token_type is TokenType.FARROW:
            key, argument = argument[0].text.upper(), argument[2:]
        elif place < len(names):
            key = names[place]
        else:
            key = ""
        if key not in names or key in given or not argument:
            raise source.error(f"{name} does not take this argument", _first(argument, word), f"write {form.example}")
        given[key] = argument
    if not {"DATA", "TIMECOL", *form.durations[: form.needed]} <= set(given):
        raise source.error(f"an argument of {name} is missing", word, f"write {form.example}")
    stream, keys = _table(given["DATA"], name, form, source)
    bracket: list[Token] = []
    for ours, key in _BRACKETS[name]:
        if key in given or not key:
            bracket.append(replaced(word, TokenType.VAR, ours))
            bracket += _duration(given[key]) if key else []
    return CalledWindow(word, stream, _time(given["TIMECOL"], name, form, source), tuple(bracket), keys)


def _first(tokens: Sequence[Token], otherwise: Token) -> Token:
    return tokens[0] if tokens else otherwise


def _arguments(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    arguments: list[Sequence[Token]] = []
    depth, begin = 0, 0
    for index, token in enumerate(tokens):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        # The keys of sessions are a list of their own: `TABLE bids PARTITION BY a, b, DESCRIPTOR(ts)`.
        follows = tokens[index + 1 : index + 3]
        in_keys = any(each.token_type is TokenType.PARTITION_BY for each in tokens[begin:index])
        is_key = in_keys and not (follows and (is_word(follows[0], "DESCRIPTOR") or len(follows) < 2))
        is_key = is_key and not (len(follows) > 1 and follows[1].token_type is TokenType.FARROW)
        if depth == 0 and token.token_type is TokenType.COMMA and not is_key:
            arguments.append(tokens[begin:index])
            begin = index + 1
    return [*arguments, tokens[begin:]] if tokens else []


def _table(tokens: Sequence[Token], name: str, form: _Form, source: SourceText) -> tuple[Token, tuple[Token, ...]]:
    """Return the stream of `TABLE bids`, `bids` or `(TABLE bids PARTITION BY k)`, and the keys."""
    whole = tokens
    while tokens and tokens[0].token_type is TokenType.L_PAREN and closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    if tokens and tokens[0].token_type is TokenType.TABLE:
        tokens = tokens[1:]
    if tokens and tokens[0].token_type is TokenType.SELECT:
        hint = f"read a stream, and filter it in WHERE: {form.example}"
        raise source.error(f"{name} over a subquery is not supported", tokens[0], hint)
    if not tokens or not is_name(tokens[0]):
        raise source.error(f"the stream of {name} is missing", whole[0], f"write {form.example}")
    stream, rest = tokens[0], tokens[1:]
    if not rest:
        return stream, ()
    keys = rest[1::2]
    is_list = all(map(is_name, keys)) and all(each.token_type is TokenType.COMMA for each in rest[2::2])
    if name != "SESSION" or rest[0].token_type is not TokenType.PARTITION_BY or not keys or not is_list:
        raise source.error(f"cannot read '{source.raw(rest[0])}' here", rest[0], f"write {form.example}")
    return stream, tuple(keys)


def _time(tokens: Sequence[Token], name: str, form: _Form, source: SourceText) -> Token:
    inner = tokens
    if len(tokens) == 4 and is_word(tokens[0], "DESCRIPTOR") and tokens[1].token_type is TokenType.L_PAREN:
        inner = tokens[2:3]
    if len(inner) != 1 or not is_name(inner[0]):
        raise source.error(f"the time column of {name} is missing", tokens[0], f"write {form.example}")
    return inner[0]


def _duration(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return a duration without the word INTERVAL."""
    return tokens[1:] if tokens[0].token_type is TokenType.INTERVAL and len(tokens) > 1 else tokens
