"""Predicates as values: which are equal, imply or exclude each other, and the conditions they have in common.

A predicate holds a formula with two truth values: subjects whose value is in a set, joined by AND and OR. NOT is not
needed: a set has a complement, in which NULL, the origin of SQL's third truth value, is a value like any other. The
constructors `all_of` and `any_of` keep formulas flat, with one atom per subject and without constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

from windloom.model.expression import Expression
from windloom.model.value_sets import (
    IS_TRUE,
    TRUTH,
    Subject,
    SubjectLevel,
    Text,
    ValueSet,
    classes,
    hull,
    intersection,
    is_point,
    join_texts,
    union,
)

#: The known or assumed values of some subjects.
Context = Mapping[Subject, ValueSet]

#: The number of case distinctions before a question counts as undecided.
_MOST_CASES = 1_000
#: The largest number of operands of one formula that are compared with each other.
_MOST_COMPARED = 32


@dataclass(frozen=True)
class Atom:
    """The subject's value is one of these."""

    subject: Subject
    values: ValueSet

    @cached_property
    def subjects(self) -> frozenset[Subject]:
        return frozenset((self.subject,))

    @cached_property
    def text(self) -> Text:
        return self.subject.text(self.values)

    @property
    def is_safe(self) -> bool:
        return self.subject.is_safe


@dataclass(frozen=True)
class _Compound:
    """Formulas joined by AND or OR.

    `operands` are in the order in which they were written; formulas that differ only in that are equal.
    """

    level: ClassVar[SubjectLevel]
    without_operands: ClassVar[str]

    members: frozenset[Formula]
    operands: tuple[Formula, ...] = field(compare=False)

    @cached_property
    def subjects(self) -> frozenset[Subject]:
        return frozenset[Subject]().union(*(operand.subjects for operand in self.operands))

    @property
    def is_safe(self) -> bool:
        return all(operand.is_safe for operand in self.operands)

    @cached_property
    def ordered(self) -> list[Formula]:
        """Operands that cannot fail come first; among the others, one may guard the next, so these stay in order."""
        safe = sorted((operand for operand in self.operands if operand.is_safe), key=lambda operand: operand.text[0])
        return safe + [operand for operand in self.operands if not operand.is_safe]

    @cached_property
    def text(self) -> Text:
        if not self.operands:
            return self.without_operands, SubjectLevel.ONE
        return join_texts([operand.text for operand in self.ordered], self.level)


class All(_Compound):
    """Every operand holds; without operands: always."""

    level, without_operands = SubjectLevel.AND, "TRUE"


class AnyOf(_Compound):
    """Some operand holds; without operands: never."""

    level, without_operands = SubjectLevel.OR, "FALSE"


Formula = Atom | All | AnyOf

ALWAYS, NEVER = All(frozenset(), ()), AnyOf(frozenset(), ())


def guarded(formula: Formula) -> str:
    """Return SQL that is TRUE for the same tuples, and evaluates an operand only if those before it do not decide.

    Spark guarantees that order for CASE. It also evaluates AND and OR from left to right, with one exception: an
    operand that several expressions of one projection have in common is evaluated first, before any guard.
    """
    if isinstance(formula, Atom) or formula.is_safe:
        return formula.text[0]
    safe = [operand.text for operand in formula.ordered if operand.is_safe]
    operands = [join_texts(safe, formula.level)[0]] if safe else []
    operands += [guarded(operand) for operand in formula.ordered if not operand.is_safe]
    conditions, last = operands[:-1], operands[-1]
    if isinstance(formula, AnyOf):
        return f"CASE {' '.join(f'WHEN {each} THEN TRUE' for each in conditions)} ELSE {last} END"
    return "".join(f"CASE WHEN {each} THEN " for each in conditions) + last + " END" * len(conditions)


def atom(subject: Subject, values: ValueSet) -> Formula:
    return NEVER if values.is_empty else ALWAYS if values.is_full else Atom(subject, values)


def all_of(operands: Iterable[Formula]) -> Formula:
    return _combined(All, operands)


def any_of(operands: Iterable[Formula]) -> Formula:
    return _combined(AnyOf, operands)


def _combined(kind: type[All] | type[AnyOf], operands: Iterable[Formula]) -> Formula:
    values: dict[Subject, list[ValueSet]] = {}
    parts: dict[Formula | Subject, None] = {}  # in order, and each once
    for operand in (inner for outer in operands for inner in (outer.operands if isinstance(outer, kind) else (outer,))):
        if isinstance(operand, Atom):
            values.setdefault(operand.subject, []).append(operand.values)
            parts[operand.subject] = None
        elif not operand.operands:
            return operand  # FALSE in a conjunction, or TRUE in a disjunction
        else:
            parts[operand] = None
    join = intersection if kind is All else union
    operands_left: list[Formula] = []
    for each in parts:
        operand = atom(each, join(values[each])) if isinstance(each, Subject) else each
        if not isinstance(operand, Atom) and not operand.operands:
            if not isinstance(operand, kind):
                return operand
        else:
            operands_left.append(operand)
    return operands_left[0] if len(operands_left) == 1 else kind(frozenset(operands_left), tuple(operands_left))


