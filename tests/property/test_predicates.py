"""Random predicates on random tuples: what is claimed of them against a three-valued evaluation."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from support.predicates import GUARDED, Row, evaluate, random_predicate, random_row, read
from windloom.model import common, conjunction, covers, disjoint, implies, most_signatures


@st.composite
def predicates(draw: st.DrawFn, depth: int = 3) -> str:
    return random_predicate(lambda options: draw(st.sampled_from(options)), depth, GUARDED)


@st.composite
def tuples(draw: st.DrawFn) -> Row:
    return random_row(lambda options: draw(st.sampled_from(options)))


ROWS = st.lists(tuples(), min_size=1, max_size=25)


@settings(deadline=None)
@given(predicates(), ROWS)
def test_the_normal_form_is_satisfied_by_the_same_tuples(written: str, rows: list[Row]) -> None:
    predicate = read(written)
    satisfied = [evaluate(written, row) is True for row in rows]
    assert [evaluate(predicate.sql, row) is True for row in rows] == satisfied
    assert [evaluate(predicate.guarded_sql, row) is True for row in rows] == satisfied
    assert not (predicate.is_never and any(satisfied))
    assert not predicate.is_always or all(satisfied)


@settings(deadline=None)
@given(predicates())
def test_the_normal_form_of_a_normal_form_is_itself(written: str) -> None:
    predicate = read(written)
    assert read(predicate.sql) == predicate
    assert read(predicate.sql).sql == predicate.sql


@settings(deadline=None)
@given(predicates(2), predicates(2), ROWS)
def test_implied_and_disjoint_predicates_are_so_on_every_tuple(one: str, other: str, rows: list[Row]) -> None:
    a, b = read(one), read(other)
    satisfied = [(evaluate(one, row) is True, evaluate(other, row) is True) for row in rows]
    if implies(a, b):
        assert (True, False) not in satisfied
    if disjoint(a, b):
        assert (True, True) not in satisfied
    both = conjunction([a, b])
    assert [evaluate(both.sql, row) is True for row in rows] == [all(each) for each in satisfied]
    assert implies(both, a)
    assert implies(both, b)


@settings(deadline=None)
@given(st.lists(predicates(2), min_size=1, max_size=6), st.lists(tuples(), min_size=1, max_size=60))
def test_no_more_signatures_occur_than_are_foreseen(written: list[str], rows: list[Row]) -> None:
    read_ones = [read(each) for each in written]
    signatures = {tuple(evaluate(each, row) is True for each in written) for row in rows}
    assert len(signatures) <= most_signatures(read_ones) <= 2 ** len(written)
    if covers(read_ones):
        assert all(any(signature) for signature in signatures)
    shared = common(read_ones)
    if shared is not None:
        for row in rows:
            if any(evaluate(each, row) is True for each in written):
                assert evaluate(shared.sql, row) is True
