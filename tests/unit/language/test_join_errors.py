"""Joins of which every tuple would be paired with every other are refused, unless WHERE has the key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.order_streams import FROM, STREAMS
from windloom.errors import QueryError
from windloom.language.select import parse_query

HOUR = "FROM orders [RANGE 1 hour SLIDE 5 minutes] o"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT count(*) {HOUR}, clicks [RANGE 30 minutes] c",
        f"SELECT count(*) {HOUR} CROSS JOIN clicks [RANGE 30 minutes] c",
        f"SELECT count(*) {HOUR} JOIN clicks [RANGE 30 minutes] c ON o.price < 5 AND c.cost > 3",
        f"SELECT count(*) {HOUR}, clicks [RANGE 30 minutes] c, visits [RANGE 1 h] v WHERE o.user = v.user",
    ],
)
def test_a_join_without_any_condition_is_refused_with_the_pairs_that_are_expected(text: str) -> None:
    rates = {"orders": 2.0, "clicks": 10.0, "visits": 1.0}
    streams = {name: replace(stream, events_per_second=rates[name]) for name, stream in STREAMS.items()}
    with pytest.raises(QueryError) as caught:
        parse_query("q", text, streams)
    assert "'c' is joined without a key: every tuple would be paired with every other" in caught.value.message
    assert "about 129,600,000 pairs per window are expected" in caught.value.detail  # 7,200 · 18,000


def test_a_cross_join_may_have_its_key_in_where() -> None:
    crossed = f"SELECT count(*) {HOUR} CROSS JOIN clicks [RANGE 30 minutes] c WHERE o.user = c.user"
    assert parse_query("q", crossed, STREAMS).source == parse_query("q", f"SELECT count(*) {FROM}", STREAMS).source
