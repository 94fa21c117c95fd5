"""Sets of values: unions, parts, and the combinations of sets that values are in."""

from __future__ import annotations

import pytest

from windloom.model.value_sets import (
    EMPTY,
    FULL,
    NULL,
    PRESENT,
    Domain,
    SubjectKind,
    ValueSet,
    classes,
    hull,
    intersection,
    union,
)

BYTES = Domain(SubjectKind.WHOLE, 0, -128, 127)
FLOATS = Domain(SubjectKind.FLOAT)


def test_neighbouring_whole_values_leave_no_gap() -> None:
    assert BYTES.compare("<", 3) | BYTES.compare(">=", 3) == PRESENT
    assert BYTES.compare("=", 3) | BYTES.compare("=", 4) == BYTES.compare(">", 2) & BYTES.compare("<", 5)
    assert (BYTES.compare(">", 3) & BYTES.compare("<", 4)).is_empty
    assert not (FLOATS.compare(">", 3.0) & FLOATS.compare("<", 4.0)).is_empty


def test_values_outside_the_domain_are_not_there() -> None:
    assert BYTES.compare(">", 127) == BYTES.compare("=", 128) == EMPTY
    assert BYTES.compare(">=", -128) == BYTES.compare("<>", 1000) == PRESENT
    assert Domain(SubjectKind.STRING).compare("<", b"") == EMPTY


def test_null_is_a_value_of_its_own() -> None:
    assert PRESENT.complement == NULL
    assert NULL | PRESENT == FULL
    assert not NULL <= PRESENT
    assert BYTES.compare(">", 3).complement == BYTES.compare("<=", 3) | NULL


def test_unions_and_intersections_of_many() -> None:
    assert union(()) == EMPTY
    assert intersection(()) == FULL
    assert union(BYTES.compare("=", value) for value in range(-128, 128)) == PRESENT
    assert intersection(BYTES.compare(">", value) for value in (3, 9, 5)) == BYTES.compare(">", 9)


@pytest.mark.parametrize(
    ("values", "filled"),
    [
        (BYTES.compare("=", 1) | BYTES.compare("=", 5), BYTES.compare(">=", 1) & BYTES.compare("<=", 5)),
        (BYTES.compare("<>", 1), PRESENT),
        (BYTES.compare(">", 1) | NULL, BYTES.compare(">", 1) | NULL),
        (NULL, NULL),
    ],
)
def test_a_hull_has_no_gaps(values: ValueSet, filled: ValueSet) -> None:
    assert hull(values) == filled


def test_classes_are_the_combinations_that_occur() -> None:
    found = classes([FLOATS.compare(">", 1.0), FLOATS.compare(">", 2.0), NULL])
    assert set(found) == {0b000, 0b001, 0b011, 0b100}
    assert found[0b001] == FLOATS.compare(">", 1.0) & FLOATS.compare("<=", 2.0)
    assert set(classes([BYTES.compare("=", value) for value in range(5)])) == {0, 1, 2, 4, 8, 16}
