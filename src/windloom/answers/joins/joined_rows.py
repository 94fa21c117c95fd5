"""A relation: groups with rows by end, and terms over these rows; of one side, or folded from several."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.answers.joins.terms import (
    FactorTerms,
    FoldTypes,
    Held,
    PresenceTerm,
    Residual,
    SideRows,
    Term,
    Terms,
    appended,
    held_by_side,
    of_no_match,
)
from windloom.errors import WindloomError
from windloom.expressions.arithmetic import DeclinedError
from windloom.expressions.evaluate import DecodedColumns, evaluate
from windloom.expressions.types import NotKnownError
from windloom.expressions.typing import resolve
from windloom.kernels.families import AddInt
from windloom.kernels.folds.matching import PairCondition, Stretches
from windloom.model.arrays import Ints
from windloom.model.join import Link
from windloom.state.cells import number_groups

#: A grouping column: its side, and its place among the grouping columns of the side.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Rows of the join of some `sides`. Rows `bounds[g] : bounds[g + 1]` belong to group g, and ascend by end."""

    sides: frozenset[int]
    columns: dict[Place, pa.Array]  # what is left of the groups' keys, by group; groups are distinct
    bounds: NDArray[np.int64]
    ends: NDArray[np.int32]
    held: Callable[[Term], Held]

    @property
    def groups(self) -> int:
        return len(self.bounds) - 1


def relation_of(number: int, side: SideRows, types: FoldTypes) -> JoinedRows:
    """Return the relation of one side alone."""
    values_by_term: dict[Term, Held] = {}

    def term(wanted: Term) -> Held:
        if wanted not in values_by_term:
            values_by_term[wanted] = held_by_side(wanted, side.combined, types.sides[number])
        return values_by_term[wanted]

    columns = {(number, index): key for index, key in enumerate(side.keys)}
    return JoinedRows(frozenset([number]), columns, side.bounds, side.ends, term)


Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Partner:
    """One of the two relations of a fold, as kernels see it: what it holds, and which of its rows take part in a match.

    `rows` gives its rows in stretches; a row numbered `last` or above is taken for a whole stretch.
    """

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


def child_of(relation: JoinedRows, terms: Terms, *, with_nulls: bool) -> Partner:
    """Return the child; `with_nulls` adds a row of NULLs, with which parent rows without a match are paired."""
    rows = len(relation.ends)

    def held(term: Term) -> Held:
        values = relation.held(term)
        return appended(values, of_no_match(term, values, terms), rows)

    return Partner(relation.sides, rows, held if with_nulls else relation.held, lambda stretches: stretches.child)


def nobody() -> Partner:
    """Return what stands in for the child of a SEMI or ANTI join: it counts once, and holds nothing."""

    def held(term: Term) -> Held:
        assert term in (FactorTerms(()), PresenceTerm(())), "a SEMI or ANTI join gives no values"
        return AddInt(np.ones(1, np.int64)) if isinstance(term, FactorTerms) else None

    return Partner(frozenset(), 0, held, lambda stretches: np.zeros_like(stretches.parent))


def number_keys(
    left: Sequence[pa.Array], right: Sequence[pa.Array], null_safe: Sequence[bool], groups: tuple[int, int]
) -> tuple[Ints, Ints, int]:
    """Return a number for the key of every group of both sides, and how many there are; -1 if a key matches nothing.

    NULL equals nothing unless its column is null-safe. NaN equals NaN, and -0.0 equals 0.0.
    """
    columns = []
    for of_left, of_right in zip(left, right, strict=True):
        column = pa.concat_arrays([of_left, of_right.cast(of_left.type)])
        if pa.types.is_floating(column.type):  # with one zero and one NaN
            column = pc.add(column, pa.scalar(0.0, column.type))
            column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
        columns.append(column)
    numbers, distinct = number_groups(columns, sum(groups))
    for column, is_safe in zip(columns, null_safe, strict=True):
        if column.null_count and not is_safe:
            numbers = np.where(column.is_null().to_numpy(zero_copy_only=False), -1, numbers)
    return numbers[: groups[0]], numbers[groups[0] :], len(distinct[0]) if distinct else 1


