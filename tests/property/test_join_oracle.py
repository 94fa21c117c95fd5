"""The two oracles of joins against each other: DuckDB's SQL of a description, and nested loops by definition."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from support.compare_joins import assert_equal_join
from support.drawing import examples
from support.duck_joins import assert_join_equals_duckdb
from support.join_catalogs import joins, rows
from support.join_rounds import JoinRounds, join_rounds
from support.join_texts import Asked
from windloom_tools.oracle.joins import answer_join


@settings(max_examples=examples(60), deadline=None)
@given(asked=joins(exact=True), rows=rows())
def test_duckdb_answers_what_the_oracle_answers(asked: Asked, rows: dict[str, list[dict[str, Any]]]) -> None:
    query = asked.query()
    assert_join_equals_duckdb(asked, query, rows, answer_join(query, rows))


@settings(max_examples=examples(40), deadline=None)
@given(case=join_rounds(disorder=False, landmarks=False))
def test_if_no_tuple_is_late_rounds_report_together_what_a_batch_does(case: JoinRounds) -> None:
    for name, asked in case.asked.items():
        query = asked.query(name)
        assert case.count_late(query) == 0
        found = [row for _, rows in sorted(case.expected(query).items()) for row in rows]
        assert_equal_join(query, case.everything, found)