@lru_cache(maxsize=4_096)
def negation(formula: Formula) -> Formula:
    """Return the formula that holds for exactly the other tuples."""
    if isinstance(formula, Atom):
        return Atom(formula.subject, formula.values.complement)
    opposite = any_of if isinstance(formula, All) else all_of
    return opposite(negation(operand) for operand in formula.operands)


def given(formula: Formula, context: Context) -> Formula:
    """Return the part of the formula that remains to be tested for tuples that satisfy the context."""
    if isinstance(formula, Atom):
        known = context.get(formula.subject)
        decided = None if known is None else _decided(known, formula.values)
        return formula if decided is None else ALWAYS if decided else NEVER
    if formula.subjects.isdisjoint(context):
        return formula
    combine = all_of if isinstance(formula, All) else any_of
    return combine(given(operand, context) for operand in formula.operands)


@lru_cache(maxsize=65_536)
def _decided(known: ValueSet, values: ValueSet) -> bool | None:
    """Return whether the known values decide the atom; None if they do not."""
    if known <= values:
        return True
    return False if (known & values).is_empty else None


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    return formula.operands if isinstance(formula, All) else (formula,)


def atoms(formula: Formula) -> Iterator[Atom]:
    """Yield every atom, at any depth."""
    if isinstance(formula, Atom):
        yield formula
    else:
        for operand in formula.operands:
            yield from atoms(operand)


def projection(formula: Formula, subject: Subject) -> ValueSet:
    """Return a superset of the values of the subject for which the formula can hold."""
    if isinstance(formula, Atom):
        return formula.values if formula.subject == subject else ValueSet(True, True)
    join = intersection if isinstance(formula, All) else union
    return join(projection(operand, subject) for operand in formula.operands)


def is_satisfiable(formula: Formula) -> bool:
    """Return whether it can hold for some tuple; also true if it takes too many cases to find out.

    Subjects are assumed to be independent of each other; if they are not, the result may be True needlessly.
    """
    pending: list[tuple[Formula, Context]] = [(formula, {})]
    cases = 0
    while pending:
        case = given(*pending.pop())  # evaluated lazily: one case that holds is enough
        cases += 1
        if isinstance(case, AnyOf):
            pending += ((operand, {}) for operand in case.operands)
            continue
        compounds = [] if isinstance(case, Atom) else [part for part in case.operands if not isinstance(part, Atom)]
        if isinstance(case, Atom) or not compounds or cases > _MOST_CASES:
            return True
        # Distinguish the cases of the subject of the most operands, or of that of an inner operand.
        counts = Counter(subject for operand in case.operands for subject in operand.subjects)
        split = max(counts if max(counts.values()) > 1 else compounds[0].subjects, key=lambda each: counts[each])
        sets = {each.values: None for each in atoms(case) if each.subject == split}
        pending += ((case, {split: cell}) for cell in classes(list(sets)).values())
    return False


def formula_implies(formula: Formula, other: Formula) -> bool:
    """Return whether every tuple that satisfies the one certainly satisfies the other."""
    known = {operand.subject: operand.values for operand in conjuncts(formula) if isinstance(operand, Atom)}
    atoms_first = sorted(conjuncts(other), key=lambda operand: not isinstance(operand, Atom))
    return all(_implies_operand(formula, known, operand) for operand in atoms_first)


def _implies_operand(formula: Formula, known: Context, operand: Formula) -> bool:
    rest = given(operand, known)
    if not isinstance(rest, Atom) and not rest.operands:
        return isinstance(rest, All)
    if operand in conjuncts(formula):
        return True
    compounds = (each for each in conjuncts(formula) if not isinstance(each, Atom))
    if isinstance(operand, Atom) and all(each.subjects.isdisjoint(operand.subjects) for each in compounds):
        return False  # only an atom of its own constrains the subject
    if formula.subjects.isdisjoint(operand.subjects):
        return False
    return not is_satisfiable(all_of((formula, negation(operand))))


