"""Scalar expressions by their definition: canonical SQL text, read anew and evaluated on one tuple in plain Python.

Values are Python's: an integer, a float, a Decimal (exact, of any precision), a string, a boolean, None for NULL.
Anything else raises `ValueError`, because an oracle must not guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from windloom_tools.oracle.scalar_functions import (
    CHOOSING,
    FUNCTIONS,
    OPERATORS,
    Row,
    Scalar,
    cast,
    compared,
    either,
    is_like,
    negated,
    safe_equal,
    strict,
)

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LDSYF])?)"
    r"|(?P<text>'(?:[^'\\]|\\.|'')*')|(?P<quoted>`(?:[^`]|``)*`)|(?P<word>[^\W\d]\w*)"
    r"|(?P<sign><=>|<>|<=|>=|\|\||[-+*/%=<>(),.]))"
)
_WORDS = {"and", "or", "not", "is", "null", "true", "false", "in", "between", "like", "distinct", "from"}
_WORDS |= {"case", "when", "then", "else", "end", "div", "as"}


@lru_cache(maxsize=4096)
def scalar(sql: str) -> Scalar:
    """Reads an expression.

    >>> scalar("CASE WHEN a.x > 1 THEN a.x * b.y END")({"a.x": 2, "b.y": 5})
    10
    """
    return _Reader(sql).whole()


@lru_cache(maxsize=4096)
def names_in(sql: str) -> tuple[str, ...]:
    """The columns that an expression reads, qualified as it qualifies them.

    >>> names_in("o.price * `c`.qty + length('d.x')")
    ('o.price', 'c.qty')
    """
    reader = _Reader(sql)
    reader.whole()
    return tuple(dict.fromkeys(reader.names))


class _Reader:
    """A parser by precedence; each method reads one level and returns the function that evaluates it."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.names: list[str] = []
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while sql[place:].strip():
            found = _TOKEN.match(sql, place)
            if found is None:
                raise ValueError(f"the oracle cannot read '{sql}'")
            kind = str(found.lastgroup)
            text = found[kind]
            is_keyword = kind == "word" and text.lower() in _WORDS
            self._tokens.append(("keyword", text.lower()) if is_keyword else (kind, text))
            place = found.end()
        self._next = 0

    def whole(self) -> Scalar:
        found = self._or()
        if self._next < len(self._tokens):
            raise ValueError(f"the oracle does not know '{self._tokens[self._next][1]}' in '{self.sql}'")
        return found

    def _take(self, *texts: str) -> str | None:
        """The next token, if it is a sign or keyword among these."""
        if self._next < len(self._tokens):
            kind, text = self._tokens[self._next]
            if kind in ("sign", "keyword") and text in texts:
                self._next += 1
                return text
        return None

    def _need(self, text: str) -> None:
        if self._take(text) is None:
            raise ValueError(f"the oracle misses '{text}' in '{self.sql}'")

    def _or(self) -> Scalar:
        found = self._and()
        while self._take("or"):
            found = either(found, self._and(), decides=True)
        return found

    def _and(self) -> Scalar:
        found = self._not()
        while self._take("and"):
            found = either(found, self._not(), decides=False)
        return found

    def _not(self) -> Scalar:
        return negated(self._not()) if self._take("not") else self._predicate()

    def _predicate(self) -> Scalar:
        found = self._comparison()
        while True:
            if self._take("is"):
                is_negated = self._take("not") is not None
                found = negated(self._is(found)) if is_negated else self._is(found)
                continue
            start = self._next
            is_negated = self._take("not") is not None
            listed = self._listed(found)
            if listed is None:
                self._next = start
                return found
            found = negated(listed) if is_negated else listed

    def _is(self, value: Scalar) -> Scalar:
        if self._take("distinct"):
            self._need("from")
            return negated(safe_equal(value, self._comparison()))
        word = self._take("null", "true", "false")
        if word == "null":
            return lambda row: value(row) is None
        truth = word == "true"
        return lambda row: value(row) is truth

    def _listed(self, value: Scalar) -> Scalar | None:
        """IN, BETWEEN or LIKE, if one of them follows."""
        if self._take("in"):
            self._need("(")
            values = self._arguments()
            found = compared("=", value, values[0])
            for candidate in values[1:]:
                found = either(found, compared("=", value, candidate), decides=True)
            return found
        if self._take("between"):
            low = self._sum()
            self._need("and")
            return either(compared(">=", value, low), compared("<=", value, self._sum()), decides=False)
        if self._take("like"):
            return strict(is_like, value, self._sum())
        return None

    def _comparison(self) -> Scalar:
        found = self._sum()
        while sign := self._take("=", "<>", "<", "<=", ">", ">=", "<=>"):
            right = self._sum()
            found = safe_equal(found, right) if sign == "<=>" else compared(sign, found, right)
        return found

    def _sum(self) -> Scalar:
        found = self._product()
        while sign := self._take("+", "-", "||"):
            found = strict(OPERATORS[sign], found, self._product())
        return found

    def _product(self) -> Scalar:
        found = self._signed()
        while sign := self._take("*", "/", "%", "div"):
            found = strict(OPERATORS[sign], found, self._signed())
        return found

    def _signed(self) -> Scalar:
        if self._take("-"):
            return strict(lambda value: -value, self._signed())
        return self._signed() if self._take("+") else self._primary()

    def _primary(self) -> Scalar:
        if self._take("("):
            found = self._or()
            self._need(")")
            return found
        if self._take("case"):
            return self._case()
        if word := self._take("null", "true", "false"):
            return _constant({"null": None, "true": True, "false": False}[word])
        kind, text = self._tokens[self._next] if self._next < len(self._tokens) else ("", "the end")
        self._next += 1
        following = self._tokens[self._next] if self._next < len(self._tokens) else ("", "")
        match kind:
            case "number":
                return _constant(_number(text))
            case "text":
                return _constant(_text(text))
            case "word" if following == ("sign", "("):
                self._next += 1
                return self._call(text.lower())
            case "word" if following[0] == "text" and text.lower() in _INSTANTS:
                self._next += 1
                return _constant(_INSTANTS[text.lower()](_text(following[1])))
            case "word" | "quoted":
                return self._column(_name(text))
        raise ValueError(f"the oracle does not know {text} in '{self.sql}'")

    def _column(self, name: str) -> Scalar:
        while self._take("."):
            name += "." + _name(self._tokens[self._next][1])
            self._next += 1
        self.names.append(name)
        return lambda row: row[name]

    def _case(self) -> Scalar:
        subject = None if self._take("when") else self._or()
        if subject is not None:
            self._need("when")
        branches = []
        while True:
            condition = self._or() if subject is None else compared("=", subject, self._or())
            self._need("then")
            branches.append((condition, self._or()))
            if not self._take("when"):
                break
        otherwise = self._or() if self._take("else") else _constant(None)
        self._need("end")

        def chosen(row: Row) -> Any:
            for condition, value in branches:
                if condition(row) is True:
                    return value(row)
            return otherwise(row)

        return chosen

    def _call(self, name: str) -> Scalar:
        if name == "cast":
            value = self._or()
            self._need("as")
            words = []
            while self._take(")") is None:
                words.append(self._tokens[self._next][1])
                self._next += 1
                if words[-1] == "(":
                    while words[-1] != ")":
                        words.append(self._tokens[self._next][1])
                        self._next += 1
            return cast(value, "".join(words).lower())
        arguments = self._arguments()
        if name in CHOOSING:
            return CHOOSING[name](arguments)
        if name not in FUNCTIONS:
            raise ValueError(f"the oracle does not know {name}() in '{self.sql}'")
        return strict(FUNCTIONS[name], *arguments)

    def _arguments(self) -> list[Scalar]:
        found = []
        while self._take(")") is None:
            found.append(self._or())
            self._take(",")
        return found


def _constant(value: Any) -> Scalar:
    return lambda row: value


def _name(text: str) -> str:
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _text(literal: str) -> str:
    return re.sub(r"\\(.)|''", lambda found: found[1] or "'", literal[1:-1])


def _number(text: str) -> Any:
    """A literal as Spark reads it: with a point it is a decimal, with an exponent or a D a double."""
    bare, suffix = (text[:-2], "BD") if text.endswith("BD") else (text, "")
    if not suffix and bare[-1] in "LDSYF":
        bare, suffix = bare[:-1], bare[-1]
    if suffix == "BD":
        return Decimal(bare)
    if suffix in ("D", "F") or "e" in bare.lower():
        return float(bare)
    return Decimal(bare) if "." in bare else int(bare)


_INSTANTS: dict[str, Callable[[str], Any]] = {"date": date.fromisoformat, "timestamp": datetime.fromisoformat}
