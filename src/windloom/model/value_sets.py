"""Subjects of predicates, the domains of their values, and sets of values as Spark SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum, StrEnum
from fractions import Fraction
from functools import reduce
from math import ceil, floor
from operator import and_
from typing import Any

#: A place in the order of a domain: `(value, 0)` just before the value, `(value, 1)` just after it.
ValueBound = tuple[Any, int]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of an ordered domain.

    `null`: whether NULL is in the set; `below`: whether values before the first cut are; every cut leads in or out.

    Sets are made without cuts before the first and after the last value of the domain, so equal sets are
    equal values and no stretch between two cuts is empty.
    """

    null: bool
    below: bool
    cuts: tuple[ValueBound, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.null or self.below or self.cuts)

    @property
    def is_full(self) -> bool:
        return self.null and self.below and not self.cuts

    @property
    def complement(self) -> ValueSet:
        return ValueSet(not self.null, not self.below, self.cuts)

    @property
    def present(self) -> ValueSet:
        """The set without NULL."""
        return ValueSet(False, self.below, self.cuts) if self.null else self

    @property
    def stretches(self) -> list[tuple[ValueBound | None, ValueBound | None]]:
        """The stretches of the set, from cut to cut; None is the end of the domain."""
        ends: list[ValueBound | None] = [None, *self.cuts] if self.below else [*self.cuts]
        if len(ends) % 2:
            ends.append(None)
        return list(zip(ends[::2], ends[1::2], strict=True))

    def __or__(self, other: ValueSet) -> ValueSet:
        return union((self, other))

    def __and__(self, other: ValueSet) -> ValueSet:
        return union((self.complement, other.complement)).complement

    def __le__(self, other: ValueSet) -> bool:
        """Return whether it is a subset of the other."""
        return (self & other.complement).is_empty


EMPTY = ValueSet(False, False)
FULL = ValueSet(True, True)
NULL = ValueSet(True, False)
PRESENT = ValueSet(False, True)


def union(sets: Iterable[ValueSet]) -> ValueSet:
    """Return the values of any of the sets, in one pass over their cuts."""
    null, depth = False, 0
    steps: dict[ValueBound, int] = defaultdict(int)
    for each in sets:
        null |= each.null
        depth += each.below
        inside = each.below
        for cut in each.cuts:
            steps[cut] += -1 if inside else 1
            inside = not inside
    below, cuts = depth > 0, []
    for cut in sorted(steps):
        before, depth = depth, depth + steps[cut]
        if (before > 0) != (depth > 0):
            cuts.append(cut)
    return ValueSet(null, below, tuple(cuts))


def intersection(sets: Iterable[ValueSet]) -> ValueSet:
    return reduce(and_, sets, FULL)


def hull(values: ValueSet) -> ValueSet:
    """Return the set with its inner gaps filled."""
    stretches = values.stretches
    if not stretches:
        return values
    ends = (stretches[0][0], stretches[-1][1])
    return ValueSet(values.null, ends[0] is None, tuple(end for end in ends if end is not None))


def is_point(start: ValueBound | None, end: ValueBound | None) -> bool:
    """Return whether exactly one value lies between the two."""
    if start is None or end is None:
        return False
    return bool(start[0] == end[0] or (isinstance(end[0], int) and end[0] - start[0] == 1))


def classes(sets: Sequence[ValueSet]) -> dict[int, ValueSet]:
    """Return every combination of sets (bit i: set i) that holds some value, with the set of these values."""
    steps: dict[ValueBound, int] = defaultdict(int)
    mask, null = 0, 0
    for index, each in enumerate(sets):
        null |= each.null << index
        mask |= each.below << index
        for cut in each.cuts:
            steps[cut] ^= 1 << index
    values_of_mask = {null: NULL}
    cuts = sorted(steps)
    for start, end in zip([None, *cuts], [*cuts, None], strict=True):
        if start is not None:
            mask ^= steps[start]
        if mask not in values_of_mask:
            values_of_mask[mask] = ValueSet(False, start is None, tuple(cut for cut in (start, end) if cut is not None))
    return values_of_mask


#: Whole numbers up to this are equal as float, double and integer, whatever type Spark gives their literal.
EXACT_IN_FLOAT = 2**24
#: Stretches of up to this many whole values are written one by one.
_LISTED = 3


class SubjectKind(StrEnum):
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

    kind: SubjectKind
    scale: int = 0
    low: int | None = None
    high: int | None = None

    def compare(self, operator: str, value: Any) -> ValueSet:
        """Return the values that are `<`, `<=`, `=`, `<>`, `>=` or `>` a given one."""
        less, at_most = self._below(value, False), self._below(value, True)
        if operator in ("=", "<>"):
            equal = at_most & less.complement
            return equal if operator == "=" else PRESENT & equal.complement
        lower = less if operator in ("<", ">=") else at_most
        return lower if operator in ("<", "<=") else PRESENT & lower.complement

    def _below(self, value: Any, inclusive: bool) -> ValueSet:
        if self.kind in (SubjectKind.FLOAT, SubjectKind.STRING):
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