def simplified(formula: Formula) -> Formula:
    """Return the condition without operands that its other operands already decide."""
    if isinstance(formula, Atom):
        return formula
    before: Formula | None = None
    while formula != before and not isinstance(formula, Atom):
        before, combine = formula, all_of if isinstance(formula, All) else any_of
        # Next to `x > 5 AND …` x is above 5, next to `x > 5 OR …` it is not: otherwise the rest would not matter.
        context = {
            operand.subject: operand.values if isinstance(formula, All) else operand.values.complement
            for operand in formula.operands
            if isinstance(operand, Atom)
        }
        formula = combine(
            operand if isinstance(operand, Atom) else simplified(given(operand, context))
            for operand in formula.operands
        )
    return formula if isinstance(formula, Atom) else _without_implied(formula)


def _without_implied(formula: All | AnyOf) -> Formula:
    """Leave out what is superfluous.

    In a conjunction, that is an operand that another one implies; in a disjunction, one that implies another.
    """
    needed = list(formula.operands)
    for operand in formula.operands:
        if isinstance(operand, Atom) or len(needed) > _MOST_COMPARED:
            continue
        others = (other for other in needed if other is not operand and not other.subjects.isdisjoint(operand.subjects))
        if any(
            formula_implies(other, operand) if isinstance(formula, All) else formula_implies(operand, other)
            for other in others
        ):
            needed.remove(operand)
    return formula if len(needed) == len(formula.operands) else (all_of if isinstance(formula, All) else any_of)(needed)


#: A common condition lists at most this many stretches of a column; beyond, only their first start and last end.
_MOST_STRETCHES = 8


@dataclass(frozen=True, slots=True)
class Predicate:
    """The tuples for which a WHERE is TRUE, in a normal form: `sql` is TRUE for these, and FALSE or NULL for others.

    Different spellings of one predicate are equal. So are predicates that differ in the order of parts on which Spark
    may fail (`b / a > 1`), though each `sql` keeps its own order, in which one may guard another.
    """

    formula: Formula

    @classmethod
    def of(cls, formula: Formula) -> Predicate:
        simple = simplified(formula)
        if not is_satisfiable(simple):
            return cls(NEVER)
        return cls(simple if is_satisfiable(negation(simple)) else ALWAYS)

    @classmethod
    def opaque(cls, where: Expression) -> Predicate:
        """Return a condition of which only the text is known; the parentheses keep it together."""
        sql = where.sql if where.column is not None else f"({where.sql})"
        return cls(atom(Subject(sql, TRUTH, columns=where.columns, is_safe=False), IS_TRUE))

    @property
    def sql(self) -> str:
        return self.formula.text[0]

    @property
    def guarded_sql(self) -> str:
        """The SQL for use next to other predicates in one projection.

        There, Spark may evaluate `b / a` of `a <> 0 AND b / a > 1` for every tuple because another predicate also
        needs it.
        """
        return guarded(self.formula)

    @property
    def expression(self) -> Expression:
        columns = {column for subject in self.formula.subjects for column in subject.columns}
        return Expression(self.sql, tuple(sorted(columns)))

    @property
    def is_always(self) -> bool:
        """Whether it is TRUE for every tuple."""
        return self.formula == ALWAYS

    @property
    def is_never(self) -> bool:
        """Whether it is TRUE for no tuple."""
        return self.formula == NEVER

    def __str__(self) -> str:
        return self.sql


def condition_of(predicate: Predicate | None, where: Expression | None) -> Predicate | None:
    """Return the predicate that tuples must satisfy, given WHERE and its analysis; None if all tuples do."""
    if predicate is None and where is not None:
        predicate = Predicate.opaque(where)
    return None if predicate is None or predicate.is_always else predicate


def implies(a: Predicate, b: Predicate) -> bool:
    """Return whether every tuple of `a` is certainly one of `b`."""
    return a.is_never or formula_implies(a.formula, b.formula)


def covers(predicates: Iterable[Predicate]) -> bool:
    """Return whether every tuple certainly satisfies one of them."""
    return not is_satisfiable(all_of(negation(each.formula) for each in predicates))


def common(predicates: Sequence[Predicate]) -> Predicate | None:
    """Return the condition that all predicates require; None if there is none.

    It is found by single columns and whole conditions. For a column, it admits every value that one of them admits:
    `x > 5` and `x > 7` have `x > 5` in common, `x = 1` and `x = 2` have `x IN (1, 2)`.
    """
    possible = [each.formula for each in predicates if not each.is_never]
    if not possible:
        return Predicate(NEVER) if predicates else None
    shared = frozenset.intersection(*(each.subjects for each in possible))
    conditions = []
    for subject in shared:
        values = union(projection(formula, subject) for formula in possible)
        if sum(not is_point(*ends) for ends in values.stretches) > _MOST_STRETCHES:
            values = hull(values)
        conditions.append(atom(subject, values))
    whole = (part for part in conjuncts(possible[0]) if isinstance(part, AnyOf))
    conditions += [part for part in whole if all(formula_implies(other, part) for other in possible)]
    result = Predicate.of(all_of(conditions))
    return None if result.is_always else result
