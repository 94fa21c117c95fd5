"""The signature of a scan: which conditions become bits, and which condition is pushed down to the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windloom.model.expression import Expression
from windloom.model.predicate import Predicate, common, implies
from windloom.plan.physical import PartialSet


@dataclass(frozen=True, slots=True)
class Signed:
    """The predicates of sets as bits. `pushed` is what all of them imply; a predicate equal to it needs no bit."""

    pushed: Expression | None
    bits: dict[str, int]  # by SQL of the predicate
    predicates: tuple[Expression, ...]
    only_signed: bool

    def bit(self, partial_set: PartialSet) -> int | None:
        """The bit of a set; None if the set wants every tuple that the pushed condition lets through."""
        return self.bit_of(partial_set.predicate)

    def bit_of(self, predicate: Predicate | None) -> int | None:
        """The bit of a predicate; None if it has none, because the pushed condition implies it."""
        return None if predicate is None else self.bits.get(predicate.sql)


def is_fed(partial_set: PartialSet) -> bool:
    """Whether any tuple can be part of the set."""
    return partial_set.predicate is None or not partial_set.predicate.is_never


def sign(sets: Sequence[PartialSet], also: Sequence[Predicate | None] = (), *, pushes: bool = True) -> Signed:
    """The signature of a scan for the sets, and for further predicates; without `pushes`, no tuple is left out."""
    wheres: list[Predicate | None] = list(dict.fromkeys([*(partial_set.predicate for partial_set in sets), *also]))
    conditions = [where for where in wheres if where is not None]
    pushed = None
    if pushes and conditions and None not in wheres:
        pushed = conditions[0] if len(conditions) == 1 else common(conditions)
    signed = sorted(
        (predicate for predicate in conditions if pushed is None or not implies(pushed, predicate)),
        key=lambda predicate: predicate.sql,
    )
    return Signed(
        None if pushed is None else pushed.expression,
        {predicate.sql: bit for bit, predicate in enumerate(signed)},
        tuple(Expression(predicate.guarded_sql, predicate.expression.columns) for predicate in signed),
        pushes and None not in wheres and len(signed) == len(conditions) > 0,
    )
