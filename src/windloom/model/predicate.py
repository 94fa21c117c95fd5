"""Predicates as values: which are equal, imply or exclude each other, and the conditions they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windloom.model import formula as logic
from windloom.model.expression import Expression
from windloom.model.formula import ALWAYS, NEVER, AnyOf, Formula, all_of, atom, conjuncts, negation
from windloom.model.subject import IS_TRUE, TRUTH, Subject
from windloom.model.value_set import hull, is_point, union

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
        simple = logic.simplified(formula)
        if not logic.is_satisfiable(simple):
            return cls(NEVER)
        return cls(simple if logic.is_satisfiable(negation(simple)) else ALWAYS)

    @classmethod
    def opaque(cls, where: Expression) -> Predicate:
        """A condition of which only the text is known; the parentheses keep it together."""
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
        return logic.guarded(self.formula)

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
    """The predicate that tuples must satisfy, given WHERE and what is understood of it; None if all tuples do."""
    if predicate is None and where is not None:
        predicate = Predicate.opaque(where)
    return None if predicate is None or predicate.is_always else predicate


def implies(a: Predicate, b: Predicate) -> bool:
    """Whether every tuple of `a` is certainly one of `b`."""
    return a.is_never or logic.implies(a.formula, b.formula)


def covers(predicates: Iterable[Predicate]) -> bool:
    """Whether every tuple certainly satisfies one of them."""
    return not logic.is_satisfiable(all_of(negation(each.formula) for each in predicates))


def common(predicates: Sequence[Predicate]) -> Predicate | None:
    """The condition that all predicates require, found by single columns and whole conditions; None if there is none.

    For a column, it admits every value that one of them admits: `x > 5` and `x > 7` have `x > 5` in common, `x = 1`
    and `x = 2` have `x IN (1, 2)`.
    """
    possible = [each.formula for each in predicates if not each.is_never]
    if not possible:
        return Predicate(NEVER) if predicates else None
    shared = frozenset.intersection(*(each.subjects for each in possible))
    conditions = []
    for subject in shared:
        values = union(logic.projection(formula, subject) for formula in possible)
        if sum(not is_point(*ends) for ends in values.stretches) > _MOST_STRETCHES:
            values = hull(values)
        conditions.append(atom(subject, values))
    whole = (part for part in conjuncts(possible[0]) if isinstance(part, AnyOf))
    conditions += [part for part in whole if all(logic.implies(other, part) for other in possible)]
    result = Predicate.of(all_of(conditions))
    return None if result.is_always else result
