"""The clause EMIT at the end of a query."""

from __future__ import annotations

import pytest

from windloom.language.select import parse_query
from windloom.model import DataType, Emission, Emits, Query, Reports, Stream

KINDS = {"ts": "timestamp", "k": "string", "x": "int", "emit": "int"}
STREAMS = {"s": Stream("s", {name: DataType.parse(kind) for name, kind in KINDS.items()}, time="ts")}
TEXT = "SELECT k, count(*) AS n FROM s [RANGE 1 hour SLIDE 1 minute] GROUP BY k"


def read(text: str) -> Query:
    return parse_query("q", text, STREAMS)


@pytest.mark.parametrize(
    ("clause", "emission"),
    [
        ("", Emission()),
        ("EMIT FINAL", Emission()),
        ("emit changes;", Emission(Emits.CHANGES)),
        ("HAVING count(*) > 1 EMIT EMPTY", Emission(Emits.EMPTY)),
        ("EMIT EARLY EVERY 10 seconds", Emission(Emits.EARLY, 10_000_000)),
        ("emit early every '1 minute 30 s';", Emission(Emits.EARLY, 90_000_000)),
    ],
)
def test_a_query_says_at_its_end_when_it_reports_rows(clause: str, emission: Emission) -> None:
    query = read(f"{TEXT} {clause}")
    assert query.emission == emission
    assert query.group_by == read(TEXT).group_by


def test_emit_stays_a_name_where_no_clause_can_stand() -> None:
    query = read("SELECT emit, max(emit) AS empty FROM s [TUMBLE 1 hour] AS emit WHERE emit > 1 GROUP BY emit")
    assert query.emission == Emission()
    assert [grouping.name for grouping in query.group_by] == ["emit"]


def test_the_clause_shows_as_it_is_written() -> None:
    for clause in ("EMIT CHANGES", "EMIT EARLY EVERY 10 seconds"):
        assert str(read(f"{TEXT} {clause}").emission) == clause


def test_rows_that_come_and_go_tell_their_end_where_it_is_known() -> None:
    rows = read("SELECT k, x FROM s [RANGE 1 hour SLIDE 1 minute] WHERE x > 1 EMIT CHANGES").rows
    assert rows is not None
    assert rows.reports is Reports.ENTERING
    assert rows.tells_end
    text = "SELECT k FROM s [TUMBLE 1 hour] EXCEPT SELECT k FROM s [TUMBLE 1 hour] WHERE x > 1 EMIT CHANGES"
    query = read(text)
    assert query.emission.kind is Emits.CHANGES
    assert query.rows is not None
    assert query.rows.reports is Reports.STANDING
    assert not query.rows.tells_end
