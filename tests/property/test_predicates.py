"""Random predicates on random tuples: what is claimed of them against a three-valued evaluation."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from support.predicates import GUARDED, LITERALS, Grammar, Row, evaluate, random_row, read
from windloom.model import common, covers, implies
from windloom.optimizer.intake.signatures import most_signatures


@st.composite
def predicates(draw: st.DrawFn, depth: int, least: int, most: int | None = None) -> list[str]:
    """Several predicates over a few columns."""
    columns = draw(st.lists(st.sampled_from(list(LITERALS)), min_size=1, max_size=2))
    grammar = Grammar(lambda options: draw(st.sampled_from(options)), columns, GUARDED)
    return [grammar.predicate(depth) for _ in range(draw(st.integers(least, most or least)))]


@st.composite
def tuples(draw: st.DrawFn) -> Row:
    return random_row(lambda options: draw(st.sampled_from(options)))


ROWS = st.lists(tuples(), min_size=1, max_size=25)


@settings(deadline=None)
@given(predicates(3, 1), ROWS)
def test_the_normal_form_is_satisfied_by_the_same_tuples(drawn: list[str], rows: list[Row]) -> None:
    written, predicate = drawn[0], read(drawn[0])
    satisfied = [evaluate(written, row) is True for row in rows]
    assert [evaluate(predicate.sql, row) is True for row in rows] == satisfied
    assert [evaluate(predicate.guarded_sql, row) is True for row in rows] == satisfied
    assert not (predicate.is_never and any(satisfied))
    assert not predicate.is_always or all(satisfied)


@settings(deadline=None)
@given(predicates(3, 1))
def test_the_normal_form_of_a_normal_form_is_itself(drawn: list[str]) -> None:
    predicate = read(drawn[0])
    assert read(predicate.sql) == predicate
    assert read(predicate.sql).sql == predicate.sql


@settings(deadline=None)
@given(predicates(2, 2), ROWS)
def test_implied_and_disjoint_predicates_are_so_on_every_tuple(drawn: list[str], rows: list[Row]) -> None:
    left, right = drawn
    a, b = read(left), read(right)
    satisfied = [(evaluate(left, row) is True, evaluate(right, row) is True) for row in rows]
    if implies(a, b):
        assert (True, False) not in satisfied
    both = read(f"({left}) AND ({right})")
    if both.is_never:
        assert (True, True) not in satisfied
    assert [evaluate(both.sql, row) is True for row in rows] == [all(each) for each in satisfied]
    assert implies(both, a)
    assert implies(both, b)


@settings(deadline=None)
@given(predicates(2, 1, 6), st.lists(tuples(), min_size=1, max_size=60))
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