TRUTH = Domain(SubjectKind.TRUTH, low=0, high=1)
ORDER = Domain(SubjectKind.ORDER, low=-1, high=1)
IS_FALSE, IS_TRUE = (TRUTH.compare("=", value) for value in (0, 1))


class SubjectLevel(Enum):
    """The outermost operator of a text, which determines where parentheses are needed."""

    OR = 1
    AND = 2
    ONE = 3


#: SQL text and its outermost operator.
Text = tuple[str, SubjectLevel]


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
        """Return Spark SQL that is TRUE exactly for these values, which are neither all nor none."""
        if self.domain.kind is SubjectKind.TRUTH:
            operand = f"({self.sql})" if self.is_loose else self.sql
            is_true = values.present == IS_TRUE
            if values in (NULL, PRESENT):
                return f"{operand} IS {'NULL' if values.null else 'NOT NULL'}", SubjectLevel.ONE
            if values.null:
                return f"{operand} IS NOT {'FALSE' if is_true else 'TRUE'}", SubjectLevel.ONE
            return self.sql if is_true else f"NOT {self.sql}", SubjectLevel.ONE
        if self.domain.kind is SubjectKind.ORDER:
            return self._order_text(values), SubjectLevel.ONE
        if values == PRESENT:
            return f"{self.sql} IS NOT NULL", SubjectLevel.ONE
        pieces = [] if values.present.is_empty else _Line(self).pieces(values.present)
        if values.null:
            pieces.append((f"{self.sql} IS NULL", SubjectLevel.ONE))
        return join_texts(pieces, SubjectLevel.OR)

    def _order_text(self, values: ValueSet) -> str:
        if values in (NULL, PRESENT):
            return f"({self.sql} = {self.other}) IS {'NULL' if values.null else 'NOT NULL'}"
        if values.null:
            return f"({self._order_text(values.complement)}) IS NOT TRUE"
        operator = next(each for each in ("<", "<=", "=", "<>", ">=", ">") if ORDER.compare(each, 0) == values)
        return f"{self.sql} {operator} {self.other}"


def join_texts(texts: list[Text], level: SubjectLevel) -> Text:
    """Return texts joined by AND or OR."""
    if len(texts) == 1:
        return texts[0]
    bound = [f"({sql})" if level is SubjectLevel.AND and inner is SubjectLevel.OR else sql for sql, inner in texts]
    return f" {level.name} ".join(bound), level


@dataclass(frozen=True, slots=True)
class _Line:
    """Writes sets of values of one ordered column."""

    subject: Subject

    def pieces(self, values: ValueSet) -> list[Text]:
        """Return parts of a set without NULL, to be joined by OR: single values, then stretches from left to right."""
        points: list[Any] = []
        runs: list[tuple[ValueBound | None, ValueBound | None, list[Any]]] = []
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
        texts: list[Text] = [(self._one_of(points), SubjectLevel.ONE)] if points else []
        for start, end, without in runs:
            parts = [] if start is None else [self._bound(start, ">=", ">")]
            parts += [] if end is None else [self._bound(end, "<", "<=")]
            parts += [self._one_of(without, negated=True)] if without else []
            texts.append(join_texts([(part, SubjectLevel.ONE) for part in parts], SubjectLevel.AND))
        return texts

    def _listed(self, start: ValueBound | None, end: ValueBound | None) -> list[Any] | None:
        """Return the values between two cuts, if they are few."""
        if self.subject.domain.kind in (SubjectKind.FLOAT, SubjectKind.STRING):
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

    def _bound(self, cut: ValueBound, before: str, after: str) -> str:
        """Return a comparison that holds on one side of the cut, with the rounder of two neighbouring whole values."""
        value, side = cut
        if self.subject.domain.kind not in (SubjectKind.FLOAT, SubjectKind.STRING):
            value, side = (value, 0) if self._roundness(value) > self._roundness(value - 1) else (value - 1, 1)
        return f"{self.subject.sql} {after if side else before} {self._value(value)}"

    def _roundness(self, value: int) -> int:
        if self.subject.domain.kind is SubjectKind.DATE:
            return int(date.fromordinal(value).day == 1)
        digits = str(value)
        return 99 if value == 0 else len(digits) - len(digits.rstrip("0"))

    def _value(self, value: Any) -> str:
        domain = self.subject.domain
        if domain.kind is SubjectKind.STRING:
            return f"'{bytes(value).decode()}'"
        if domain.kind is SubjectKind.DATE:
            return f"DATE '{date.fromordinal(value).isoformat()}'"
        if domain.kind is SubjectKind.FLOAT:
            whole = value.is_integer() and abs(value) <= EXACT_IN_FLOAT
            shown = str(int(value)) if whole else repr(value)
            return f"{shown.upper()}D" if "e" in shown else shown
        if domain.scale == 0:
            return str(value)
        # Digits after the point make it a decimal that fits the type of the column.
        sign, digits = "-" if value < 0 else "", str(abs(value)).rjust(domain.scale + 1, "0")
        fraction = digits[-domain.scale :].rstrip("0") or "0"
        return f"{sign}{digits[: -domain.scale]}.{fraction}"
