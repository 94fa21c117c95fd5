"""The fold of a join: side after side is folded into its parent, until only the rows of the join are left.

A link is folded by matching rows of both sides (a technique of `kernels.folds`), and by folding every term that is
needed of the result. What the result needs decides which terms and grouping columns are kept on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from windloom.aggregates.columns import ListColumns, WindowValues
from windloom.aggregates.registry import PlannedComponent
from windloom.answers.joins.joined_rows import (
    JoinedRows,
    OutGroups,
    Partner,
    Place,
    allowed_pairs,
    child_of,
    nobody,
    number_keys,
    out_groups,
    relation_of,
    residual_by_types,
    residual_places,
)
from windloom.answers.joins.term_folds import fold_of
from windloom.answers.joins.terms import (
    FactorTerms,
    Flags,
    FoldedRows,
    FoldTypes,
    HeldExtreme,
    HeldValue,
    ListedRows,
    Number,
    RefusedValue,
    Residual,
    SideRows,
    Term,
    Terms,
)
from windloom.kernels.families import AddFloat, AddInt
from windloom.kernels.folds.int128 import BEYOND, Int128, add_signed, as_floats, as_python, narrowed, widened, zero_wide
from windloom.kernels.folds.matching import LinkedRows, Matchable, UnmatchedRows
from windloom.kernels.folds.products import combine_arrays
from windloom.kernels.folds.registry import ROW_FOLDS, RowFold
from windloom.model.aggregate import COUNT_STAR
from windloom.model.join import Corner, Folded, Join, Link, SideComponent, SumOfProducts
from windloom.model.stream import JoinKind
from windloom.model.types import TypeKind
from windloom.state.cells import number_groups

#: Reports that a row does not fit.
Report = Callable[[int, str], None]

_TOO_LARGE = "a sum of more than 38 digits"


def finished(
    relation: JoinedRows, terms: Terms, folded: tuple[Folded, ...]
) -> tuple[list[WindowValues | ListColumns], list[RefusedValue]]:
    """Return every component over the rows of a relation, in the layout of answers, and what is refused."""
    combined: list[WindowValues | ListColumns] = []
    refused: list[RefusedValue] = []
    for number, each in enumerate(folded):
        planned = terms.types.folded[number]

        def report(row: int, text: str, number: int = number) -> None:
            refused.append(RefusedValue(number, row, text))

        match each:
            case SideComponent():
                combined.append(_carried(relation, terms, each, planned, report))
            case SumOfProducts():
                combined.append(_summed(relation, terms, number, each, planned, report))
            case Corner():
                combined.append(_corner(relation, terms, number, each, report))
    return combined, refused


def _carried(
    relation: JoinedRows, terms: Terms, folded: SideComponent, planned: PlannedComponent, report: Report
) -> WindowValues | ListColumns:
    wanted, *others = terms.carried(folded)
    values = relation.held(wanted)
    if isinstance(values, ListedRows):
        return values.listed
    (known,) = others
    if isinstance(values, HeldValue):
        valid = None if planned.component.kind == "moments" else _flags(relation.held(known))
        return WindowValues((values.columns,), valid, values.dictionary)
    assert isinstance(values, AddInt | Int128 | AddFloat)
    if _is_count(planned):
        return WindowValues((_counted(values, report),), None, None)
    return WindowValues(_layout(values, planned, report), _flags(relation.held(known)), None)


def _summed(
    relation: JoinedRows, terms: Terms, number: int, folded: SumOfProducts, planned: PlannedComponent, report: Report
) -> WindowValues:
    *products, known = terms.of(number, folded) if folded.counted is not None else (*terms.of(number, folded), None)
    numbers = []
    for term in products:
        assert isinstance(term, FactorTerms)
        numbers.append(relation.held(term))
    signs = [product.sign for product in folded.products]
    argument = planned.argument_type
    # A count is a whole number, whatever it counts.
    is_float = argument is not None and argument.kind is TypeKind.FLOAT and not _is_count(planned)
    total = _signed_sum(numbers, signs, len(relation.ends), is_float=is_float)  # type: ignore[arg-type]
    if _is_count(planned):
        return WindowValues((_counted(total, report),), None, None)
    return WindowValues(_layout(total, planned, report), None if known is None else _flags(relation.held(known)), None)


def _signed_sum(numbers_of_terms: list[Number], signs: list[int], rows: int, *, is_float: bool) -> Number:
    if len(numbers_of_terms) == 1 and signs == [1] and isinstance(numbers_of_terms[0], AddFloat) == is_float:
        return numbers_of_terms[0]
    if not is_float:
        total = zero_wide(rows)
        for numbers, sign in zip(numbers_of_terms, signs, strict=True):
            assert not isinstance(numbers, AddFloat)
            add_signed(total, numbers, sign)
        return narrowed(total)
    total_pairs = AddFloat(np.zeros(rows), np.zeros(rows))
    for numbers, sign in zip(numbers_of_terms, signs, strict=True):
        pairs = numbers if isinstance(numbers, AddFloat) else as_floats(numbers)
        total_pairs = combine_arrays(total_pairs, pairs if sign > 0 else AddFloat(-pairs.high, -pairs.low))
    return total_pairs


def _corner(relation: JoinedRows, terms: Terms, number: int, folded: Corner, report: Report) -> WindowValues:
    term = terms.extreme(number, folded)
    extreme = relation.held(term)
    assert isinstance(extreme, HeldExtreme)
    if extreme.refused is not None:
        which = "lowest" if term.lowest else "highest"
        kind = f"does not fit {term.kind}"
        if term.kind.kind is TypeKind.FLOAT:
            kind = "is not determined by the extrema of both sides, because infinity meets zero or NaN"
        report(int(np.flatnonzero(extreme.refused)[0]), f"the {which} value of a {term.operator} b {kind}")
    return WindowValues((extreme.keys,), extreme.known, extreme.dictionary)


def _flags(values: object) -> Flags | None:
    assert values is None or isinstance(values, np.ndarray)
    return values


def _is_count(planned: PlannedComponent) -> bool:
    return planned.component.kind in (COUNT_STAR.kind, "count")


def _counted(numbers: Number, report: Report) -> AddInt:
    assert not isinstance(numbers, AddFloat)
    if isinstance(numbers, AddInt):
        return numbers
    row = int(np.flatnonzero(numbers.high != numbers.low.view(np.int64) >> 63)[0])
    report(row, str(as_python(numbers, row) or _TOO_LARGE))
    return AddInt(numbers.low.view(np.int64))


def _layout(numbers: Number, planned: PlannedComponent, report: Report) -> tuple[AddInt | AddFloat, ...]:
    """Return a sum as its aggregator keeps it: floats as pairs, decimals in four limbs, integers in two halves.

    The sum of a join may exceed 64 bits even where the type of its argument is narrow, so integers are always halved.
    """
    kind = planned.argument_type
    if kind is not None and kind.kind is TypeKind.FLOAT:
        return (numbers if isinstance(numbers, AddFloat) else as_floats(numbers),)
    assert not isinstance(numbers, AddFloat)
    wide = widened(numbers)
    low = [(wide.low & np.uint64(0xFFFFFFFF)).astype(np.int64), (wide.low >> np.uint64(32)).astype(np.int64)]
    if kind is not None and kind.kind is TypeKind.DECIMAL:
        _report_where(wide.high == BEYOND, wide, kind.scale, report)
        return tuple(AddInt(limb) for limb in (*low, wide.high & 0xFFFFFFFF, wide.high >> 32))
    # Halves hold 95 bits; the aggregator of sums finds what exceeds 64.
    _report_where((wide.high < -(2**31)) | (wide.high >= 2**31), wide, 0, report)
    return AddInt((wide.high << 32) + low[1]), AddInt(low[0])


def _report_where(refused: Flags, numbers: Int128, scale: int, report: Report) -> None:
    rows = np.flatnonzero(refused)
    if len(rows):
        exact = as_python(numbers, int(rows[0]))
        report(int(rows[0]), _TOO_LARGE if exact is None else str(Decimal(exact).scaleb(-scale)))


_ALONE = {
    JoinKind.INNER: UnmatchedRows.NONE,
    JoinKind.LEFT: UnmatchedRows.UNMATCHED,
    JoinKind.SEMI: UnmatchedRows.MATCHED,
    JoinKind.ANTI: UnmatchedRows.UNMATCHED,
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
    parent: JoinedRows,
    child: JoinedRows,
    terms: Terms,
    ends: int,
    technique: RowFold,
    residual: Residual,
) -> JoinedRows:
    link = step.link
    alone = _ALONE[link.kind]
    is_pairing = link.kind in _PAIRING
    outs = out_groups(parent, step.kept)
    child_outs, alone_out = _child_groups(child, step.kept, link.kind)
    codes, other_codes, keys = number_keys(
        [parent.columns[link.parent, pair.parent] for pair in link.keys],
        [child.columns[link.child, pair.child] for pair in link.keys],
        [pair.null_safe for pair in link.keys],
        (parent.groups, child.groups),
    )
    linked = LinkedRows(
        Matchable(parent.bounds, parent.ends, codes, outs.numbers, outs.count),
        Matchable(child.bounds, child.ends, other_codes, child_outs.numbers, child_outs.count),
        keys,
        ends,
        is_pairing,
        alone,
        alone_out,
        allowed_pairs(link, parent, child, residual),
    )
    matched = technique.match(linked)
    partner = child_of(child, terms, with_nulls=alone is not UnmatchedRows.NONE) if is_pairing else nobody()
    mine = Partner(parent.sides, len(parent.ends), parent.held, lambda stretches: stretches.parent)
    folds = {term: fold_of(term, terms, mine, partner, len(matched.ends)) for term in step.terms}
    for stretches in matched.stretches():
        for fold in folds.values():
            fold.add(stretches)
    values_by_term = {term: fold.done() for term, fold in folds.items()}
    is_used = np.diff(matched.bounds) > 0
    bounds = np.concatenate([matched.bounds[:1], matched.bounds[1:][is_used]])
    of_parent, of_child = pa.array(matched.parent_outs[is_used]), pa.array(matched.child_outs[is_used])
    columns = {place: values.take(of_parent) for place, values in outs.columns.items()}
    columns |= {place: values.take(of_child) for place, values in child_outs.columns.items()}
    sides = step.parent | step.child if is_pairing else step.parent
    return JoinedRows(sides, columns, bounds, matched.ends, values_by_term.__getitem__)


def _child_groups(child: JoinedRows, kept: Sequence[Place], kind: JoinKind) -> tuple[OutGroups, int]:
    """Return what remains of the groups of a child, and the number for rows without a match."""
    if kind not in _PAIRING:
        return OutGroups(np.zeros(child.groups, np.int64), 1, {}), 0
    places = [place for place in kept if place in child.columns]
    if kind is JoinKind.INNER or not places:
        return out_groups(child, kept), 0
    # A row without a match has NULLs, and is in one group with rows that match and have NULLs themselves.
    columns = [pa.concat_arrays([child.columns[place], pa.nulls(1, child.columns[place].type)]) for place in places]
    numbers, values = number_groups(columns, child.groups + 1)
    return OutGroups(numbers[:-1], len(values[0]), dict(zip(places, values, strict=True))), int(numbers[-1])
