"""Residual conditions: for which pairs of groups they hold, tested once for each distinct pair of values."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.errors import WindloomError
from windloom.expressions.arithmetic import DeclinedError
from windloom.expressions.evaluate import DecodedColumns, evaluate
from windloom.expressions.types import NotKnownError
from windloom.expressions.typing import resolve
from windloom.kernels.folds.matching import Allowed
from windloom.model.join import Link
from windloom.rounds.groups import number_groups
from windloom.rounds.joins.relation import Relation
from windloom.rounds.joins.rows import FoldTypes, Residual

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


def allowed_pairs(link: Link, parent: Relation, child: Relation, residual: Residual) -> Allowed | None:
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
        return Allowed(parents, children, None, test)
    every = np.arange(rows * columns)
    return Allowed(parents, children, test(every // columns, every % columns).reshape(rows, columns))


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
