"""WITHIN and PRIORITY before the AS of a query: in a catalog, and wherever a query is registered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.language.catalog import parse_catalog
from windloom.language.select import parse_query
from windloom.model import Query, Urgency, parse_duration

TRADES = "CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE) TIME ts;"
SELECT = "SELECT count(*) AS n FROM trades [RANGE 1 hour SLIDE 1 minute]"


def test_a_query_without_options_is_wanted_before_its_next_window(read: Callable[[str], Query]) -> None:
    query = read("SELECT count(*) …")
    assert query.urgency == Urgency()
    assert query.deadline_ticks == query.window.slide_ticks


@pytest.mark.parametrize(
    ("options", "within", "priority"),
    [
        ("WITHIN 30 seconds PRIORITY 2", "30 seconds", 2),
        ("priority 9 within 1 hour 30 minutes", "90 minutes", 9),
        ("WITHIN '10 s'", "10 seconds", 5),
        ("WITHIN 0 seconds", "0 seconds", 5),
    ],
)
def test_options_stand_before_as(read: Callable[[str], Query], options: str, within: str, priority: int) -> None:
    query = read(f"{options} AS SELECT count(*) …")
    assert query.urgency == Urgency(parse_duration(within), priority)
    assert query.deadline_ticks == parse_duration(within)
    assert query.outputs == read("SELECT count(*) …").outputs


def test_options_of_a_catalog_are_part_of_the_text() -> None:
    catalog = parse_catalog(
        f"{TRADES}\nCREATE QUERY q WITHIN 30 seconds PRIORITY 2 AS {SELECT};\nCREATE QUERY r AS {SELECT}"
    )
    first, second = catalog.parse()
    assert first.text == f"WITHIN 30 seconds PRIORITY 2 AS {SELECT}"
    assert second.text == SELECT
    streams = {declared.stream.name: declared.stream for declared in catalog.streams}
    assert parse_query("q", first.text, streams) == first
