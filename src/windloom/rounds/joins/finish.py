"""The components of a join in the layout that cards lower to answers, from the terms of the folded relation."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np

from windloom.aggregates.lifted import Combined
from windloom.aggregates.listed import Listed
from windloom.aggregates.planned import PlannedComponent
from windloom.kernels.families.algebra import AddFloat, AddInt
from windloom.kernels.folds.carried import combine_arrays
from windloom.kernels.folds.wide import BEYOND, Wide, add_signed, as_floats, as_python, narrowed, widened, zero_wide
from windloom.model.aggregate import COUNT_STAR
from windloom.model.join import Carried, Corner, Folded, Summed
from windloom.model.types import TypeKind
from windloom.rounds.joins.held import Flags, HeldExtreme, HeldValue, Number
from windloom.rounds.joins.relation import Relation
from windloom.rounds.joins.rows import ListedRows, Refused
from windloom.rounds.joins.terms import Factors, Terms

#: Reports that a row does not fit.
Report = Callable[[int, str], None]

_TOO_LARGE = "a sum of more than 38 digits"


def finished(
    relation: Relation, terms: Terms, folded: tuple[Folded, ...]
) -> tuple[list[Combined | Listed], list[Refused]]:
    """Return every component over the rows of the relation, and what had to be refused."""
    refused: list[Refused] = []

    def finish_component(number: int, each: Folded) -> Combined | Listed:
        planned = terms.types.folded[number]

        def report(row: int, text: str) -> None:
            refused.append(Refused(number, row, text))

        match each:
            case Carried():
                return _carried(relation, terms, each, planned, report)
            case Summed():
                return _summed(relation, terms, number, each, planned, report)
            case Corner():
                return _corner(relation, terms, number, each, report)

    return [finish_component(number, each) for number, each in enumerate(folded)], refused


def _carried(
    relation: Relation, terms: Terms, folded: Carried, planned: PlannedComponent, report: Report
) -> Combined | Listed:
    wanted, *others = terms.carried(folded)
    values = relation.held(wanted)
    if isinstance(values, ListedRows):
        return values.listed
    (known,) = others
    if isinstance(values, HeldValue):
        valid = None if planned.component.kind == "moments" else _flags(relation.held(known))
        return Combined((values.columns,), valid, values.dictionary)
    assert isinstance(values, AddInt | Wide | AddFloat)
    if _is_count(planned):
        return Combined((_counted(values, report),), None, None)
    return Combined(_layout(values, planned, report), _flags(relation.held(known)), None)


def _summed(
    relation: Relation, terms: Terms, number: int, folded: Summed, planned: PlannedComponent, report: Report
) -> Combined:
    *products, known = terms.of(number, folded) if folded.counted is not None else (*terms.of(number, folded), None)
    numbers = []
    for term in products:
        assert isinstance(term, Factors)
        numbers.append(relation.held(term))
    signs = [product.sign for product in folded.products]
    argument = planned.argument_type
    # A count is a whole number, whatever it counts.
    is_float = argument is not None and argument.kind is TypeKind.FLOAT and not _is_count(planned)
    total = _signed_sum(numbers, signs, len(relation.ends), is_float=is_float)  # type: ignore[arg-type]
    if _is_count(planned):
        return Combined((_counted(total, report),), None, None)
    return Combined(_layout(total, planned, report), None if known is None else _flags(relation.held(known)), None)


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


def _corner(relation: Relation, terms: Terms, number: int, folded: Corner, report: Report) -> Combined:
    term = terms.extreme(number, folded)
    extreme = relation.held(term)
    assert isinstance(extreme, HeldExtreme)
    if extreme.refused is not None:
        which = "lowest" if term.lowest else "highest"
        kind = f"does not fit {term.kind}"
        if term.kind.kind is TypeKind.FLOAT:
            kind = "is not determined by the extrema of both sides, because infinity meets zero or NaN"
        report(int(np.flatnonzero(extreme.refused)[0]), f"the {which} value of a {term.operator} b {kind}")
    return Combined((extreme.keys,), extreme.known, extreme.dictionary)


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
    """Return a sum as its card keeps it: floats as pairs, decimals in four limbs, integers in two halves.

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
    # Halves hold 95 bits; the card of sums finds what exceeds 64.
    _report_where((wide.high < -(2**31)) | (wide.high >= 2**31), wide, 0, report)
    return AddInt((wide.high << 32) + low[1]), AddInt(low[0])


def _report_where(refused: Flags, numbers: Wide, scale: int, report: Report) -> None:
    rows = np.flatnonzero(refused)
    if len(rows):
        exact = as_python(numbers, int(rows[0]))
        report(int(rows[0]), _TOO_LARGE if exact is None else str(Decimal(exact).scaleb(-scale)))
