"""Joins that are made tuple by tuple: how many pairs are expected, and when they are too many."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.join_looms import planned, registered
from support.order_streams import STREAMS
from windloom.errors import WindloomError

FAST = {name: replace(stream, events_per_second=1000.0) for name, stream in STREAMS.items()}
HOUR = "FROM orders [RANGE 1 hour SLIDE 5 minutes] o"


def test_pairs_without_a_key_are_refused_when_a_round_would_not_end() -> None:
    text = f"SELECT count(*) {HOUR} JOIN clicks [RANGE 30 minutes] c ON o.price < c.cost"
    with pytest.raises(WindloomError) as caught:
        planned(registered({"near": text}, FAST))
    assert "query 'near' would make too many pairs" in caught.value.message
    assert "about 6,480,000,000,000 per window are expected" in caught.value.detail  # 3.6M · 1.8M
    assert "join on a key" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT sum(coalesce(c.cost, 0)) {HOUR} LEFT JOIN clicks [RANGE 1 hour] c USING (user)",
        f"SELECT median(o.price + c.cost) {HOUR} JOIN clicks [RANGE 1 hour] c USING (user)",
    ],
)
def test_a_key_is_enough_whose_number_of_values_is_not_known(text: str) -> None:
    assert planned(registered({"q": text}, FAST)).rows
