"""Subjects of predicates, the domains of their values, and sets of values as Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import Enum, StrEnum
from fractions import Fraction
from math import ceil, floor
from typing import Any

from windloom.model.value_set import EMPTY, NULL, PRESENT, Cut, ValueSet

#: Whole numbers up to this are equal as float, double and integer, whatever type Spark gives their literal.
EXACT_IN_FLOAT = 2**24
#: Stretches of up to this many whole values are written one by one.
_LISTED = 3


class Kind(StrEnum):
    """How the values of a domain are ordered and written."""

    WHOLE = "whole"  # integers and decimals, as multiples of their unit
    DATE = "date"  # days as Python counts them
    FLOAT = "float"  # NaN is the greatest value, and -0.0 is 0.0, as in Spark
    STRING = "string"  # UTF-8 bytes
    TRUTH = "truth"  # 0 and 1: a condition, true or false
    ORDER = "order"  # -1, 0 and 1: how two expressions compare


@dataclass(frozen=True, slots=True)
class Domain:
    """The domain of the values of a subject, which orders them.

    `low` and `high` are the first and last value of a discrete domain, if any; `scale` is that of decimals.
    """

    kind: Kind
    scale: int = 0
    low: int | None = None
    high: int | None = None

    def compare(self, operator: str, value: Any) -> ValueSet:
        """The values that are `<`, `<=`, `=`, `<>`, `>=` or `>` a given one."""
        less, at_most = self._below(value, False), self._below(value, True)
        if operator in ("=", "<>"):
            equal = at_most & less.complement
            return equal if operator == "=" else PRESENT & equal.complement
        lower = less if operator in ("<", ">=") else at_most
        return lower if operator in ("<", "<=") else PRESENT & lower.complement

    def _below(self, value: Any, inclusive: bool) -> ValueSet:
        if self.kind in (Kind.FLOAT, Kind.STRING):
            if value == b"" and not inclusive:  # nothing comes before the empty string
                return EMPTY
            return ValueSet(False, True, ((value, int(inclusive)),))
        scaled = Fraction(value) * 10**self.scale
        first_above = floor(scaled) + 1 if inclusive else ceil(scaled)
        if self.low is not None and first_above <= self.low:
            return EMPTY
        if self.high is not None and first_above > self.high:
            return PRESENT
        return ValueSet(False, True, ((first_above, 0),))


TRUTH = Domain(Kind.TRUTH, low=0, high=1)
ORDER = Domain(Kind.ORDER, low=-1, high=1)
IS_FALSE, IS_TRUE = (TRUTH.compare("=", value) for value in (0, 1))


class Level(Enum):
    """The outermost operator of a text, which determines where parentheses are needed."""

    OR = 1
    AND = 2
    ONE = 3


#: SQL text and its outermost operator.
Text = tuple[str, Level]


@dataclass(frozen=True, slots=True)
class Subject:
    """A column, an expression of which only the truth is known, or (with `other`) how two expressions compare.

    `is_loose`: it needs parentheses before IS. `is_safe`: Spark can evaluate the subject for any tuple without an
    error.
    """

    sql: str
    domain: Domain
    other: str = ""
    columns: tuple[str, ...] = field(default=(), compare=False)
    is_loose: bool = field(default=False, compare=False)
    is_safe: bool = field(default=True, compare=False)

    def __hash__(self) -> int:
        return hash((self.sql, self.other))  # compared very often; the domain seldom differs

    def text(self, values: ValueSet) -> Text:
        """Spark SQL that is TRUE exactly for these values, which are neither all nor none."""
        if self.domain.kind is Kind.TRUTH:
            return self._truth_text(values), Level.ONE
        if self.domain.kind is Kind.ORDER:
            return self._order_text(values), Level.ONE
        if values == PRESENT:
            return f"{self.sql} IS NOT NULL", Level.ONE
        pieces = [] if values.present.is_empty else _Line(self).pieces(values.present)
        if values.null:
            pieces.append((f"{self.sql} IS NULL", Level.ONE))
        return join_texts(pieces, Level.OR)

    def _truth_text(self, values: ValueSet) -> str:
        operand = f"({self.sql})" if self.is_loose else self.sql
        if values in (NULL, PRESENT):
            return f"{operand} IS {'NULL' if values.null else 'NOT NULL'}"
        truth = values.present == IS_TRUE
        if values.null:
            return f"{operand} IS NOT {'FALSE' if truth else 'TRUE'}"
        return self.sql if truth else f"NOT {self.sql}"

    def _order_text(self, values: ValueSet) -> str:
        if values in (NULL, PRESENT):
            return f"({self.sql} = {self.other}) IS {'NULL' if values.null else 'NOT NULL'}"
        if values.null:
            return f"({self._order_text(values.complement)}) IS NOT TRUE"
        operator = next(each for each in ("<", "<=", "=", "<>", ">=", ">") if ORDER.compare(each, 0) == values)
        return f"{self.sql} {operator} {self.other}"


def join_texts(texts: list[Text], level: Level) -> Text:
    """Texts joined by AND or OR."""
    if len(texts) == 1:
        return texts[0]
    bound = [f"({sql})" if level is Level.AND and inner is Level.OR else sql for sql, inner in texts]
    return f" {level.name} ".join(bound), level


@dataclass(frozen=True, slots=True)
class _Line:
    """Writes sets of values of one ordered column."""

    subject: Subject

    def pieces(self, values: ValueSet) -> list[Text]:
        """Parts of a set without NULL, to be joined by OR: single values, then stretches from left to right."""
        points: list[Any] = []
        runs: list[tuple[Cut | None, Cut | None, list[Any]]] = []
        for start, end in values.stretches:
            listed = self._listed(start, end)
            if listed is not None:
                points += listed
                continue
            gap = self._listed(runs[-1][1], start) if runs else None
            if gap is None:
                runs.append((start, end, []))
            else:
                runs[-1] = (runs[-1][0], end, runs[-1][2] + gap)
        texts: list[Text] = [(self._one_of(points), Level.ONE)] if points else []
        return texts + [self._run(*run) for run in runs]

    def _listed(self, start: Cut | None, end: Cut | None) -> list[Any] | None:
        """The values between two cuts, if they are few."""
        if self.subject.domain.kind in (Kind.FLOAT, Kind.STRING):
            single = start is not None and end is not None and start[0] == end[0]
            return [start[0]] if single and start is not None else None
        first = self.subject.domain.low if start is None else start[0]
        last = self.subject.domain.high if end is None else end[0] - 1
        if first is None or last is None or last - first >= _LISTED:
            return None
        return list(range(first, last + 1))

    def _one_of(self, points: list[Any], negated: bool = False) -> str:
        listed = [self._value(value) for value in points]
        if len(listed) == 1:
            return f"{self.subject.sql} {'<>' if negated else '='} {listed[0]}"
        return f"{self.subject.sql} {'NOT IN' if negated else 'IN'} ({', '.join(listed)})"

    def _run(self, start: Cut | None, end: Cut | None, without: list[Any]) -> Text:
        texts: list[Text] = []
        if start is not None:
            texts.append((self._bound(start, ">=", ">"), Level.ONE))
        if end is not None:
            texts.append((self._bound(end, "<", "<="), Level.ONE))
        if without:
            texts.append((self._one_of(without, negated=True), Level.ONE))
        return join_texts(texts, Level.AND)

    def _bound(self, cut: Cut, before: str, after: str) -> str:
        """A comparison that holds on one side of the cut; it names the rounder of two neighbouring whole values."""
        value, side = cut
        if self.subject.domain.kind not in (Kind.FLOAT, Kind.STRING):
            value, side = (value, 0) if self._roundness(value) > self._roundness(value - 1) else (value - 1, 1)
        return f"{self.subject.sql} {after if side else before} {self._value(value)}"

    def _roundness(self, value: int) -> int:
        if self.subject.domain.kind is Kind.DATE:
            return int(date.fromordinal(value).day == 1)
        digits = str(value)
        return 99 if value == 0 else len(digits) - len(digits.rstrip("0"))

    def _value(self, value: Any) -> str:
        domain = self.subject.domain
        if domain.kind is Kind.STRING:
            return f"'{bytes(value).decode()}'"
        if domain.kind is Kind.DATE:
            return f"DATE '{date.fromordinal(value).isoformat()}'"
        if domain.kind is Kind.FLOAT:
            whole = value.is_integer() and abs(value) <= EXACT_IN_FLOAT
            shown = str(int(value)) if whole else repr(value)
            return f"{shown.upper()}D" if "e" in shown else shown
        if domain.scale == 0:
            return str(value)
        # Digits after the point make it a decimal that fits the type of the column.
        sign, digits = "-" if value < 0 else "", str(abs(value)).rjust(domain.scale + 1, "0")
        fraction = digits[-domain.scale :].rstrip("0") or "0"
        return f"{sign}{digits[: -domain.scale]}.{fraction}"