@dataclass(frozen=True, slots=True)
class OutGroups:
    """What remains of the groups of a relation: a number for each, how many there are, and their columns by number."""

    numbers: Ints
    count: int
    columns: dict[Place, pa.Array]


def out_groups(relation: JoinedRows, kept: Sequence[Place]) -> OutGroups:
    """Return what remains of the groups of a relation if these grouping columns are kept."""
    places = [place for place in kept if place in relation.columns]
    columns = [relation.columns[place] for place in places]
    if places and len(places) == len(relation.columns):  # no two groups keep the same values
        every = np.arange(relation.groups, dtype=np.int64)
        return OutGroups(every, relation.groups, dict(zip(places, columns, strict=True)))
    numbers, values = number_groups(columns, relation.groups)
    return OutGroups(numbers, len(values[0]) if values else 1, dict(zip(places, values, strict=True)))


#: Up to this many pairs of values, a condition is tested on all pairs; beyond, only on those that meet.
MOST_TABLE = 1 << 22
#: Pairs that are tested at a time.
_TESTED = 1 << 20
_PLACE = re.compile(r"__([pc])(\d+)")


def residual_places(link: Link) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the grouping columns of the parent and of the child that the condition of a link reads."""
    if link.residual is None:
        return (), ()
    matches = [_PLACE.fullmatch(name) for name in link.residual.columns]
    places: dict[str, list[int]] = {"p": [], "c": []}
    for match in matches:
        assert match is not None, f"a residual condition reads {link.residual.columns}"
        places[match[1]].append(int(match[2]))
    return tuple(sorted(places["p"])), tuple(sorted(places["c"]))


def allowed_pairs(link: Link, parent: JoinedRows, child: JoinedRows, residual: Residual) -> PairCondition | None:
    """Return the condition of a link as a table over distinct values of both sides; None if there is no condition."""
    if link.residual is None:
        return None
    mine, others = residual_places(link)
    parents, parent_values = number_groups([parent.columns[link.parent, place] for place in mine], parent.groups)
    children, child_values = number_groups([child.columns[link.child, place] for place in others], child.groups)
    rows = len(parent_values[0]) if parent_values else 1
    columns = len(child_values[0]) if child_values else 1

    def test(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the condition holds for pairs of values, given by their numbers; each is tested once."""
        different, place = np.unique(first * columns + second, return_inverse=True)
        holds = np.zeros(len(different), np.bool_)
        for begin in range(0, len(different), _TESTED):
            pairs = different[begin : begin + _TESTED]
            parent_rows, child_rows = pa.array(pairs // columns), pa.array(pairs % columns)
            table = {f"__p{place}": values.take(parent_rows) for place, values in zip(mine, parent_values, strict=True)}
            table |= {
                f"__c{place}": values.take(child_rows) for place, values in zip(others, child_values, strict=True)
            }
            holds[begin : begin + _TESTED] = residual(link, table)
        holds_by_pair: NDArray[np.bool_] = holds[place]
        return holds_by_pair

    if rows * columns > MOST_TABLE:
        return PairCondition(parents, children, None, test)
    every = np.arange(rows * columns)
    return PairCondition(parents, children, test(every // columns, every % columns).reshape(rows, columns))


def residual_by_types(types: FoldTypes) -> Residual:
    """Evaluate conditions without Spark, from the types of the sides' grouping columns."""

    def holds(link: Link, columns: dict[str, pa.Array]) -> NDArray[np.bool_]:
        assert link.residual is not None
        kinds = {f"__p{index}": kind for index, kind in enumerate(types.groups[link.parent])}
        kinds |= {f"__c{index}": kind for index, kind in enumerate(types.groups[link.child])}
        table = pa.table(columns)
        try:
            result = evaluate(resolve(link.residual.tree, kinds), DecodedColumns(table))
        except (NotKnownError, DeclinedError, pa.ArrowInvalid) as error:
            raise WindloomError(
                f"the condition '{link.residual}' cannot be evaluated",
                str(error),
                "compare columns of both sides as they are, or compute the values to compare in each stream",
            ) from None
        if isinstance(result, pa.Scalar):
            result = pa.repeat(result, table.num_rows)
        flags: NDArray[np.bool_] = pc.fill_null(result, False).to_numpy(zero_copy_only=False)
        return flags

    return holds
