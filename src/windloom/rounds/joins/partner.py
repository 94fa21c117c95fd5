"""One of the two relations of a fold, as kernels see it: what it holds, and which of its rows take part in a match."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.families.algebra import AddInt
from windloom.kernels.folds.matching import Stretches
from windloom.rounds.joins.held import Held, appended, of_no_match
from windloom.rounds.joins.relation import Relation
from windloom.rounds.joins.terms import Factors, Known, Term, Terms

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Partner:
    """`rows` gives its rows in stretches; a row numbered `last` or above is taken for a whole stretch."""

    sides: frozenset[int]
    last: int
    held: Callable[[Term], Held]
    rows: Callable[[Stretches], NDArray[np.int32]]
    _made: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, what: Hashable, make: Callable[[], Made]) -> Made:
        """Return the result of `make` on its values, computed once: folds may use a partner several times."""
        if what not in self._made:
            self._made[what] = make()
        result: Made = self._made[what]
        return result


def parent_of(relation: Relation) -> Partner:
    return Partner(relation.sides, len(relation.ends), relation.held, lambda stretches: stretches.parent)


def child_of(relation: Relation, terms: Terms, *, with_nulls: bool) -> Partner:
    """Return the child; `with_nulls` adds a row of NULLs, with which parent rows without a match are paired."""
    rows = len(relation.ends)

    def held(term: Term) -> Held:
        values = relation.held(term)
        return appended(values, of_no_match(term, values, terms), rows)

    return Partner(relation.sides, rows, held if with_nulls else relation.held, lambda stretches: stretches.child)


def nobody() -> Partner:
    """Return what stands in for the child of a SEMI or ANTI join: it counts once, and holds nothing."""

    def held(term: Term) -> Held:
        assert term in (Factors(()), Known(())), "a SEMI or ANTI join gives no values"
        return AddInt(np.ones(1, np.int64)) if isinstance(term, Factors) else None

    return Partner(frozenset(), 0, held, lambda stretches: np.zeros_like(stretches.parent))
