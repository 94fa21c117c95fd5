"""The fold of a join: side after side is folded into its parent, until only the rows of the join are left.

A link is folded by matching rows of both sides (a technique of `kernels.folds`), and by folding every term that is
needed of the result. What the result needs decides which terms and grouping columns are kept on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.kernels.folds.matching import Alone, Linked, Matchable
from windloom.kernels.folds.registry import ROW_FOLDS, RowFold
from windloom.model.join import Join, JoinKind, Link
from windloom.rounds.joins.finish import finished
from windloom.rounds.joins.folding import fold_of
from windloom.rounds.joins.keys import number_kept, number_keys
from windloom.rounds.joins.partner import child_of, nobody, parent_of
from windloom.rounds.joins.relation import Place, Relation, relation_of
from windloom.rounds.joins.residual import allowed_pairs, residual_by_types, residual_places
from windloom.rounds.joins.rows import FoldedRows, FoldTypes, Residual, SideRows
from windloom.rounds.joins.terms import Term, Terms

_ALONE = {
    JoinKind.INNER: Alone.NONE,
    JoinKind.LEFT: Alone.UNMATCHED,
    JoinKind.SEMI: Alone.MATCHED,
    JoinKind.ANTI: Alone.UNMATCHED,
}
#: The kinds whose result has the rows of the child.
_PAIRING = (JoinKind.INNER, JoinKind.LEFT)


@dataclass(frozen=True, slots=True)
class _Step:
    """One link to fold, with the sides of both relations, and what its result keeps."""

    link: Link
    parent: frozenset[int]
    child: frozenset[int]
    terms: tuple[Term, ...]
    kept: tuple[Place, ...]

    @property
    def sides(self) -> frozenset[int]:
        return self.parent | self.child if self.link.kind in _PAIRING else self.parent


def fold_sides(
    join: Join,
    types: FoldTypes,
    sides: Sequence[SideRows],
    ends: int,
    order: Sequence[int],
    technique: str,
    residual: Residual | None = None,
) -> FoldedRows:
    """Return the rows of a join from those of its sides, whose windows end at `ends` different instants.

    `order` names the links in the order in which they are folded: a side is folded into its parent after everything
    that hangs on it has been folded into it.
    """
    relations = {number: relation_of(number, side, types) for number, side in enumerate(sides)}
    row_fold = ROW_FOLDS[technique]
    terms, steps = _steps(join, types, order)
    tested = residual or residual_by_types(types)
    for step in steps:
        parent, child = relations[step.link.parent], relations.pop(step.link.child)
        relations[step.link.parent] = _fold(step, parent, child, terms, ends, row_fold, tested)
    relation = relations[0]
    combined, refused = finished(relation, terms, join.folded)
    groups = tuple(relation.columns[place] for place in join.groups)
    return FoldedRows(groups, relation.bounds, relation.ends, tuple(combined), tuple(refused))


def _steps(join: Join, types: FoldTypes, order: Sequence[int]) -> tuple[Terms, list[_Step]]:
    """Return what each fold has to make, from what is needed after it."""
    covered = {number: frozenset([number]) for number in range(len(join.sides))}
    begun: list[tuple[Link, frozenset[int], frozenset[int]]] = []
    for number_of_link in order:
        link = join.links[number_of_link]
        begun.append((link, covered[link.parent], covered.pop(link.child)))
        if link.kind in _PAIRING:
            covered[link.parent] |= begun[-1][2]
    assert list(covered) == [0], "every link is folded once, and the first side is left"
    terms = Terms(types, covered[0])
    needed: dict[int, list[Term]] = {0: list(terms.all_of(join.folded))}
    columns_needed: set[Place] = set(join.groups)
    steps: list[_Step] = []
    for link, parent, child in reversed(begun):
        wanted = tuple(dict.fromkeys(needed[link.parent]))
        steps.append(_Step(link, parent, child, wanted, tuple(sorted(columns_needed))))
        is_pairing = link.kind in _PAIRING
        needed[link.parent] = [needed_term for term in wanted for needed_term in terms.needed_of(term, parent)]
        needed[link.child] = (
            [needed_term for term in wanted for needed_term in terms.needed_of(term, child)] if is_pairing else []
        )
        mine, others = residual_places(link)
        columns_needed |= {(link.parent, place) for place in (*mine, *(pair.parent for pair in link.keys))}
        columns_needed |= {(link.child, place) for place in (*others, *(pair.child for pair in link.keys))}
    return terms, steps[::-1]


def _fold(
    step: _Step,
    parent: Relation,
    child: Relation,
    terms: Terms,
    ends: int,
    technique: RowFold,
    residual: Residual,
) -> Relation:
    link = step.link
    alone = _ALONE[link.kind]
    is_pairing = link.kind in _PAIRING
    outs, parent_columns = kept_of(parent, step.kept)
    other_outs, child_columns, alone_out = _kept_of_child(child, step.kept, link.kind)
    codes, other_codes, keys = number_keys(
        [parent.columns[link.parent, pair.parent] for pair in link.keys],
        [child.columns[link.child, pair.child] for pair in link.keys],
        [pair.null_safe for pair in link.keys],
        (parent.groups, child.groups),
    )
    linked = Linked(
        Matchable(parent.bounds, parent.ends, codes, *outs),
        Matchable(child.bounds, child.ends, other_codes, *other_outs),
        keys,
        ends,
        is_pairing,
        alone,
        alone_out,
        allowed_pairs(link, parent, child, residual),
    )
    matched = technique.match(linked)
    partner = child_of(child, terms, with_nulls=alone is not Alone.NONE) if is_pairing else nobody()
    folds = {term: fold_of(term, terms, parent_of(parent), partner, len(matched.ends)) for term in step.terms}
    for stretches in matched.stretches():
        for fold in folds.values():
            fold.add(stretches)
    values_by_term = {term: fold.done() for term, fold in folds.items()}
    is_used = np.diff(matched.bounds) > 0
    bounds = np.concatenate([matched.bounds[:1], matched.bounds[1:][is_used]])
    of_parent, of_child = (pa.array(outs[is_used]) for outs in (matched.parent_outs, matched.child_outs))
    columns = {place: values.take(of_parent) for place, values in parent_columns.items()}
    columns |= {place: values.take(of_child) for place, values in child_columns.items()}
    return Relation(step.sides, columns, bounds, matched.ends, values_by_term.__getitem__)


def kept_of(relation: Relation, kept: Sequence[Place]) -> tuple[tuple[NDArray[np.int64], int], dict[Place, pa.Array]]:
    """Return what remains of the groups of a relation, as numbers, and their columns by number."""
    places = [place for place in kept if place in relation.columns]
    columns = [relation.columns[place] for place in places]
    is_distinct = len(places) == len(relation.columns) and bool(places)
    numbers, values, count = number_kept(columns, relation.groups, is_distinct=is_distinct)
    return (numbers, count), dict(zip(places, values, strict=True))


def _kept_of_child(
    child: Relation, kept: Sequence[Place], kind: JoinKind
) -> tuple[tuple[NDArray[np.int64], int], dict[Place, pa.Array], int]:
    """Return what remains of the groups of a child, as `kept_of` does, and the number for rows without a match."""
    if kind not in _PAIRING:
        return (np.zeros(child.groups, np.int64), 1), {}, 0
    if kind is JoinKind.INNER or not any(place in child.columns for place in kept):
        return *kept_of(child, kept), 0
    # A row without a match has NULLs, and is in one group with rows that match and have NULLs themselves.
    places = [place for place in kept if place in child.columns]
    columns = [pa.concat_arrays([child.columns[place], pa.nulls(1, child.columns[place].type)]) for place in places]
    numbers, values, count = number_kept(columns, child.groups + 1, is_distinct=False)
    return (numbers[:-1], count), dict(zip(places, values, strict=True)), int(numbers[-1])
